package comm

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
	"github.com/gccl/gccl/topo"
)

const rankEnv = "GCCL_TEST_RANK"

// TestMain lets the test binary be a rank: it obeys one command a line and answers each with one line.
func TestMain(m *testing.M) {
	spec := os.Getenv(rankEnv)
	if spec == "" {
		os.Exit(m.Run())
	}
	if err := beRank(spec, os.Stdin, os.Stdout); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func beRank(spec string, in io.Reader, out io.Writer) error {
	var rank, nranks int
	var text string
	if _, err := fmt.Sscanf(spec, "%d %d %s", &rank, &nranks, &text); err != nil {
		return err
	}
	var id bootstrap.ID
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return err
	}
	e := NewEngine(Options{Build: "test"})
	cfg := UndefConfig()
	if err := e.Resolve(&cfg, nil); err != nil {
		return err
	}
	c := e.New(control.New())
	fmt.Fprintln(out, "started")
	if err := c.Init(nranks, rank, [][bootstrap.IDBytes]byte{id}, cfg); err != nil {
		fmt.Fprintf(out, "failed %d %v\n", xerr.CodeOf(err), err)
		return nil
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch word {
		case "destroy":
			err = c.Destroy()
		case "abort":
			err = c.Abort()
		case "cause": // waits for a failure and tells it
			for c.ctl.Error() <= 0 {
				time.Sleep(time.Millisecond)
			}
			fmt.Fprintf(out, "ok %d abort %v: %s\n", c.ctl.Error(), c.ctl.Aborted(), c.ctl.Cause())
			continue
		case "shrink": // replaces the communicator
			var out int
			if _, err = fmt.Sscan(rest, &out); err != nil {
				break
			}
			child := e.New(control.New())
			if err = c.Shrink(child, []int{out}, ShrinkAbort, cfg); err == nil {
				err = c.Abort()
				c = child
			}
		case "left":
			areas, peers := Leftovers()
			fmt.Fprintf(out, "ok areas %d peers %d\n", areas, peers)
			continue
		case "measure":
			var m topo.Measured
			if _, err = fmt.Sscan(rest, &m.Link, &m.GBs); err == nil {
				e.Measure(m)
			}
		case "reweigh":
			if _, err = c.Reweigh(context.Background()); err != nil {
				break
			}
			text := "no topology"
			if c.machine != nil {
				text = strings.ReplaceAll(c.machine.channels, "\n", "; ")
			}
			fmt.Fprintf(out, "ok %s\n", text)
			continue
		default:
			err = fmt.Errorf("unknown command %q", word)
		}
		if err != nil {
			fmt.Fprintf(out, "failed %d %v\n", xerr.CodeOf(err), err)
		} else {
			fmt.Fprintf(out, "ok rank %d of %d\n", c.Rank(), c.NRanks())
		}
	}
	return nil
}

// rankProcess is a rank in a process of its own.
type rankProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out chan string
}

func startRank(t *testing.T, rank, nranks int, id bootstrap.ID, env ...string) *rankProcess {
	t.Helper()
	p := &rankProcess{t: t, cmd: exec.Command(os.Args[0]), out: make(chan string, 64)}
	p.cmd.Env = append(append(os.Environ(), env...), fmt.Sprintf("%s=%d %d %x", rankEnv, rank, nranks, id[:]))
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.out)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.out <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	if got := p.answer(); got != "started" {
		t.Fatalf("rank %d said %q", rank, got)
	}
	return p
}

func (p *rankProcess) tell(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatal(err)
	}
}

func (p *rankProcess) answer() string {
	p.t.Helper()
	select {
	case s, ok := <-p.out:
		if !ok {
			return "gone"
		}
		return s
	case <-time.After(20 * time.Second):
		p.t.Fatal("a rank does not answer")
	}
	return ""
}

func (p *rankProcess) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func startRanks(t *testing.T, n int, env ...string) []*rankProcess {
	t.Helper()
	e := testEngine(t)
	id, err := e.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	ps := make([]*rankProcess, n)
	for r := range ps {
		ps[r] = startRank(t, r, n, id, env...)
	}
	for r, p := range ps {
		if got := p.answer(); got != "ready" {
			t.Fatalf("rank %d: %s", r, got)
		}
	}
	return ps
}

func TestProcesses(t *testing.T) {
	ps := startRanks(t, 4)
	for r, p := range ps { // one after the other: destroy is local
		p.tell("destroy")
		if got := p.answer(); got != fmt.Sprintf("ok rank %d of 4", r) {
			t.Fatalf("rank %d: %s", r, got)
		}
	}
	for r, p := range ps {
		p.tell("left")
		if got := p.answer(); got != "ok areas 0 peers 0" {
			t.Errorf("rank %d: %s", r, got)
		}
	}
}

