// Package hosts runs collectives between hosts, which are network namespaces with two links between them.
package hosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/netns"
	"github.com/gccl/gccl/tests/internal/rankrun"
)

const (
	ranks    = 4 // two on each host
	deadline = 60 * time.Second
)

// job is one gccl-perf process for each rank, with the variables that torchrun sets.
type job struct {
	out  [ranks]output
	done chan int // ranks that have ended
	code [ranks]int
}

// output is written by a process while the test reads it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// twoHosts makes the second host, joined by two links, and returns a process that is in it.
func twoHosts(t *testing.T) int {
	keeper := exec.Command("sleep", "600")
	netns.Other(keeper)
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait()
	})
	pid := keeper.Process.Pid
	netns.Link(t, pid, "eth0", "eth1")
	netns.Run(t, "ip addr add 10.1.0.1/24 dev eth0; ip addr add 10.2.0.1/24 dev eth1")
	netns.RunIn(t, pid, "ip addr add 10.1.0.2/24 dev eth0; ip addr add 10.2.0.2/24 dev eth1")
	return pid
}

func start(t *testing.T, second int, args ...string) *job {
	t.Helper()
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(root, "build/bin/gccl-perf")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; run make build", err)
	}
	j := &job{done: make(chan int, ranks)}
	for r := range ranks {
		line := append([]string{program}, args...)
		if r >= ranks/2 {
			line = append(netns.In(second), line...)
		}
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("RANK=%d", r), fmt.Sprintf("WORLD_SIZE=%d", ranks), fmt.Sprintf("LOCAL_RANK=%d", r%2),
			"MASTER_ADDR=10.1.0.1", "MASTER_PORT=29511", fmt.Sprintf("NCCL_HOSTID=host%d", r/2), "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET")
		cmd.Stdout, cmd.Stderr = &j.out[r], &j.out[r]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		go func() {
			_ = cmd.Wait()
			j.code[r] = cmd.ProcessState.ExitCode()
			j.done <- r
		}()
	}
	return j
}

// end waits for all ranks.
func (j *job) end(t *testing.T) {
	t.Helper()
	late := time.After(deadline)
	for range ranks {
		select {
		case <-j.done:
		case <-late:
			t.Fatalf("not all ranks ended within %v:\n%s", deadline, j)
		}
	}
}

func (j *job) String() string {
	var b strings.Builder
	for r := range j.out {
		fmt.Fprintf(&b, "rank %d:\n%s\n", r, j.out[r].String())
	}
	return b.String()
}

// until waits for a text of rank 0.
func (j *job) until(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(deadline); !strings.Contains(j.out[0].String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || len(j.done) > 0 {
			t.Fatalf("rank 0 did not print %q:\n%s", text, j)
		}
	}
}

// mustPass: every rank ended well. gccl-perf fails when a value is wrong.
func (j *job) mustPass(t *testing.T) {
	t.Helper()
	for r, code := range j.code {
		if code != 0 {
			t.Errorf("rank %d ended with code %d", r, code)
		}
	}
	if t.Failed() || !strings.Contains(j.out[0].String(), "socket carries 4 of 4 pairs") {
		t.Errorf("no line says that a network was used, or a rank failed:\n%s", j)
	}
}

// Checked collectives over two links.
func TestCollectives(t *testing.T) {
	for _, coll := range []string{"all_reduce", "all_gather", "alltoall"} {
		t.Run(coll, func(t *testing.T) {
			if !netns.Enter(t, "") {
				return
			}
			j := start(t, twoHosts(t), "--coll", coll, "-b", "8", "-e", "1M", "-f", "8", "-n", "20", "-c", "1")
			j.end(t)
			j.mustPass(t)
		})
	}
}

// One of two links is cut in the middle of a run, not the one of the control plane, which has a connection over the first address
// alone: traffic moves to the other, nothing is lost or doubled.
func TestLinkCut(t *testing.T) {
	if !netns.Enter(t, "") {
		return
	}
	j := start(t, twoHosts(t), "--json", "-b", "1K", "-e", "1M", "-f", "4", "-n", "100", "-c", "10")
	j.until(t, `"bytes":1024`)
	netns.Run(t, "ip link set eth1 down")
	j.end(t)
	j.mustPass(t)
}

// All links are cut: every rank ends with an error that names a rank of the other host.
func TestAllLinksCut(t *testing.T) {
	if !netns.Enter(t, "") {
		return
	}
	j := start(t, twoHosts(t), "--json", "-b", "1K", "-e", "1M", "-f", "4", "-n", "20000", "-c", "10")
	j.until(t, `"kind":"run"`)
	netns.Run(t, "ip link set eth0 down; ip link set eth1 down")
	j.end(t)
	for r, code := range j.code {
		text := j.out[r].String()
		if other := (1 - r/2) * 2; code == 0 || !strings.Contains(text, fmt.Sprintf("rank %d", other)) && !strings.Contains(text, fmt.Sprintf("rank %d", other+1)) {
			t.Errorf("rank %d ended with code %d and names no rank of the other host:\n%s", r, code, text)
		}
	}
}
