package bootstrap

import (
	"bufio"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// The tests of this file run the test binary again as ranks of their own.
var childRole = flag.String("child", "", "what this process is in a test of several processes")

func TestMain(m *testing.M) {
	flag.Parse()
	if *childRole != "" {
		os.Exit(child(strings.Fields(*childRole)))
	}
	os.Exit(m.Run())
}

func child(role []string) int {
	time.AfterFunc(3*testDeadline, func() { // nobody is left behind
		panic("the child has outlived its test")
	})
	switch role[0] {
	case "rank":
		return childRank(role[1:])
	case "limit":
		return childLimit()
	case "namespace":
		return childNamespace(role[1])
	}
	fmt.Println("error unknown role", role)
	return 2
}

// childRank joins as rank args[0] of args[1], waiting args[2] at most. Lines of
// standard input tell it what to do, lines of standard output what happened.
func childRank(args []string) int {
	rank, _ := strconv.Atoi(args[0])
	nranks, _ := strconv.Atoi(args[1])
	timeout, _ := time.ParseDuration(args[2])
	opt := Options{Log: func(_ Level, line string) { fmt.Println("log", line) }}
	for i := range 100 {
		opt.ReportAfter = append(opt.ReportAfter, time.Duration(i+1)*100*time.Millisecond)
	}
	s, err := NewService(opt)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	var id ID
	var g *Group
	for in.Scan() {
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "make":
			if id, err = s.NewID(); err == nil {
				fmt.Println("id", hex.EncodeToString(id[:]))
			}
		case "join":
			b, _ := hex.DecodeString(rest)
			copy(id[:], b)
			fmt.Println("joining")
			begin := time.Now()
			if g, err = s.Join(context.Background(), JoinConfig{ID: id, Rank: rank, NRanks: nranks, Timeout: timeout}); err == nil {
				fmt.Println("joined", time.Since(begin))
				g.OnFailure(func(r int, err error) { fmt.Println("failed", r, int(xerr.CodeOf(err)), err) })
			}
		case "barrier":
			if err = g.Barrier(context.Background()); err == nil {
				fmt.Println("barrier done")
			}
		case "close":
			if err := g.Close(); err != nil {
				fmt.Println("error", int(xerr.CodeOf(err)), err)
			}
			fmt.Println("closed")
			return 0
		}
		if err != nil {
			fmt.Println("error", int(xerr.CodeOf(err)), err)
			err = nil
		}
	}
	return 0
}

// proc is one child process.
type proc struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func startProc(t *testing.T, role string) *proc {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{t: t, cmd: exec.Command(self, "-child", role), lines: make(chan string, 100)}
	p.cmd.Stderr = os.Stderr
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
		defer close(p.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

func (p *proc) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// line waits for the next line that wanted accepts.
func (p *proc) line(what string, wanted func(string) bool) string {
	p.t.Helper()
	timer := time.NewTimer(testDeadline)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the child ended, want %q", what)
			}
			if wanted(line) {
				return line
			}
		case <-timer.C:
			p.t.Fatalf("the child does not say %q", what)
		}
	}
}

// expect wants the next line that is no log line to begin with word and to
// have all parts.
func (p *proc) expect(word string, parts ...string) string {
	p.t.Helper()
	line := p.line(word, func(s string) bool { return !strings.HasPrefix(s, "log ") })
	if !strings.HasPrefix(line, word) {
		p.t.Fatalf("the child says %q, want %q", line, word)
	}
	for _, part := range parts {
		if !strings.Contains(line, part) {
			p.t.Errorf("%q does not say %q", line, part)
		}
	}
	return line
}

// expectLog waits for a log line with the text.
func (p *proc) expectLog(text string) {
	p.t.Helper()
	p.line(text, func(s string) bool { return strings.HasPrefix(s, "log ") && strings.Contains(s, text) })
}

func (p *proc) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}

