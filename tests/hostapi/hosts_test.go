package hostapi

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// The suites with ranks on several hosts: NCCL_HOSTID says so, and the network joins them.
func TestHostAPIBetweenHosts(t *testing.T) {
	worlds := []struct{ ranks, hosts int }{{2, 2}, {5, 3}, {8, 2}, {8, 8}}
	for _, net := range []string{"Socket", "shm"} {
		for _, suite := range []string{"numbers", "matrix", "pairs", "large", "groups", "streams", "nonblocking", "children", "ending", "windows", "onesided", "memory"} {
			for _, w := range worlds {
				if net == "shm" && w.ranks != 5 { // the transport's own differences need one world
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d/%d", net, suite, w.ranks, w.hosts), func(t *testing.T) {
					program.Check(t, rankrun.Spec{
						Env: []string{"NCCL_NET=" + net},
						Args: []string{"--suite", suite, "--launch", "procs", "--ranks", strconv.Itoa(w.ranks), "--hosts", strconv.Itoa(w.hosts),
							"--limit", "50"},
						Deadline: 60 * time.Second,
					})
				})
			}
		}
	}
}
