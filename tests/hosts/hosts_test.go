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

// job is one process for each rank, with the variables that torchrun sets.
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

// start runs gccl-perf.
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
	return run(t, second, func(int) []string { return append([]string{program}, args...) })
}

// run runs the command of each rank.
func run(t *testing.T, second int, command func(rank int) []string) *job {
	t.Helper()
	j := &job{done: make(chan int, ranks)}
	for r := range ranks {
		line := command(r)
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

// mustPass: every rank ended well. The programs fail when a value is wrong.
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
			j := start(t, netns.TwoHosts(t), "--coll", coll, "-b", "8", "-e", "1M", "-f", "8", "-n", "20", "-c", "1")
			j.end(t)
			j.mustPass(t)
		})
	}
}

// One of two links is cut in the middle of a run: traffic moves to the other, nothing is lost or doubled.
func TestLinkCut(t *testing.T) {
	if !netns.Enter(t, "") {
		return
	}
	j := start(t, netns.TwoHosts(t), "--json", "-b", "1K", "-e", "1M", "-f", "4", "-n", "100", "-c", "10")
	j.until(t, `"bytes":1024`)
	netns.Run(t, "ip link set eth1 down")
	j.end(t)
	j.mustPass(t)
}

// Either link is cut, at a host of rank 0 or the other one, between collectives and splits, or when the ranks leave. The control
// plane, whose connections are over the first link, moves as the data does: no call fails, and later splits work.
func TestEitherLinkCut(t *testing.T) {
	for name, c := range map[string]struct {
		link, moment string
		here         bool
	}{
		"first link":              {"eth0", "round 3\n", true},
		"first link, at a split":  {"eth0", "round 40\n", false},
		"second link":             {"eth1", "round 3\n", false},
		"second link, at a split": {"eth1", "round 40\n", true},
		"first link, at the end":  {"eth0", "leaving", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !netns.Enter(t, "") {
				return
			}
			program, err := rankrun.Build("hosts", "tests/hosts/prog")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(program.Close)
			second, stop := netns.TwoHosts(t), filepath.Join(t.TempDir(), "stop")
			j := run(t, second, func(rank int) []string {
				return []string{"env", "NCCL_COMM_ID=10.1.0.1:29512", program.Path, fmt.Sprint(rank), fmt.Sprint(ranks), stop}
			})
			j.until(t, "round 3\n")
			if c.moment == "leaving" {
				j.stop(t, stop)
			}
			j.until(t, c.moment)
			if c.here {
				netns.Run(t, "ip link set "+c.link+" down")
			} else {
				netns.RunIn(t, second, "ip link set "+c.link+" down")
			}
			if c.moment != "leaving" {
				j.until(t, fmt.Sprintf("round %d\n", strings.Count(j.out[0].String(), "round")+50))
				j.stop(t, stop)
			}
			j.end(t)
			j.mustPass(t)
		})
	}
}

// stop ends the work of prog.
func (j *job) stop(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// All links are cut: every rank ends with an error that names a rank of the other host. Rank 0's process may have ended on its own
// error before the rank beside it has seen the cut; then that one names rank 0.
func TestAllLinksCut(t *testing.T) {
	if !netns.Enter(t, "") {
		return
	}
	j := start(t, netns.TwoHosts(t), "--json", "-b", "1K", "-e", "1M", "-f", "4", "-n", "20000", "-c", "10")
	j.until(t, `"kind":"run"`)
	netns.Run(t, "ip link set eth0 down; ip link set eth1 down")
	j.end(t)
	for r, code := range j.code {
		named, other := false, (1-r/2)*2
		for _, name := range []int{other, other + 1, 0} {
			named = named || name != r && strings.Contains(j.out[r].String(), fmt.Sprintf("rank %d of %d", name, ranks))
		}
		if code == 0 || !named {
			t.Errorf("rank %d ended with code %d and names no rank of the other host:\n%s", r, code, j)
		}
	}
}
