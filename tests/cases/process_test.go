package cases

import "testing"

// Ranks in namespaces of their own: the sum is right, or all ranks get a clear error in bounded time. Letters: U user,
// u uts, i ipc, m mount, n network.
func TestC27Namespaces(t *testing.T) {
	probe(t, "user namespaces", "unshare", "-r", "true")
	for _, kinds := range []string{"Uu", "Ui", "Um", "Uuim", "Un"} {
		t.Run(kinds, func(t *testing.T) { check(t, "c27", "procs", 2, "CASE_UNSHARE="+kinds, shortInit) })
	}
	for _, host := range []string{"same", ""} {
		t.Run("NCCL_HOSTID="+host, func(t *testing.T) { check(t, "alive", "procs", 2, "NCCL_HOSTID="+host) })
	}
}

// System calls refused by seccomp, little locked memory, one CPU for 16 ranks, small and unlimited stacks.
func TestC29Restricted(t *testing.T) {
	each(t, "c29_seccomp", []string{"procs"}, []int{2})
	each(t, "c29_affinity", []string{"procs", "threads"}, []int{16})
	each(t, "c29_stack", []string{"procs"}, []int{2})
}

// An idle communicator uses no CPU, waiting ranks sleep, and far more ranks than CPUs make progress.
func TestC31IdleAndCrowded(t *testing.T) {
	each(t, "c31_idle", []string{"procs"}, []int{2})
	each(t, "c31_late", []string{"procs"}, []int{2})
	each(t, "c31_late", []string{"threads"}, []int{8})
	each(t, "c31_crowd", []string{"threads"}, []int{32})
}

// Ends in odd order: a rank exits without destroying, one destroys long before the others, destroy in atexit, nothing
// destroyed at all: bounded, no crash.
func TestC33TeardownOrder(t *testing.T) {
	each(t, "c33_exit", []string{"procs"}, []int{3})
	each(t, "c33_late", []string{"procs", "threads"}, []int{2})
	each(t, "c33_atexit", []string{"procs"}, []int{2})
	each(t, "c33_nodestroy", []string{"procs"}, []int{2})
}

// Splits with shared resources, with work of the parent in flight, in long lines, and from two threads at once.
func TestC34Split(t *testing.T) {
	each(t, "c34", []string{"procs", "threads", "group"}, []int{6})
	each(t, "c34_parallel", []string{"procs", "threads"}, []int{4})
}

// Survivors shrink without a rank that exited and without one that never joins a collective; communicators grow by new
// ranks with ids of any member.
func TestC35ShrinkGrow(t *testing.T) {
	each(t, "c35_exited", []string{"procs"}, []int{4})
	each(t, "c35_stuck", []string{"procs"}, []int{4})
	each(t, "c35_grow", []string{"procs", "threads"}, []int{4})
}

// Five thousand operations of two communicators in a group, groups are a thread's own, init and collective in one group.
func TestC37Groups(t *testing.T) {
	each(t, "c37_many", []string{"threads", "group"}, []int{4})
	each(t, "c37_threads", []string{"threads"}, []int{4})
	each(t, "c37_init", []string{"procs", "group"}, []int{2})
}

// Two communicators issued in different order complete on host streams and threads; grids of communicators; one
// communicator fed by two threads is serialised or refused.
func TestC38IssueOrder(t *testing.T) {
	each(t, "c38_crossed", []string{"procs", "threads"}, []int{2})
	each(t, "c38_grid", []string{"procs", "threads"}, []int{4})
	each(t, "c38_shared", []string{"procs"}, []int{2})
}

// Windows of another communicator, handles of the wrong kind, offsets past the end: refused, nothing written.
func TestC43WrongHandles(t *testing.T) { each(t, "c43", []string{"procs", "threads"}, []int{2}) }

// Registering other memory while all-gathers run; deregistering a window that is in use.
func TestC46RegisterInUse(t *testing.T) {
	each(t, "c46_other", []string{"procs", "threads"}, []int{2})
	each(t, "c46_used", []string{"procs", "threads"}, []int{2})
}
