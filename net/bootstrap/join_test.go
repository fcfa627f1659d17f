package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// spread gives every rank a service of its own (as processes have), or all the
// same (as threads have), or two.
var spreads = map[string]func(t *testing.T, n int) []*Service{
	"processes": func(t *testing.T, n int) []*Service { return services(t, n, n, Options{}) },
	"threads":   func(t *testing.T, n int) []*Service { return services(t, n, 1, Options{}) },
	"mixed":     func(t *testing.T, n int) []*Service { return services(t, n, 2, Options{}) },
}

func services(t testing.TB, n, distinct int, opt Options) []*Service {
	var own []*Service
	for range distinct {
		own = append(own, newTestService(t, opt))
	}
	out := make([]*Service, n)
	for r := range out {
		out[r] = own[r%distinct]
	}
	return out
}

func checkGroup(t *testing.T, gs []*Group) {
	t.Helper()
	n := len(gs)
	ctx := testCtx(t)
	for _, err := range each(gs, func(g *Group) error {
		if g.NRanks() != n {
			return fmt.Errorf("nranks %d", g.NRanks())
		}
		for r, h := range g.Hellos() {
			if string(h) != fmt.Sprintf("hello of %d", r) {
				return fmt.Errorf("hello of %d is %q", r, h)
			}
		}
		for round := range 3 {
			in := bytes.Repeat([]byte{byte(g.Rank()), byte(round)}, 1+g.Rank()*100)
			all, err := g.AllGather(ctx, in)
			if err != nil {
				return err
			}
			for r, b := range all {
				if !bytes.Equal(b, bytes.Repeat([]byte{byte(r), byte(round)}, 1+r*100)) {
					return fmt.Errorf("round %d: part of rank %d is wrong", round, r)
				}
			}
		}
		next := (g.Rank() + 1) % n
		if err := g.Send(next, "ring", []byte{byte(g.Rank())}); err != nil {
			return err
		}
		m, err := g.Recv(ctx, (g.Rank()+n-1)%n, "ring")
		if err != nil {
			return err
		}
		if len(m) != 1 || int(m[0]) != (g.Rank()+n-1)%n {
			return fmt.Errorf("rank %d got message %v", g.Rank(), m)
		}
		return g.Barrier(ctx)
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestJoinByID(t *testing.T) {
	for name, spread := range spreads {
		for _, n := range []int{1, 2, 3, 8} {
			for creator := range min(n, 3) {
				t.Run(fmt.Sprintf("%s/%d ranks/creator %d", name, n, creator), func(t *testing.T) {
					svc := spread(t, n)
					id := mustID(t, svc[creator])
					gs := groups(t, joinAll(testCtx(t), n, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
					checkGroup(t, gs)
					closeAll(gs)
					for _, g := range gs {
						if g.Err() != nil {
							t.Errorf("rank %d: close looked like a failure: %v", g.Rank(), g.Err())
						}
					}
				})
			}
		}
	}
}

// The creator need not be a member: a launcher may make the id.
func TestCreatorOutside(t *testing.T) {
	maker := newTestService(t, Options{})
	svc := services(t, 4, 4, Options{})
	id := mustID(t, maker)
	gs := groups(t, joinAll(testCtx(t), 4, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	maker.Close() // all are initialised: it is not needed any more
	checkGroup(t, gs)
	closeAll(gs)
}

func TestSixtyFourThreads(t *testing.T) {
	s := newTestService(t, Options{})
	id := mustID(t, s)
	begin := time.Now()
	gs := groups(t, joinAll(testCtx(t), 64, func(int) *Service { return s }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	t.Logf("64 ranks of one process joined in %v", time.Since(begin))
	checkGroup(t, gs)
	closeAll(gs)
}

func TestSixtyFourServices(t *testing.T) {
	svc := services(t, 64, 64, Options{})
	id := mustID(t, svc[5])
	begin := time.Now()
	gs := groups(t, joinAll(testCtx(t), 64, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	t.Logf("64 ranks of 64 services joined in %v", time.Since(begin))
	checkGroup(t, gs)
	closeAll(gs)
}

func TestArguments(t *testing.T) {
	s := newTestService(t, Options{})
	id := mustID(t, s)
	broken := id
	broken[100]++
	for name, c := range map[string]struct {
		cfg  JoinConfig
		part string
	}{
		"rank is nranks": {JoinConfig{ID: id, Rank: 3, NRanks: 3}, "rank 3 is not from 0 to 2"},
		"rank negative":  {JoinConfig{ID: id, Rank: -1, NRanks: 3}, "rank -1"},
		"no ranks":       {JoinConfig{ID: id, Rank: 0, NRanks: 0}, "nranks 0"},
		"zero id":        {JoinConfig{Rank: 0, NRanks: 1}, "all zeros"},
		"half an id":     {JoinConfig{ID: broken, Rank: 0, NRanks: 1}, "checksum"},
		"huge hello":     {JoinConfig{ID: id, Rank: 0, NRanks: 1, Hello: make([]byte, 3<<20)}, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Join(testCtx(t), c.cfg)
			wantError(t, err, xerr.InvalidArgument, c.part)
		})
	}
}

func TestDisagreement(t *testing.T) {
	for name, spread := range spreads {
		t.Run(name+"/nranks", func(t *testing.T) {
			svc := spread(t, 3)
			id := mustID(t, svc[0])
			for _, j := range joinAll(testCtx(t), 3, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
				n := 4
				if r == 1 {
					n = 5
				}
				return JoinConfig{ID: id, Rank: r, NRanks: n}
			}) {
				wantError(t, j.err, xerr.InvalidUsage, "nranks 4", "nranks 5", "rank 1")
			}
		})
		t.Run(name+"/duplicate", func(t *testing.T) {
			svc := spread(t, 3)
			id := mustID(t, svc[0])
			for _, j := range joinAll(testCtx(t), 3, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
				return JoinConfig{ID: id, Rank: min(r, 1), NRanks: 3}
			}) {
				wantError(t, j.err, xerr.InvalidUsage, "rank 1 of 3", "pid")
			}
		})
	}
}

func TestIDUsedTwice(t *testing.T) {
	svc := services(t, 2, 2, Options{})
	pick := func(r int) *Service { return svc[r] }
	id := mustID(t, svc[0])
	cfg := func(int) JoinConfig { return JoinConfig{ID: id} }
	gs := groups(t, joinAll(testCtx(t), 2, pick, cfg))
	for _, j := range joinAll(testCtx(t), 2, pick, cfg) {
		wantError(t, j.err, xerr.InvalidUsage, "already used", "all 2 ranks", "in use")
	}
	checkGroup(t, gs)
	closeAll(gs)
	for _, j := range joinAll(testCtx(t), 2, pick, cfg) {
		wantError(t, j.err, xerr.InvalidUsage, "already used", "destroyed")
	}
}

// Every rank made its own id: each waits alone in its own room.
func TestEveryRankItsOwnID(t *testing.T) {
	svc := services(t, 2, 2, Options{})
	ids := []ID{mustID(t, svc[0]), mustID(t, svc[1])}
	out := joinAll(testCtx(t), 2, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
		return JoinConfig{ID: ids[r], Timeout: 200 * time.Millisecond}
	})
	for r, j := range out {
		wantError(t, j.err, xerr.Timeout, fmt.Sprintf("rank %d of 2 never connected", 1-r), "1 of 2", "id made by pid")
	}
}

func TestMissingRankIsNamedOnAll(t *testing.T) {
	for name, spread := range spreads {
		t.Run(name, func(t *testing.T) {
			svc := spread(t, 4)
			id := mustID(t, svc[1])
			for _, j := range joinAll(testCtx(t), 3, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
				return JoinConfig{ID: id, Rank: r, NRanks: 4, Timeout: 300 * time.Millisecond}
			}) {
				wantError(t, j.err, xerr.Timeout, "rank 3 of 4 never connected", "came: 3 of 4, 0-2")
			}
		})
	}
}

func TestMissingRankIsReported(t *testing.T) {
	logs := []*logLines{{}, {}}
	var svc []*Service
	for _, l := range logs {
		svc = append(svc, newTestService(t, Options{Log: l.log, ReportAfter: []time.Duration{20 * time.Millisecond, 60 * time.Millisecond}}))
	}
	id := mustID(t, svc[0])
	out := joinAll(testCtx(t), 2, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
		return JoinConfig{ID: id, Rank: r, NRanks: 3, Timeout: 500 * time.Millisecond}
	})
	for r, l := range logs {
		wantError(t, out[r].err, xerr.Timeout, "rank 2 of 3")
		if got := l.matching("rank 2 of 3 not yet connected (came: 0-1)"); got < 2 {
			t.Errorf("service %d named the missing rank %d times: %q", r, got, l.lines)
		}
	}
}

func TestCreatorGone(t *testing.T) {
	maker := newTestService(t, Options{})
	id := mustID(t, maker)
	maker.Close()
	s := newTestService(t, Options{RefusedLimit: 100 * time.Millisecond})
	_, err := s.Join(testCtx(t), JoinConfig{ID: id, Rank: 1, NRanks: 2})
	wantError(t, err, xerr.Remote, "id made by pid", "0 of 2", "connection refused", "gone")
}

// Another process listens where the creator did.
func TestCreatorReplaced(t *testing.T) {
	maker := newTestService(t, Options{})
	id := mustID(t, maker)
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	port := int(info.room.Addrs[0].Port())
	maker.Close()
	other := newTestService(t, Options{PortMin: port, PortMax: port})
	mustID(t, other)
	s := newTestService(t, Options{RefusedLimit: 100 * time.Millisecond})
	_, err = s.Join(testCtx(t), JoinConfig{ID: id, Rank: 1, NRanks: 2})
	wantError(t, err, xerr.Remote, "does not know this id")
}

func TestCancelIsPromptAndEndsTheOthers(t *testing.T) {
	svc := services(t, 3, 3, Options{})
	id := mustID(t, svc[0])
	ctx, cancel := context.WithCancel(testCtx(t))
	h, _ := svc[0].find(roomIDOf(t, id))
	first := make(chan joined, 1)
	go func() {
		g, err := svc[1].Join(ctx, JoinConfig{ID: id, Rank: 1, NRanks: 3})
		first <- joined{g, err}
	}()
	second := make(chan joined, 1)
	go func() {
		g, err := svc[0].Join(testCtx(t), JoinConfig{ID: id, Rank: 0, NRanks: 3})
		second <- joined{g, err}
	}()
	waitFor(t, "two ranks come", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.peers) == 2
	})
	cancel()
	a, b := <-first, <-second
	wantError(t, a.err, xerr.InvalidUsage, "given up", "rank 1")
	if !errors.Is(a.err, context.Canceled) {
		t.Errorf("%v does not wrap context.Canceled", a.err)
	}
	wantError(t, b.err, xerr.Remote, "rank 1", "gave up")
	_, err := svc[2].Join(testCtx(t), JoinConfig{ID: id, Rank: 2, NRanks: 3})
	wantError(t, err, xerr.Remote, "rank 1", "gave up")
}

func roomIDOf(t *testing.T, id ID) RoomID {
	t.Helper()
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return info.room.ID
}

// A cancelled search for a host that never answers ends as well.
func TestCancelWhileSearching(t *testing.T) {
	maker := newTestService(t, Options{})
	id := mustID(t, maker)
	maker.Close()
	s := newTestService(t, Options{})
	ctx, cancel := context.WithCancel(testCtx(t))
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := s.Join(ctx, JoinConfig{ID: id, Rank: 1, NRanks: 2})
	wantError(t, err, xerr.InvalidUsage, "given up")
}

func TestNoLeakAfterClose(t *testing.T) {
	cycle := func() {
		svc := make([]*Service, 4)
		for r := range svc {
			s, err := NewService(Options{Timeout: testDeadline})
			if err != nil {
				t.Fatal(err)
			}
			svc[r] = s
		}
		id := mustID(t, svc[1])
		gs := groups(t, joinAll(testCtx(t), 8, func(r int) *Service { return svc[r%4] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
		closeAll(gs)
		for _, s := range svc {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle()
	fds := openDescriptors(t)
	goroutines := runtime.NumGoroutine()
	for range 5 {
		cycle()
	}
	waitFor(t, "descriptors and goroutines are back", func() bool {
		return openDescriptors(t) <= fds && runtime.NumGoroutine() <= goroutines
	})
}

// Groups come and go on services that stay.
func TestNoLeakOfGroups(t *testing.T) {
	svc := services(t, 4, 2, Options{})
	cycle := func() {
		id := mustID(t, svc[0])
		closeAll(groups(t, joinAll(testCtx(t), 4, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} })))
	}
	cycle()
	var fds, goroutines int
	waitFor(t, "a quiet start", func() bool {
		f, g := openDescriptors(t), runtime.NumGoroutine()
		quiet := f == fds && g == goroutines
		fds, goroutines = f, g
		return quiet
	})
	for range 50 {
		cycle()
	}
	waitFor(t, "descriptors and goroutines are back", func() bool {
		return openDescriptors(t) <= fds && runtime.NumGoroutine() <= goroutines
	})
}
