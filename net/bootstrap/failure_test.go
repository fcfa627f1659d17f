package bootstrap

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// joinGroup makes a complete group of n ranks on services of their own.
func joinGroup(t *testing.T, n int) ([]*Group, []*Service) {
	t.Helper()
	svc := services(t, n, n, Options{})
	id := mustID(t, svc[0])
	return groups(t, joinAll(testCtx(t), n, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} })), svc
}

// failures collects what OnFailure says.
func failures(g *Group) <-chan failure {
	c := make(chan failure, 16)
	g.OnFailure(func(rank int, err error) { c <- failure{rank, err} })
	return c
}

func next(t *testing.T, c <-chan failure) failure {
	t.Helper()
	select {
	case f := <-c:
		return f
	case <-time.After(testDeadline):
		t.Fatal("no failure was told")
		return failure{}
	}
}

func TestLostMemberIsToldToAll(t *testing.T) {
	for _, dead := range []int{0, 2} {
		t.Run(fmt.Sprintf("rank %d", dead), func(t *testing.T) {
			gs, svc := joinGroup(t, 4)
			var told []<-chan failure
			for _, g := range gs {
				told = append(told, failures(g))
			}
			waiting := make(chan error, 1)
			go func() { waiting <- gs[3].Barrier(testCtx(t)) }()
			if dead == 0 {
				svc[0].Close() // takes the hub along, as the end of the process does
			} else {
				gs[dead].link.close()
			}
			for r := range gs {
				if r == dead {
					continue
				}
				f := next(t, told[r])
				if f.rank != dead {
					t.Errorf("rank %d was told of rank %d: %v", r, f.rank, f.err)
				}
				wantError(t, f.err, xerr.Remote, fmt.Sprintf("rank %d (", dead), "pid", "without goodbye")
				wantError(t, gs[r].Err(), xerr.Remote, fmt.Sprintf("rank %d (", dead))
			}
			wantError(t, <-waiting, xerr.Remote, fmt.Sprintf("rank %d (", dead))
			_, err := gs[1].AllGather(testCtx(t), nil)
			wantError(t, err, xerr.Remote, fmt.Sprintf("rank %d (", dead))
			if dead == 2 {
				wantError(t, gs[1].Send(2, "", nil), xerr.Remote)
				if err := gs[1].Send(3, "", nil); err != nil {
					t.Errorf("rank 1 cannot reach rank 3: %v", err)
				}
				late := next(t, failures(gs[1]))
				if late.rank != 2 {
					t.Errorf("a late watcher was told of rank %d", late.rank)
				}
				// A second failure is news of its own; the first stays the cause.
				gs[3].link.close()
				if f := next(t, told[1]); f.rank != 3 {
					t.Errorf("second failure is of rank %d", f.rank)
				}
				wantError(t, gs[1].Err(), xerr.Remote, "rank 2 (")
			}
			closeAll(gs)
		})
	}
}

func TestFailAndAbortReachAllWithCodeAndText(t *testing.T) {
	for name, end := range map[string]func(*Group, error){"fail": (*Group).Fail, "abort": (*Group).Abort} {
		for _, by := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s by %d", name, by), func(t *testing.T) {
				gs, _ := joinGroup(t, 3)
				var told []<-chan failure
				for _, g := range gs {
					told = append(told, failures(g))
				}
				end(gs[by], xerr.New(xerr.InvalidUsage, "ncclCommInitRank", "NCCL_ALGO differs: rank 0 ring, rank 1 tree"))
				for r := range gs {
					f := next(t, told[r])
					if f.rank != by {
						t.Errorf("rank %d was told of rank %d", r, f.rank)
					}
					wantError(t, f.err, xerr.InvalidUsage, "rank 0 ring, rank 1 tree")
				}
				closeAll(gs)
			})
		}
	}
}

func TestGoodbyeIsNoFailure(t *testing.T) {
	for _, leaver := range []int{0, 1} {
		t.Run(fmt.Sprintf("rank %d leaves", leaver), func(t *testing.T) {
			gs, svc := joinGroup(t, 3)
			gs[leaver].Close()
			gs[leaver].Close()
			svc[leaver].Close() // as if its process had ended
			for r, g := range gs {
				if r == leaver {
					continue
				}
				_, err := g.AllGather(testCtx(t), nil)
				wantError(t, err, xerr.InvalidUsage, fmt.Sprintf("rank %d (", leaver), "closed the communicator")
				if g.Err() != nil {
					t.Errorf("rank %d sees a failure: %v", r, g.Err())
				}
			}
			_, err := gs[leaver].AllGather(testCtx(t), nil)
			wantError(t, err, xerr.InvalidUsage, "this rank has closed")
			closeAll(gs)
		})
	}
}