// Processes merge their views, and what one has measured moves the channels of all.
func TestProcessesReweigh(t *testing.T) {
	const n = 4
	ps := startRanks(t, n, "NCCL_TOPO_FILE="+meshFile(t, n))
	ask := func() string {
		t.Helper()
		for _, p := range ps {
			p.tell("reweigh")
		}
		first := ps[0].answer()
		for r, p := range ps[1:] {
			if got := p.answer(); got != first {
				t.Fatalf("rank %d has\n%s\nrank 0\n%s", r+1, got, first)
			}
		}
		return first
	}
	before := ask()
	if !strings.HasPrefix(before, "ok pattern 4: ") {
		t.Fatal(before)
	}
	for _, link := range []string{"DEV/0-1000>DEV/0-2000", "DEV/0-2000>DEV/0-1000"} {
		ps[3].tell("measure " + link + " 1.5")
		if got := ps[3].answer(); got != "ok rank 3 of 4" {
			t.Fatal(got)
		}
	}
	if after := ask(); after == before {
		t.Errorf("the channels stay:\n%s", after)
	}
	for _, p := range ps {
		p.tell("destroy")
	}
	for r, p := range ps {
		if got := p.answer(); got != fmt.Sprintf("ok rank %d of %d", r, n) {
			t.Error(got)
		}
	}
}

// A killed rank is named on all others, abort returns, and the survivors go on in a smaller communicator, also
// without the rank 0 that held the control connections.
func TestKilledRank(t *testing.T) {
	for _, victim := range []int{2, 0} {
		t.Run(rankName(victim), func(t *testing.T) {
			ps := startRanks(t, 3)
			pid := ps[victim].cmd.Process.Pid
			ps[victim].kill()
			var live []*rankProcess
			for r, p := range ps {
				if r != victim {
					live = append(live, p)
				}
			}
			for _, p := range live {
				p.tell("cause")
			}
			for _, p := range live {
				got := p.answer()
				for _, part := range []string{"ok 6 abort true", fmt.Sprintf("rank %d of 3", victim), fmt.Sprintf("pid %d", pid)} {
					if !strings.Contains(got, part) {
						t.Errorf("%q does not say %q", got, part)
					}
				}
				p.tell("destroy")
				if got := p.answer(); !strings.HasPrefix(got, "failed 6") {
					t.Errorf("destroy of a failed communicator: %s", got)
				}
			}
			for _, p := range live {
				p.tell(fmt.Sprintf("shrink %d", victim))
			}
			for i, p := range live {
				if got := p.answer(); got != fmt.Sprintf("ok rank %d of 2", i) {
					t.Errorf("after the shrink: %s", got)
				}
			}
			for _, p := range live {
				p.tell("destroy")
				if got := p.answer(); !strings.HasPrefix(got, "ok") {
					t.Error(got)
				}
			}
		})
	}
}

// A rank that dies after rank 0 has left in order is named on the rest too, and one that leaves in order is not.
func TestKilledAfterRankZeroLeft(t *testing.T) {
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err != nil {
		t.Skipf("pidfd_open: %v", err)
	} else {
		_ = unix.Close(fd)
	}
	ps := startRanks(t, 4)
	for _, r := range []int{0, 1} {
		ps[r].tell("destroy")
		if got := ps[r].answer(); !strings.HasPrefix(got, "ok") {
			t.Fatalf("rank %d: %s", r, got)
		}
		ps[r].kill()
	}
	pid := ps[2].cmd.Process.Pid
	ps[2].kill()
	ps[3].tell("cause")
	got := ps[3].answer()
	for _, part := range []string{"ok 6 abort true", "rank 2 of 4", fmt.Sprintf("pid %d", pid), "has ended"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// A rank that dies before all have come ends the init of the others, at the latest at the deadline, with a text that
// names who is missing.
func TestKilledDuringInit(t *testing.T) {
	e := testEngine(t)
	id, err := e.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	const soon = "GCCL_INIT_TIMEOUT=2s"
	ps := []*rankProcess{startRank(t, 0, 3, id, soon), startRank(t, 1, 3, id, soon)}
	ps[1].kill()
	if got := ps[0].answer(); !strings.HasPrefix(got, "failed") || !strings.Contains(got, "2 of 3") && !strings.Contains(got, "1-2 of 3") {
		t.Errorf("rank 0: %s", got)
	}
}
