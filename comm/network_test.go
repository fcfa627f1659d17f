package comm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gccl/gccl/net/bootstrap"
)

// initHosts makes a communicator of ranks that are told to be on different hosts: hosts[r] names the host of rank r. They are threads
// of this process, so the loop transport joins them.
func initHosts(t *testing.T, hosts []string, env ...string) []*Comm {
	t.Helper()
	n := len(hosts)
	engines := map[string]*Engine{}
	for _, h := range hosts {
		if engines[h] == nil {
			engines[h] = testEngine(t, append([]string{"NCCL_HOSTID", h}, env...)...)
		}
	}
	id, err := engines[hosts[0]].UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	cs := make([]*Comm, n)
	for r := range cs {
		cs[r] = newComm(t, engines[hosts[r]])
	}
	noErrors(t, "init", each(n, func(r int) error {
		return cs[r].Init(n, r, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, engines[hosts[r]]))
	}))
	return cs
}

func TestHostsMeet(t *testing.T) {
	for _, hosts := range [][]string{{"a", "b"}, {"a", "a", "b"}, {"a", "b", "a", "b"}, {"a", "b", "c", "d", "e"}} {
		t.Run(fmt.Sprint(len(hosts), len(hosts)), func(t *testing.T) {
			cs := initHosts(t, hosts)
			for r, c := range cs {
				for q := range cs {
					if got, want := c.remote(q), hosts[r] != hosts[q]; got != want {
						t.Errorf("rank %d: rank %d is remote: %v", r, q, got)
					}
				}
			}
			destroyAll(t, cs)
		})
	}
}

// The user's orders hold between processes, and the network is what NCCL_NET says.
func TestOrdersBetweenProcesses(t *testing.T) {
	for _, env := range []string{"NCCL_SHM_DISABLE=1", "NCCL_HOSTID=elsewhere"} {
		for _, net := range []string{"loop", "shm", "Socket"} { // loop reaches no other process
			e := testEngine(t)
			id, err := e.UniqueID()
			if err != nil {
				t.Fatal(err)
			}
			ps := []*rankProcess{startRank(t, 0, 2, id, "NCCL_NET="+net), startRank(t, 1, 2, id, "NCCL_NET="+net, env)}
			for r, p := range ps {
				got := p.answer()
				if net == "loop" && (!strings.HasPrefix(got, "failed 2") || !strings.Contains(got, "no network between ranks")) {
					t.Errorf("%s, %s: rank %d: %s", env, net, r, got)
				}
				if net != "loop" && got != "ready" {
					t.Errorf("%s, %s: rank %d: %s", env, net, r, got)
				}
			}
		}
	}
}
