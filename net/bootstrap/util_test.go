package bootstrap

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// testDeadline bounds every wait of a test; it is never reached by a right one.
const testDeadline = 20 * time.Second

// logLines collects the log of a service.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) log(_ Level, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *logLines) matching(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.lines {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func newTestService(t testing.TB, opt Options) *Service {
	t.Helper()
	if opt.Timeout == 0 {
		opt.Timeout = testDeadline
	}
	s, err := NewService(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func testCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// joined is what one rank got from Join.
type joined struct {
	g   *Group
	err error
}

// joinAll has rank r join by its service svc(r).
func joinAll(ctx context.Context, n int, svc func(rank int) *Service, cfg func(rank int) JoinConfig) []joined {
	out := make([]joined, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := cfg(r)
			if c.NRanks == 0 {
				c.Rank, c.NRanks = r, n
			}
			if c.Hello == nil {
				c.Hello = []byte(fmt.Sprintf("hello of %d", r))
			}
			out[r].g, out[r].err = svc(r).Join(ctx, c)
		}()
	}
	wg.Wait()
	return out
}

// groups fails the test unless all have joined.
func groups(t testing.TB, all []joined) []*Group {
	t.Helper()
	var out []*Group
	for r, j := range all {
		if j.err != nil {
			t.Fatalf("rank %d: %v", r, j.err)
		}
		out = append(out, j.g)
	}
	return out
}

func closeAll(gs []*Group) {
	var wg sync.WaitGroup
	for _, g := range gs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			g.Close()
		}()
	}
	wg.Wait()
}

func mustID(t testing.TB, s *Service) ID {
	t.Helper()
	id, err := s.NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// memberConn is a connection that has proved a room's secret.
func memberConn(t testing.TB, s *Service, room Room) stdnet.Conn {
	t.Helper()
	d := &dialer{svc: s, room: room}
	conn, err := d.connect(testCtx(t), targetsOf(room.Addrs, s.interfaces()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// memberLink is the link of a member that is made by hand.
func memberLink(t testing.TB, s *Service, room Room) *tcpLink {
	t.Helper()
	l, err := s.newMemberLink(memberConn(t, s, room), room, room.Addrs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantError fails unless err has the code and all parts of the text.
func wantError(t testing.TB, err error, code xerr.Code, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v with %q", code, parts)
	}
	if !errors.Is(err, code) {
		t.Errorf("code of %q is not %v", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

// waitFor polls cond until it holds; the pause only yields the processor.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(testDeadline); !cond(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", testDeadline, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	es, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

// each runs f for every group at once and returns the errors by rank.
func each(gs []*Group, f func(g *Group) error) []error {
	errs := make([]error, len(gs))
	var wg sync.WaitGroup
	for i, g := range gs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = f(g)
		}()
	}
	wg.Wait()
	return errs
}