// A rank that ends before all have come ends the init of all at once.
func TestDeathBeforeCompletion(t *testing.T) {
	svc := services(t, 3, 3, Options{})
	id := mustID(t, svc[0])
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := svc[1].Join(testCtx(t), JoinConfig{ID: id, Rank: 1, NRanks: 3})
		waiting <- err
	}()
	h, _ := svc[0].find(info.room.ID)
	waitFor(t, "rank 1 has come", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.peers[1] != nil
	})
	l := memberLink(t, svc[2], info.room)
	l.send(frame{kindRegister, registration{nranks: 3, timeout: time.Minute, member: Member{Rank: 2, Host: "node7", PID: 4242}}.encode()})
	waitFor(t, "rank 2 has come", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.peers[2] != nil
	})
	l.close()
	wantError(t, <-waiting, xerr.Remote, "rank 2 (node7, pid 4242)", "2 of 3 ranks had come", "rank 0 of 3 had not")
	_, err = svc[0].Join(testCtx(t), JoinConfig{ID: id, Rank: 0, NRanks: 3})
	wantError(t, err, xerr.Remote, "rank 2 (node7, pid 4242)")
}

// A rank that dies between the creator's room and rank 0 ends the init, too.
func TestDeathDuringHandover(t *testing.T) {
	svc := services(t, 3, 3, Options{})
	id := mustID(t, svc[1])
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	l := memberLink(t, svc[2], info.room)
	l.send(frame{kindRegister, registration{nranks: 3, timeout: time.Minute, member: Member{Rank: 2, Host: "node7", PID: 4242}}.encode()})
	go func() {
		for {
			f, err := l.recv()
			if err != nil || f.kind == kindTable {
				l.close()
				return
			}
		}
	}()
	for _, j := range joinAll(testCtx(t), 2, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
		return JoinConfig{ID: id, Rank: r, NRanks: 3}
	}) {
		wantError(t, j.err, xerr.Remote, "rank 2 (node7, pid 4242)")
	}
}

func TestExchangeTimeoutNamesTheMissing(t *testing.T) {
	svc := services(t, 3, 3, Options{})
	id := mustID(t, svc[0])
	gs := groups(t, joinAll(testCtx(t), 3, func(r int) *Service { return svc[r] }, func(int) JoinConfig {
		return JoinConfig{ID: id, Timeout: 500 * time.Millisecond}
	}))
	for _, err := range each(gs[:2], func(g *Group) error {
		_, err := g.AllGatherTag(testCtx(t), "split", []byte{1})
		return err
	}) {
		wantError(t, err, xerr.Timeout, "rank 2 of 3 did not come", "came: 0-1")
	}
	closeAll(gs)
}

