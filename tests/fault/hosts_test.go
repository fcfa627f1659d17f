package fault

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// The same faults with ranks on several hosts, which the network joins: a rank that is killed is named on all others in time,
// one that was stopped goes on, and aborts are local.
func TestFaultBetweenHosts(t *testing.T) {
	for _, s := range []struct {
		name         string
		ranks, hosts int
	}{
		{"coll-kill", 3, 3},
		{"coll-kill", 5, 2},
		{"coll-kill-stream", 3, 2},
		{"coll-stop", 3, 3},
		{"abort-waiting", 2, 2},
		{"abort-recv", 2, 2},
		{"abort-busy", 2, 2},
		{"abort-queued", 2, 2},
		{"init-kill", 3, 3},
	} {
		t.Run(fmt.Sprintf("%s/%d/%d", s.name, s.ranks, s.hosts), func(t *testing.T) {
			program.Check(t, rankrun.Spec{
				Args: []string{"--suite", s.name, "--launch", "procs", "--ranks", strconv.Itoa(s.ranks), "--hosts", strconv.Itoa(s.hosts),
					"--limit", "30"},
				Deadline: 40 * time.Second,
			})
		})
	}
}
