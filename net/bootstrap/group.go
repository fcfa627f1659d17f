package bootstrap

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// Group is one rank's membership of a complete group. All methods may be
// called from any goroutine.
type Group struct {
	rank    int
	label   string
	secret  Secret // of this group; children derive theirs from it
	members []Member
	link    link
	done    chan struct{} // closed when the reader has ended

	mu       sync.Mutex
	seq      map[string]uint64
	waits    map[opKey]chan answer
	mail     map[mailKey]*mailbox
	mailSize int
	news     []failure     // every rank that failed, in order
	gone     map[int]error // ranks that failed or left
	handlers map[string]func(from int, data []byte)
	watchers []func(int, error)
	closing  bool
	byeAck   chan struct{}
}

type failure struct {
	rank int
	err  error
}

// answer ends an exchange.
type answer struct {
	parts [][]byte
	err   error
}

func newGroup(j *joiner, l link, room Secret, t table) *Group {
	g := &Group{
		rank:    j.cfg.Rank,
		label:   j.label,
		secret:  room.derive("group", t.nonce[:]),
		members: t.members,
		link:    l,
		done:    make(chan struct{}),
		seq:     map[string]uint64{},
		waits:   map[opKey]chan answer{},
		mail:    map[mailKey]*mailbox{},
		gone:    map[int]error{},
		byeAck:  make(chan struct{}),
	}
	go g.read()
	return g
}

// Rank is this member's rank.
func (g *Group) Rank() int { return g.rank }

// NRanks is the number of members.
func (g *Group) NRanks() int { return len(g.members) }

// Member tells what a rank said of itself when it joined. The slices are not
// to be changed.
func (g *Group) Member(rank int) Member { return g.members[rank] }

// Hellos are the hellos of all members, by rank; copies.
func (g *Group) Hellos() [][]byte {
	out := make([][]byte, len(g.members))
	for r, m := range g.members {
		out[r] = slices.Clone(m.Hello)
	}
	return out
}

// ServiceAddrs tells where the service of a rank's process listens.
func (g *Group) ServiceAddrs(rank int) []netip.AddrPort { return slices.Clone(g.members[rank].Addrs) }

// Derive gives the room of a child group. Every member gets the same room for
// the same label, without asking anybody; a label serves one child. Use
// Room.At to add the addresses of the child's rank 0.
func (g *Group) Derive(label []byte) Room { return roomOf(g.secret.derive("child", label)) }

// Err is the first failure of the group, nil as long as there is none.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.news) == 0 {
		return nil
	}
	return g.news[0].err
}

// OnFailure has f called once for every rank that fails, also for those that
// have failed already, each time from a goroutine of its own.
func (g *Group) OnFailure(f func(rank int, err error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = append(g.watchers, f)
	for _, n := range g.news {
		go f(n.rank, n.err)
	}
}

// Fail tells all members that this rank has failed, with the code and text of
// cause: their Err becomes that. The group stays open for Close. Before the
// communicator is usable this is how a rank ends the init of everybody.
func (g *Group) Fail(cause error) {
	g.failedWith(g.rank, cause)
	n := notice{code: xerr.CodeOf(cause), rank: g.rank, text: cause.Error()}
	if n.code == xerr.Success || n.code > xerr.Timeout {
		n.code = xerr.Internal
	}
	g.link.send(frame{kindFail, n.encode()})
}

// Abort is Fail, and leaves without waiting for anybody.
func (g *Group) Abort(cause error) {
	g.mu.Lock()
	closing := g.closing
	g.closing = true
	g.mu.Unlock()
	if closing {
		return
	}
	g.Fail(cause)
	g.link.send(frame{kindBye, nil}) // answered when the others know
	g.saidGoodbye(abortWait)
	g.link.close()
	<-g.done
}

// saidGoodbye waits until our goodbye is answered, and is false after limit.
func (g *Group) saidGoodbye(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-g.byeAck:
	case <-g.done:
	case <-t.C:
		return false
	}
	return true
}

// abortWait bounds how long Abort tries to get its message out.
const abortWait = 200 * time.Millisecond

