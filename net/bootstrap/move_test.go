package bootstrap

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	stdnet "net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// cut makes the connection of a link fail as it does after a silence, at one end: no byte goes through any more.
func (l *tcpLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetDeadline(time.Now())
}

// cutGroup makes a group whose links take every reset for one after a silence: when one end gives up, the other end has
// not been left alone for as long as after a real cut.
func cutGroup(t *testing.T, n int) ([]*Group, []*Service) {
	t.Helper()
	svc := services(t, n, n, Options{quiet: 1})
	id := mustID(t, svc[0])
	return groups(t, joinAll(testCtx(t), n, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} })), svc
}

// ends are both ends of all links between processes of a group.
func ends(t *testing.T, gs []*Group, host *Service) (all []*tcpLink) {
	t.Helper()
	for _, g := range gs {
		l, ok := g.link.(*tcpLink)
		if !ok {
			continue
		}
		all = append(all, l)
		host.mu.Lock()
		for _, h := range host.hubs {
			h.mu.Lock()
			if far := h.sessions[l.session]; far != nil {
				all = append(all, far)
			}
			h.mu.Unlock()
		}
		host.mu.Unlock()
	}
	if len(all) != 2*(len(gs)-1) {
		t.Fatalf("%d ends of links between %d ranks", len(all), len(gs))
	}
	return all
}

// turns is over how many connections the links have gone.
func turns(all []*tcpLink) (n int) {
	for _, l := range all {
		n += l.onTurn()
	}
	return n
}

// Connections are cut at one or the other end while all ranks exchange frames of all sizes: nothing is lost, doubled or out of order.
func TestLinksMove(t *testing.T) {
	const n, rounds, cuts = 4, 300, 100
	gs, svc := cutGroup(t, n)
	all := ends(t, gs, svc[0])
	random := rand.New(rand.NewPCG(1, 2))
	progress := make(chan struct{}, n*rounds)
	var wg sync.WaitGroup
	for _, g := range gs {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for i := range rounds {
				mine := make([]byte, 8+(i*7919)%50000)
				binary.BigEndian.PutUint64(mine, uint64(i<<8|g.Rank()))
				parts, err := g.AllGather(testCtx(t), mine)
				if err != nil {
					t.Errorf("rank %d, exchange %d: %v", g.Rank(), i, err)
					return
				}
				for r, p := range parts {
					if len(p) != len(mine) || binary.BigEndian.Uint64(p) != uint64(i<<8|r) {
						t.Errorf("rank %d, exchange %d has wrong bytes of rank %d", g.Rank(), i, r)
					}
				}
				progress <- struct{}{}
			}
		}()
		go func() {
			defer wg.Done()
			to, from := (g.Rank()+1)%n, (g.Rank()+n-1)%n
			for i := range rounds {
				if err := g.Send(to, "m", fmt.Appendf(nil, "%d", i)); err != nil {
					t.Errorf("rank %d, message %d: %v", g.Rank(), i, err)
				}
			}
			for i := range rounds {
				m, err := g.Recv(testCtx(t), from, "m")
				if err != nil || string(m) != fmt.Sprint(i) {
					t.Errorf("rank %d got %q instead of message %d, %v", g.Rank(), m, i, err)
					return
				}
			}
		}()
	}
	go func() {
		wg.Wait()
		close(progress)
	}()
	for i, done := 0, 0; i < cuts; i++ {
		for ; done < i*n*rounds/cuts; done++ {
			if _, ok := <-progress; !ok {
				return // told by the ranks
			}
		}
		all[random.IntN(len(all))].cut()
	}
	wg.Wait()
	for r, g := range gs {
		if err := g.Err(); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if moved := turns(all); moved < cuts/2 {
		t.Errorf("%d cuts moved links %d times", cuts, moved)
	}
	for _, l := range all {
		l.cut() // also the goodbyes find their way
	}
	closeAll(gs)
	for r, g := range gs {
		if err := g.Err(); err != nil {
			t.Errorf("rank %d after the end: %v", r, err)
		}
	}
}

// A connection is cut while the group comes together.
func TestLinkMovesDuringInit(t *testing.T) {
	svc := services(t, 3, 3, Options{quiet: 1})
	id := mustID(t, svc[0])
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	joins := make(chan joined, 2)
	join := func(r int) {
		g, err := svc[r].Join(testCtx(t), JoinConfig{ID: id, Rank: r, NRanks: 3})
		joins <- joined{g, err}
	}
	go join(1)
	h, _ := svc[0].find(info.room.ID)
	var link *tcpLink
	waitFor(t, "rank 1 has come", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, l := range h.sessions {
			link = l
		}
		return h.peers[1] != nil
	})
	link.cut()
	waitFor(t, "rank 1 has come again", func() bool { return link.onTurn() > 0 })
	go join(2)
	g, err := svc[0].Join(testCtx(t), JoinConfig{ID: id, Rank: 0, NRanks: 3})
	closeAll(groups(t, append([]joined{{g, err}}, <-joins, <-joins)))
}

// A member that does not find another way is gone for the others, and rank 0 is for it.
func TestNoOtherWay(t *testing.T) {
	gs, svc := cutGroup(t, 3)
	l, ok := gs[2].link.(*tcpLink)
	if !ok {
		t.Fatal("rank 2 has no connection")
	}
	l.redial = func(ctx context.Context, _ []netip.AddrPort) (stdnet.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	far := ends(t, gs, svc[0])[3]
	there, here := failures(gs[1]), failures(gs[2])
	l.cut()
	far.cut()
	f := next(t, there)
	if f.rank != 2 {
		t.Errorf("rank 1 was told of rank %d", f.rank)
	}
	wantError(t, f.err, xerr.Remote, "rank 2 (", "no word", "another one")
	f = next(t, here)
	if f.rank != 0 {
		t.Errorf("rank 2 was told of rank %d", f.rank)
	}
	wantError(t, f.err, xerr.Remote, "rank 0 (", "no other way", "other addresses did not answer")
	closeAll(gs)
}

// A member that comes back after it was given up is told so.
func TestComesBackTooLate(t *testing.T) {
	gs, svc := cutGroup(t, 2)
	l, ok := gs[1].link.(*tcpLink)
	if !ok {
		t.Fatal("rank 1 has no connection")
	}
	redial, back := l.redial, make(chan struct{})
	l.redial = func(ctx context.Context, hosts []netip.AddrPort) (stdnet.Conn, error) {
		<-back
		return redial(context.WithoutCancel(ctx), hosts)
	}
	far := ends(t, gs, svc[0])[1]
	there, here := failures(gs[0]), failures(gs[1])
	l.cut()
	far.cut()
	if f := next(t, there); f.rank != 1 {
		t.Errorf("rank 0 was told of rank %d", f.rank)
	}
	close(back)
	wantError(t, next(t, here).err, xerr.Remote, "has given this rank up")
	closeAll(gs)
}
