package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gccl/gccl/internal/param"
)

const mib = 1 << 20

func checkShm(m *machine) []finding {
	total, free, err := m.statfs(m.path("dev/shm"))
	if err != nil {
		return one(note, "/dev/shm cannot be looked at (%v); this library does not use it: its memory comes from memfd_create", err)
	}
	if total < 1<<30 {
		return with(one(warn, "/dev/shm has %d MiB, %d MiB of them free: this library does not use it, but NCCL and data loaders do", total/mib, free/mib),
			"docker run --shm-size=8g or --ipc=host; in Kubernetes an emptyDir with medium Memory at /dev/shm")
	}
	return one(ok, "/dev/shm has %d MiB, %d MiB of them free (not used by this library)", total/mib, free/mib)
}

func checkSystemCalls(m *machine) []finding {
	var out []finding
	for _, c := range []struct{ name, verdict, without, remedy string }{
		{"memfd_create", fail, "ranks of different processes cannot share memory", "allow it in the seccomp profile of the container; it is in Linux since 3.17"},
		{"pidfd_open", warn, "the end of a process is only noticed by its connection to rank 0", "allow it in the seccomp profile; it is in Linux since 5.3"},
		{"membarrier", warn, "a rank that sleeps wakes up to a millisecond late", "allow it in the seccomp profile; it is in Linux since 4.16"},
	} {
		if err := m.systemHas[c.name]; err != nil {
			out = append(out, finding{Verdict: c.verdict, Found: fmt.Sprintf("%s is refused (%v): %s", c.name, err, c.without), Remedy: c.remedy})
		}
	}
	if len(out) == 0 {
		return one(ok, "memfd_create, pidfd_open and membarrier work")
	}
	return out
}

// limit reads a soft limit from /proc/self/limits; -1 is unlimited.
func (m *machine) limit(name string) (int64, bool) {
	for _, l := range strings.Split(m.text("proc/self/limits"), "\n") {
		rest, found := strings.CutPrefix(l, name)
		w := strings.Fields(rest)
		if !found || len(w) < 1 {
			continue
		}
		if w[0] == "unlimited" {
			return -1, true
		}
		n, err := strconv.ParseInt(w[0], 10, 64)
		return n, err == nil
	}
	return 0, false
}

// What a job of some ranks needs, with room: guesses. RDMA pins windows and the areas of ranks.
const (
	enoughLocked = 1 << 30
	enoughFiles  = 1024
)

func checkLimits(m *machine) []finding {
	var out []finding
	locked, known := m.limit("Max locked memory")
	switch rdma := len(m.rdmaDevices()) > 0; {
	case !known:
		out = append(out, one(unknown, "the limit on locked memory cannot be read")...)
	case locked < 0:
		out = append(out, one(ok, "locked memory is unlimited")...)
	case rdma && locked < enoughLocked:
		out = append(out, with(one(warn, "locked memory is limited to %d KiB, and there are RDMA devices, which need it for what they register", locked/1024),
			"ulimit -l unlimited; LimitMEMLOCK=infinity in systemd units; docker run --ulimit memlock=-1")...)
	default:
		out = append(out, one(ok, "locked memory is limited to %d KiB, which only matters with RDMA devices", locked/1024)...)
	}
	if files, known := m.limit("Max open files"); known && files >= 0 && files < enoughFiles {
		out = append(out, with(one(warn, "%d files may be open in a process", files), "ulimit -n 65536")...)
	}
	if most, found := m.cgroupNumber("memory.max"); found {
		now, _ := m.cgroupNumber("memory.current")
		out = append(out, one(note, "the control group may use %d MiB of memory and uses %d; shared memory of ranks counts", most/mib, now/mib)...)
	}
	if most, found := m.cgroupNumber("pids.max"); found && most < 1024 {
		out = append(out, with(one(warn, "the control group may have %d threads", most), "raise pids.max: docker run --pids-limit=-1")...)
	}
	return out
}

// cgroupFolders are those of this process's control group and of the ones above, of the unified hierarchy (cgroups(7)).
func (m *machine) cgroupFolders() []string {
	for _, l := range strings.Split(m.text("proc/self/cgroup"), "\n") {
		if p, found := strings.CutPrefix(l, "0::"); found {
			var out []string
			for p = filepath.Clean("/" + p); ; p = filepath.Dir(p) {
				out = append(out, filepath.Join("sys/fs/cgroup", p))
				if p == "/" {
					return out
				}
			}
		}
	}
	return nil
}