func TestTagsDoNotMix(t *testing.T) {
	gs, _ := joinGroup(t, 2)
	ctx := testCtx(t)
	for _, err := range each(gs, func(g *Group) error {
		tags := []string{"a", "b"}
		if g.Rank() == 1 {
			tags = []string{"b", "a"}
		}
		errs := make(chan error, 2)
		for _, tag := range tags {
			go func() {
				all, err := g.AllGatherTag(ctx, tag, []byte(tag))
				if err == nil && (string(all[0]) != tag || string(all[1]) != tag) {
					err = fmt.Errorf("exchange %s got %q", tag, all)
				}
				errs <- err
			}()
		}
		if err := <-errs; err != nil {
			return err
		}
		return <-errs
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	closeAll(gs)
}

func TestWaitsEndWithContext(t *testing.T) {
	gs, _ := joinGroup(t, 2)
	ctx, cancel := context.WithCancel(testCtx(t))
	cancel()
	_, err := gs[0].AllGather(ctx, nil)
	wantError(t, err, xerr.InvalidUsage, "given up")
	_, err = gs[0].Recv(ctx, 1, "x")
	wantError(t, err, xerr.InvalidUsage, "message of rank 1")
	closeAll(gs)
}

func TestMessages(t *testing.T) {
	gs, _ := joinGroup(t, 3)
	for i := range 10 {
		if err := gs[1].Send(2, "k", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := gs[1].Send(1, "self", []byte("me")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		m, err := gs[2].Recv(testCtx(t), 1, "k")
		if err != nil || len(m) != 1 || m[0] != byte(i) {
			t.Fatalf("message %d: %v %v", i, m, err)
		}
	}
	if m, err := gs[1].Recv(testCtx(t), 1, "self"); err != nil || string(m) != "me" {
		t.Fatalf("message to self: %q %v", m, err)
	}
	wantError(t, gs[0].Send(3, "", nil), xerr.InvalidArgument, "rank 3 of 3")
	_, err := gs[0].Recv(testCtx(t), -1, "")
	wantError(t, err, xerr.InvalidArgument, "rank -1")
	closeAll(gs)
}

// Survivors alone make a new group although the parent's rank 0 is dead.
func TestChildOfSurvivors(t *testing.T) {
	gs, svc := joinGroup(t, 4)
	told := []<-chan failure{nil, failures(gs[1]), failures(gs[2]), failures(gs[3])}
	svc[0].Close()
	for r := 1; r < 4; r++ {
		next(t, told[r])
	}
	child := groups(t, joinAll(testCtx(t), 3, func(r int) *Service { return svc[r+1] }, func(r int) JoinConfig {
		room := gs[r+1].Derive([]byte("shrink 1")).At(gs[r+1].ServiceAddrs(1))
		return JoinConfig{Room: &room}
	}))
	closeAll(gs)
	checkGroup(t, child)
	closeAll(child)
}

// Two children at once, and one rank of its own; threads of one process.
func TestSplitOfThreads(t *testing.T) {
	s := newTestService(t, Options{})
	id := mustID(t, s)
	gs := groups(t, joinAll(testCtx(t), 5, func(int) *Service { return s }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	children := make([]*Group, 5)
	for _, err := range each(gs, func(g *Group) (err error) {
		colour := g.Rank() % 2
		sizes := []int{3, 2}
		room := g.Derive([]byte(fmt.Sprintf("split %d", colour))).At(g.ServiceAddrs(colour))
		children[g.Rank()], err = s.Join(testCtx(t), JoinConfig{Room: &room, Rank: g.Rank() / 2, NRanks: sizes[colour], Hello: []byte(fmt.Sprintf("hello of %d", g.Rank()/2))})
		return err
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	closeAll(gs)
	checkGroup(t, []*Group{children[0], children[2], children[4]})
	checkGroup(t, []*Group{children[1], children[3]})
	closeAll(children)
}

func TestDeriveIsSecretAndAgreed(t *testing.T) {
	gs, _ := joinGroup(t, 2)
	other, _ := joinGroup(t, 2)
	a, b := gs[0].Derive([]byte("x")), gs[1].Derive([]byte("x"))
	if a.ID != b.ID || a.Secret != b.Secret {
		t.Error("members derive different rooms")
	}
	if c := gs[0].Derive([]byte("y")); c.ID == a.ID || c.Secret == a.Secret {
		t.Error("two labels give one room")
	}
	if c := other[0].Derive([]byte("x")); c.ID == a.ID || c.Secret == a.Secret {
		t.Error("two groups derive one room")
	}
	for _, text := range []string{fmt.Sprint(a), fmt.Sprintf("%#v", a), fmt.Sprintf("%v", a.Secret)} {
		if len(text) > 200 {
			t.Errorf("prints too much: %s", text)
		}
	}
	closeAll(gs)
	closeAll(other)
}

// The process of the child's rank 0 ended before it opened the child's room.
func TestChildWithoutRankZero(t *testing.T) {
	gs, svc := joinGroup(t, 2)
	room := gs[1].Derive([]byte("c")).At(gs[1].ServiceAddrs(0))
	svc[0].Close()
	svc[1].opt.RefusedLimit = 100 * time.Millisecond
	_, err := svc[1].Join(testCtx(t), JoinConfig{Room: &room, Rank: 1, NRanks: 2})
	wantError(t, err, xerr.Remote, "process of rank 0 is gone", "refused")
	closeAll(gs)
}

// A rank that cannot even start to join ends the init of the others at once.
func TestDecline(t *testing.T) {
	for name, bad := range map[string]Options{
		"told":             {},
		"no interface":     {IfFilter: func(string) bool { return false }, IfFilterText: "NCCL_SOCKET_IFNAME=nope"},
		"no port is free":  {PortMin: 1, PortMax: 1, Family: FamilyIPv4},
		"service is ended": {},
	} {
		t.Run(name, func(t *testing.T) {
			svc := services(t, 2, 2, Options{})
			id := mustID(t, svc[0])
			third := newTestService(t, bad)
			cfg := JoinConfig{ID: id, Rank: 2, NRanks: 3}
			want := "NCCL_SOCKET_IFNAME=nope"
			code := xerr.InvalidUsage
			switch name {
			case "no port is free":
				ln, err := listen(testCtx(t), "tcp4", ":1")
				if err != nil {
					t.Skipf("missing capability: listening on port 1: %v", err)
				}
				defer ln.Close()
				want, code = "ports 1-1", xerr.System
				fallthrough
			case "no interface":
				_, err := third.Join(testCtx(t), cfg)
				wantError(t, err, code, want)
			case "told":
				want, code = "no memory", xerr.System
				if !third.Decline(testCtx(t), cfg, xerr.New(xerr.System, "ncclCommInitRank", "no memory")) {
					t.Error("the host was not told")
				}
			case "service is ended":
				want, code = "has been closed", xerr.InvalidUsage
				third.Close()
				_, err := third.Join(testCtx(t), cfg)
				wantError(t, err, code, want)
			}
			for _, j := range joinAll(testCtx(t), 2, func(r int) *Service { return svc[r] }, func(r int) JoinConfig {
				return JoinConfig{ID: id, Rank: r, NRanks: 3}
			}) {
				wantError(t, j.err, code, "rank 2 (", "cannot join", want)
			}
		})
	}
}