// startRanks starts n processes and has creator make the id.
func startRanks(t *testing.T, n, creator int, timeout string) ([]*proc, string) {
	t.Helper()
	var ps []*proc
	for r := range n {
		ps = append(ps, startProc(t, fmt.Sprintf("rank %d %d %s", r, n, timeout)))
	}
	ps[creator].tell("make")
	return ps, strings.TrimPrefix(ps[creator].expect("id "), "id ")
}

func joinRanks(ps []*proc, id string) {
	for _, p := range ps {
		p.tell("join " + id)
	}
	for _, p := range ps {
		p.expect("joining")
	}
}

func TestProcesses(t *testing.T) {
	ps, id := startRanks(t, 8, 3, "20s")
	joinRanks(ps, id)
	for r, p := range ps {
		if line := p.expect("joined"); r < 2 {
			t.Logf("rank %d %s", r, line)
		}
		p.tell("barrier")
	}
	for _, p := range ps {
		p.expect("barrier done")
	}
	for _, p := range ps { // one after the other: goodbyes are no failures
		p.tell("close")
		p.expect("closed")
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestKilledBeforeCompletion(t *testing.T) {
	ps, id := startRanks(t, 4, 1, "20s")
	joinRanks(ps[:3], id)
	ps[1].expectLog("rank 3 of 4 not yet connected (came: 0-2)")
	ps[2].kill()
	for r, p := range ps[:2] {
		line := p.expect(fmt.Sprintf("error %d", xerr.Remote), "rank 2 (", fmt.Sprintf("pid %d", ps[2].cmd.Process.Pid), "rank 3 of 4")
		t.Logf("rank %d: %s", r, line)
	}
	ps[3].tell("join " + id)
	ps[3].expect("joining")
	ps[3].expect(fmt.Sprintf("error %d", xerr.Remote), "rank 2 (")
}

func TestKilledAfterCompletion(t *testing.T) {
	for _, dead := range []int{0, 2} {
		t.Run(fmt.Sprintf("rank %d", dead), func(t *testing.T) {
			ps, id := startRanks(t, 4, 0, "20s")
			joinRanks(ps, id)
			for _, p := range ps {
				p.expect("joined")
			}
			begin := time.Now()
			ps[dead].kill()
			for r, p := range ps {
				if r != dead {
					p.expect(fmt.Sprintf("failed %d %d", dead, xerr.Remote), fmt.Sprintf("rank %d (", dead), fmt.Sprintf("pid %d", ps[dead].cmd.Process.Pid))
				}
			}
			t.Logf("all knew after %v", time.Since(begin))
		})
	}
}

// The creator dies although ranks still wait in its room.
func TestCreatorKilled(t *testing.T) {
	ps, id := startRanks(t, 3, 2, "20s")
	joinRanks(ps[:1], id)
	ps[0].expectLog("ranks 1-2 of 3 not yet connected (came: 0)") // the host tells it
	ps[2].kill()
	ps[0].expect(fmt.Sprintf("error %d", xerr.Remote), "host of this group", "gone")
}

// childLimit opens groups until descriptors run out.
func childLimit() int {
	lim := syscall.Rlimit{Cur: 40, Max: 40}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		fmt.Println("error", err)
		return 1
	}
	a, _ := NewService(Options{Timeout: 2 * time.Second})
	b, _ := NewService(Options{Timeout: 2 * time.Second})
	for range 40 {
		id, err := a.NewID()
		if err != nil {
			fmt.Println("limit", err)
			return 0
		}
		other := make(chan error, 1)
		go func() {
			_, err := b.Join(context.Background(), JoinConfig{ID: id, Rank: 1, NRanks: 2})
			other <- err
		}()
		_, err0 := a.Join(context.Background(), JoinConfig{ID: id, Rank: 0, NRanks: 2})
		if err1 := <-other; err0 != nil || err1 != nil {
			fmt.Println("limit", err1, "|", err0)
			return 0
		}
	}
	fmt.Println("error the limit was never reached")
	return 1
}

func TestDescriptorLimitIsNamed(t *testing.T) {
	p := startProc(t, "limit")
	p.expect("limit", "the limit on open files is 40", "ulimit -n")
}