// cgroupNumber is the smallest value of a file over these groups; false if none limits.
func (m *machine) cgroupNumber(file string) (int64, bool) {
	least, found := int64(0), false
	for _, dir := range m.cgroupFolders() {
		if n, known := m.number(dir, file); known && (!found || n < least) {
			least, found = n, true
		}
	}
	return least, found
}

// quota is how many CPUs' time the control groups allow.
func (m *machine) quota() (cpus float64, throttled int64, found bool) {
	add := func(quota, period int64) {
		if quota > 0 && period > 0 {
			if c := float64(quota) / float64(period); !found || c < cpus {
				cpus, found = c, true
			}
		}
	}
	for _, dir := range m.cgroupFolders() {
		var quota, period int64
		if n, _ := fmt.Sscanf(m.text(dir, "cpu.max"), "%d %d", &quota, &period); n == 2 { // "max 100000": no limit
			add(quota, period)
		}
		for _, l := range strings.Split(m.text(dir, "cpu.stat"), "\n") {
			var n int64
			if k, _ := fmt.Sscanf(l, "nr_throttled %d", &n); k == 1 {
				throttled = max(throttled, n)
			}
		}
	}
	quota, _ := m.number("sys/fs/cgroup/cpu/cpu.cfs_quota_us") // version 1
	period, _ := m.number("sys/fs/cgroup/cpu/cpu.cfs_period_us")
	add(quota, period)
	return cpus, throttled, found
}

func checkCPUs(m *machine) []finding {
	cpus, throttled, found := m.quota()
	if !found || cpus >= float64(m.affinity) {
		return one(ok, "this process may use %s, and no control group limits their time", plural(m.affinity, "CPU"))
	}
	f := with(one(warn, "this process sees %s, but its control group has the time of %.4g: ranks that spin use it up and are stopped meanwhile",
		plural(m.affinity, "CPU"), cpus), "raise the quota (docker run --cpus, Kubernetes limits.cpu), pin the ranks to as many CPUs (taskset), or set GCCL_SPIN_US=0")
	if throttled > 0 {
		f[0].Details = []string{fmt.Sprintf("it has been stopped %d times so far", throttled)}
	}
	return f
}

// checkContainer says what a container changes. The marks are those that the runtimes leave.
func checkContainer(m *machine) []finding {
	kind := ""
	switch {
	case m.env["KUBERNETES_SERVICE_HOST"] != "":
		kind = "Kubernetes"
	case m.exists("/.dockerenv"):
		kind = "Docker"
	case m.exists("run/.containerenv"):
		kind = "Podman"
	case m.env["APPTAINER_CONTAINER"] != "" || m.env["SINGULARITY_CONTAINER"] != "":
		kind = "Apptainer"
	default:
		for _, w := range []string{"docker", "kubepods", "containerd", "lxc"} {
			if strings.Contains(m.text("proc/1/cgroup"), w) {
				kind = w
			}
		}
	}
	if kind == "" {
		return one(ok, "no signs of a container")
	}
	return one(note, "a container (%s): ranks share memory within it; with another container of this machine only if both have one network namespace "+
		"(--network=host, or one pod) and one user id, otherwise they use the network", kind)
}

func checkPtrace(m *machine) []finding {
	scope, known := m.number("proc/sys/kernel/yama/ptrace_scope")
	if !known || scope == 0 {
		return one(ok, "processes of a user may look at each other")
	}
	return one(note, "ptrace_scope is %d: a debugger may only attach to its children; nothing of this library needs more", scope)
}

func checkSettings(m *machine) []finding {
	var out []finding
	s, warnings, err := param.LoadFrom(m.settings)
	if err != nil {
		out = append(out, with(one(fail, "%v", err), "correct it: communicators cannot be created")...)
	}
	for _, w := range warnings {
		verdict := warn
		if w.Minor {
			verdict = note
		}
		out = append(out, one(verdict, "%v", w)...)
	}
	set := 0
	for _, id := range param.All() {
		if s.IsSet(id) {
			set++
		}
	}
	if len(out) == 0 {
		out = one(ok, "%s set; gccl-info --set lists them", plural(set, "setting"))
	}
	return out
}
