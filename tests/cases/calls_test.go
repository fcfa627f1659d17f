package cases

import (
	"fmt"
	"strings"
	"testing"
)

// Count zero in every call, with NULL and real pointers: success, no writes, later operations match up.
func TestC11CountZero(t *testing.T) {
	each(t, "c11", []string{"procs", "threads", "group"}, []int{4})
	each(t, "c11", []string{"threads"}, []int{1})
}

// Messages to oneself in groups are exact and in order; a lone one is refused, not a hang.
func TestC13SelfSend(t *testing.T) {
	each(t, "c13", []string{"procs"}, []int{1, 2})
	each(t, "c13", []string{"threads"}, []int{2})
	each(t, "c13_lone", []string{"procs"}, []int{1, 2})
}

// Ranks that all send in a ring before they receive wait for each other: the log names the circle, and abort from another
// thread ends it.
func TestC14SendBeforeReceive(t *testing.T) {
	for ranks, circle := range map[int]string{2: "0 -> 1 -> 0", 3: "0 -> 1 -> 2 -> 0"} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			r := check(t, "c14", "procs", ranks, "GCCL_LATE=1s")
			if !strings.Contains(r.Stderr, circle) {
				t.Errorf("no line of the log has the circle %q:\n%s", circle, r.Stderr)
			}
		})
	}
}

// The documented in-place places are exact and leave the other slots alone.
func TestC15InPlace(t *testing.T) { each(t, "c15", []string{"procs", "threads"}, []int{4}) }

// With checks, places beside the documented ones are invalid arguments.
func TestC15NearMisses(t *testing.T) {
	for _, set := range []string{"GCCL_CHECK=1", "NCCL_CHECK_POINTERS=1", "NCCL_CHECK_MODE=DEBUG_LOCAL"} {
		each(t, "c15_near", []string{"procs"}, []int{3}, set)
	}
}

// Positions around 2^31 and 2^32 are right; sizes that overflow are refused before any access.
func TestC16PastTwoGiB(t *testing.T) {
	each(t, "c16_overflow", []string{"procs"}, []int{1, 2})
	t.Run("large", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short leaves out buffers of 4 GiB")
		}
		if free := memAvailable(t); free < 14<<30 {
			t.Skipf("needs 14 GiB of available memory, this machine has %d GiB", free>>30)
		}
		check(t, "c16", "threads", 2)
	})
}

// Buffers that begin anywhere and end at a page that may not be touched, for every type.
func TestC17PageEnd(t *testing.T) { each(t, "c17", []string{"procs", "threads"}, []int{2, 3}) }

// Sums of 64 small floats: at most one rounding of an fp32 sum; in deterministic mode the same bits over repeats, inside
// larger buffers and after other communicators.
func TestC19Precision(t *testing.T) {
	each(t, "c19", []string{"threads"}, []int{64}, "GCCL_DETERMINISTIC=1")
	each(t, "c19", []string{"procs"}, []int{3}, "GCCL_DETERMINISTIC=1")
}

// Destroyed and garbage handles, double destroy, codes without a name, another thread: codes and texts, no crash.
func TestC20BadHandles(t *testing.T) { each(t, "c20", []string{"procs", "threads"}, []int{2}) }

// The library opened by its own path, and a second copy of it: both work, or the copy is refused by text.
func TestC22TwoCopies(t *testing.T) {
	each(t, "c22_local", []string{"procs"}, []int{1})
	each(t, "c22_copy", []string{"procs"}, []int{1})
}

// Calls that differ between ranks end on every rank: by a text that shows both sides where they meet, by the failed rank's
// name elsewhere.
func TestDisagreeingCalls(t *testing.T) {
	each(t, "disagree", []string{"procs", "threads"}, []int{2, 3})
	each(t, "disagree_root", []string{"procs", "threads"}, []int{3})
	each(t, "disagree_message", []string{"procs", "threads"}, []int{2})
}