// Close leaves the group; the others do not see a failure. It waits a bounded
// time until they know, longer if a link is down. Further calls do nothing.
func (g *Group) Close() error {
	g.mu.Lock()
	if g.closing {
		g.mu.Unlock()
		<-g.done
		return nil
	}
	g.closing = true
	g.endWaitsLocked(g.errClosed())
	g.mu.Unlock()
	g.link.send(frame{kindBye, nil})
	if !g.saidGoodbye(farewellWait) && g.link.undelivered() {
		// A link was cut meanwhile; the goodbye leaves by another one.
		g.saidGoodbye(silenceLimit + moveLimit)
	}
	g.link.close()
	<-g.done
	return nil
}

func (g *Group) errClosed() error {
	return xerr.New(xerr.InvalidUsage, opGroup, "this rank has closed the communicator").WithObject("%s", g.label).WithRank(g.rank)
}

// read handles what the host sends until the link ends.
func (g *Group) read() {
	defer close(g.done)
	for {
		f, err := g.link.recv()
		if err == nil {
			err = g.handle(f)
		}
		if err != nil {
			g.hostLost(err)
			g.link.close()
			return
		}
	}
}

func (g *Group) handle(f frame) error {
	switch f.kind {
	case kindGathered, kindGatherFailed:
		t, err := decodeTagged(f.body)
		if err != nil {
			return err
		}
		return g.answered(f.kind, t)
	case kindMessage:
		t, err := decodeTagged(f.body)
		if err != nil {
			return err
		}
		return g.deliver(t)
	case kindPeerFailed:
		rank, n, err := decodeFailure(f.body)
		if err != nil {
			return err
		}
		g.failedWith(rank, n.errorFor(opGroup, g.label))
		if rank == 0 {
			g.link.send(frame{kindAck, nil})
		}
	case kindPeerLeft:
		rank, n, err := decodeFailure(f.body)
		if err != nil {
			return err
		}
		g.left(rank, n.errorFor(opGroup, g.label))
		if rank == 0 {
			g.link.send(frame{kindAck, nil})
		}
	case kindByeAck:
		close(g.byeAck)
		return errLeft
	case kindReject, kindProgress:
		// Late news of the time before the group was complete.
	default:
		return errors.New("unexpected frame")
	}
	return nil
}

// errLeft ends the reader after the host has answered our goodbye.
var errLeft = errors.New("left")

// hostLost is called when the link to rank 0 ended: a failure of rank 0 unless
// either of us said goodbye.
func (g *Group) hostLost(err error) {
	g.mu.Lock()
	closing := g.closing
	left := g.gone[0]
	g.mu.Unlock()
	switch {
	case closing:
		g.mu.Lock()
		g.endWaitsLocked(g.errClosed())
		g.mu.Unlock()
	case left != nil:
		g.mu.Lock()
		g.endWaitsLocked(left)
		g.mu.Unlock()
	default:
		g.failedWith(0, xerr.New(xerr.Remote, opGroup, "%s is gone: the connection to it ended without goodbye (%s)", g.members[0].who(), ending(err)).
			WithObject("%s", g.label).WithRank(0).WithHint("look at that rank's own output"))
	}
}

// failedWith notes that a rank has failed and ends every wait: no exchange can
// complete without it.
func (g *Group) failedWith(rank int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.news {
		if n.rank == rank {
			return
		}
	}
	g.news = append(g.news, failure{rank, err})
	g.gone[rank] = err
	g.endWaitsLocked(err)
	for _, f := range g.watchers {
		go f(rank, err)
	}
}

// left notes that a rank has closed the group; that is no failure.
func (g *Group) left(rank int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone[rank] == nil {
		g.gone[rank] = err
	}
	g.wakeMailLocked(rank, err)
}

func (g *Group) endWaitsLocked(err error) {
	for key, c := range g.waits {
		delete(g.waits, key)
		c <- answer{err: err}
	}
	for r := range g.members {
		g.wakeMailLocked(r, err)
	}
}

// opGroup is the call that errors of a complete group name.
const opGroup = "bootstrap exchange"

// unusableLocked says why no exchange can complete any more.
func (g *Group) unusableLocked() error {
	if g.closing {
		return g.errClosed()
	}
	if len(g.news) > 0 {
		return g.news[0].err
	}
	for _, err := range g.gone {
		return err
	}
	return nil
}

func ctxError(ctx context.Context, g *Group, what string) error {
	return xerr.Wrap(xerr.Internal, opGroup, context.Cause(ctx), "%s was given up", what).WithObject("%s", g.label).WithRank(g.rank)
}
