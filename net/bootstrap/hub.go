package bootstrap

import (
	"bufio"
	"crypto/rand"
	"fmt"
	stdnet "net"
	"sync"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

type hubState int

const (
	collecting hubState = iota // not all ranks have come
	handing                    // all have come; they are on their way to rank 0
	open                       // all have come; the control star is here
	failed                     // init has failed; the cause is kept for late comers, the members are not
	ended                      // all members have left
)

// hub is the host's side of a room. This file is its life until all ranks have
// come; star.go is its life afterwards.
type hub struct {
	svc   *Service
	room  Room
	label string

	// The listeners of a fixed address, open while the room is collecting.
	staticLn   listeners
	staticPort uint16

	mu           sync.Mutex // service's mu may be taken under it, never the other way
	staticClosed bool
	state        hubState
	nranks       int // 0 until the first rank has come
	peers        map[int]*peer
	links        map[link]struct{} // all of them, registered or not
	sessions     map[session]*tcpLink
	cause        notice    // in state failed
	began        time.Time // when the first rank came
	deadline     time.Time
	timers       []*time.Timer
	expiry       *time.Timer

	ops      map[opKey]*exchange
	opWait   time.Duration
	farewell int // peers that have not yet acknowledged that rank 0 has left
}

// peer is a registered member.
type peer struct {
	Member
	link   link
	nranks int
	left   bool // said goodbye
	lost   bool // failed
	acked  bool // has seen that rank 0 left or failed
	bye    bool // has asked for an answer to its goodbye
}

func (p *peer) gone() bool { return p.left || p.lost }

func newHub(s *Service, room Room, label string) *hub {
	return &hub{svc: s, room: room, label: label, peers: map[int]*peer{}, links: map[link]struct{}{}, sessions: map[session]*tcpLink{}, ops: map[opKey]*exchange{}}
}

// enter gives a rank of this process its link to the room.
func (h *hub) enter() (link, error) {
	mine, theirs := newMemLinks()
	mine.pending = h.undelivered
	if !h.svc.spawn(func() { h.serve(theirs) }) {
		return nil, errServiceClosed()
	}
	return mine, nil
}

// undelivered is true while a member may not have got what it was told last.
func (h *hub) undelivered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.peers {
		if !p.gone() && p.link.undelivered() {
			return true
		}
	}
	return false
}

// connected takes a connection that has proved the secret: the first of a
// member, or another one of a member whose connection has gone silent.
func (h *hub) connected(conn stdnet.Conn) {
	in := bufio.NewReader(conn)
	o, err := readOpening(in)
	if err != nil { // a member that reached us over two addresses at once drops one here
		conn.Close()
		return
	}
	h.mu.Lock()
	l := h.sessions[o.session]
	if l == nil && o.taken == 0 {
		l = newTCPLink(&h.svc.opt, conn, in, o.session, maxRegisterBytes)
		h.sessions[o.session] = l
		h.mu.Unlock()
		h.serve(l)
		h.mu.Lock()
		delete(h.sessions, o.session)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	if l == nil {
		f := unknownSession()
		_, _ = conn.Write(append(frameHeader(f, 0), f.body...))
		conn.Close()
		return
	}
	from := l.where()
	if err := l.attach(conn, in, o); err != nil {
		h.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: dropped a second connection of %s: %v", h.label, from, err))
		return
	}
	h.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: the connection from %s has gone silent; %s takes its place", h.label, from, conn.RemoteAddr()))
}

// serve reads one link until it ends.
func (h *hub) serve(l link) {
	h.mu.Lock()
	h.links[l] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.links, l)
		h.mu.Unlock()
	}()
	if h.svc.isClosed() { // shutdown may have run before the link was listed
		l.close()
	}
	f, err := l.recv()
	if err != nil {
		l.close()
		return
	}
	if f.kind == kindDecline {
		if n, err := decodeNotice(f.body); err == nil {
			l.send(frame{kindReject, h.decline(n).encode()})
		}
		l.finish(farewellWait)
		return
	}
	reg, err := decodeRegistration(f.body)
	if f.kind != kindRegister || err != nil {
		h.svc.noise.say(func(more string) {
			h.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: dropped %s, which did not register properly%s", h.label, l.where(), more))
		})
		l.close()
		return
	}
	l.registered()
	p := &peer{Member: reg.member, link: l, nranks: reg.nranks}
	if no, ok := h.register(p, reg); !ok {
		l.send(frame{kindReject, no.encode()})
		l.finish(farewellWait)
		return
	}
	// A member that has said goodbye closes when it has our answer.
	for {
		f, err := l.recv()
		if err == nil {
			err = h.handle(p, f)
		}
		if err != nil {
			h.lose(p, err)
			l.close()
			return
		}
	}
}

// register adds a member, or says why not. A contradiction between members
// ends the init of all of them.
func (h *hub) register(p *peer, reg registration) (notice, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case failed:
		return h.cause, false
	case collecting:
	default:
		return h.usedLocked(), false
	}
	if h.nranks == 0 {
		h.nranks = p.nranks
	}
	if p.nranks != h.nranks {
		for _, q := range h.peers {
			h.failLocked(notice{code: xerr.InvalidUsage, rank: p.Rank,
				text: fmt.Sprintf("%s says nranks %d, %s says nranks %d", p.who(), p.nranks, q.who(), q.nranks),
				hint: "call init with the same nranks and id on all ranks"})
			break
		}
		return h.cause, false
	}
	if q := h.peers[p.Rank]; q != nil {
		h.failLocked(notice{code: xerr.InvalidUsage, rank: p.Rank,
			text: fmt.Sprintf("two processes or threads call themselves rank %d of %d: %s, pid %d and %s, pid %d", p.Rank, h.nranks, q.Host, q.PID, p.Host, p.PID),
			hint: "give every rank its own number, and every communicator its own id"})
		return h.cause, false
	}
	if p.Rank >= h.nranks {
		return notice{code: xerr.InvalidArgument, rank: p.Rank, text: fmt.Sprintf("rank %d is not below nranks %d", p.Rank, h.nranks)}, false
	}
	h.peers[p.Rank] = p
	p.link.send(frame{kindWelcome, encodeAddrs(h.svc.reachable())})
	h.clockLocked(reg.timeout)
	if len(h.peers) == h.nranks {
		h.completeLocked()
	}
	return notice{}, true
}

// usedLocked says to a late comer what has become of the room.
func (h *hub) usedLocked() notice {
	fate := "is in use"
	if h.state == ended {
		fate = "has been destroyed"
	}
	return notice{code: xerr.InvalidUsage, rank: -1, retry: h.staticLn != nil,
		text: fmt.Sprintf("this id was already used: all %d ranks came to it, and their communicator %s", h.nranks, fate),
		hint: "make a new id with ncclGetUniqueId for every communicator"}
}

// clockLocked starts the room's clock with the first member; the member that
// is ready to wait the least sets the deadline.
func (h *hub) clockLocked(timeout time.Duration) {
	now := time.Now()
	if h.began.IsZero() {
		h.began = now
		h.opWait = timeout
		for _, d := range h.svc.opt.ReportAfter {
			h.timers = append(h.timers, time.AfterFunc(d, func() { h.report(d) }))
		}
	}
	end := now.Add(timeout)
	if !h.deadline.IsZero() && !end.Before(h.deadline) {
		return
	}
	h.deadline = end
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.expiry = time.AfterFunc(timeout, func() { h.expire(end) })
}

func (h *hub) stopClockLocked() {
	for _, t := range h.timers {
		t.Stop()
	}
	if h.expiry != nil {
		h.expiry.Stop()
	}
}

// report names the ranks that are missing, here and on all ranks that wait.
func (h *hub) report(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var line string
	switch h.state {
	case collecting:
		came, missing := missingFrom(h.nranks, h.peers)
		line = fmt.Sprintf("still waiting after %v: %s not yet connected (came: %s)", after, subject(missing, h.nranks), rankSet(came))
	case handing:
		line = fmt.Sprintf("still waiting after %v: %s not yet connected to rank 0", after, subject(h.stayingLocked(), h.nranks))
	default:
		return
	}
	h.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: %s", h.label, line))
	h.tellLocked(frame{kindProgress, []byte(line)}, nil)
}

func (h *hub) stayingLocked() []int {
	var out []int
	for r, p := range h.peers {
		if !p.left {
			out = append(out, r)
		}
	}
	return out
}

func (h *hub) expire(deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deadline != deadline {
		return
	}
	waited := deadline.Sub(h.began).Round(time.Millisecond)
	const hint = "look at the missing ranks' own output; a longer GCCL_INIT_TIMEOUT waits for slow starters"
	switch h.state {
	case collecting:
		came, missing := missingFrom(h.nranks, h.peers)
		rank := -1
		if len(missing) == 1 {
			rank = missing[0]
		}
		h.failLocked(notice{code: xerr.Timeout, rank: rank, hint: hint,
			text: fmt.Sprintf("%s never connected within %v (came: %d of %d, %s)", subject(missing, h.nranks), waited, len(came), h.nranks, rankSet(came))})
	case handing:
		h.failLocked(notice{code: xerr.Timeout, rank: -1, hint: hint,
			text: fmt.Sprintf("%s did not reach rank 0 at %v within %v", subject(h.stayingLocked(), h.nranks), h.peers[0].Addrs, waited)})
	}
}

// completeLocked answers all members with the table. The star stays here if
// rank 0 lives in this process.
func (h *hub) completeLocked() {
	_, here := h.peers[0].link.(*memLink)
	t := table{here: here, members: make([]Member, h.nranks)}
	for r, p := range h.peers {
		t.members[r] = p.Member
	}
	if _, err := rand.Read(t.nonce[:]); err != nil {
		h.failLocked(notice{code: xerr.System, rank: -1, text: fmt.Sprintf("the host of the room cannot get random bytes: %v", err)})
		return
	}
	if here {
		h.state = open
		h.stopClockLocked()
	} else {
		h.state = handing
	}
	h.closeStaticLocked()
	h.tellLocked(frame{kindTable, t.encode()}, nil)
}

// failLocked ends an init on all ranks.
func (h *hub) failLocked(n notice) {
	if h.state == failed || h.state == ended {
		return
	}
	h.state, h.cause = failed, n
	h.closeStaticLocked()
	h.rejectLocked(frame{kindReject, n.encode()})
	h.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: init failed: %s", h.label, n.text))
	h.retireLocked()
}

// rejectLocked sends the end of an init to all members: to those of other processes first, and to those of this one when
// the others have it, since this process may exit as soon as its own members return.
func (h *hub) rejectLocked(f frame) {
	var far, near []link
	for _, p := range h.peers {
		if p.gone() {
			continue
		}
		if _, ok := p.link.(*memLink); ok {
			near = append(near, p.link)
			continue
		}
		far = append(far, p.link)
		p.link.send(f)
	}
	go func() {
		var flushed sync.WaitGroup
		for _, l := range far {
			flushed.Add(1)
			go func() {
				defer flushed.Done()
				l.finish(farewellWait)
			}()
		}
		flushed.Wait()
		for _, l := range near {
			l.send(f)
			l.finish(farewellWait)
		}
	}()
}

func (h *hub) closeStaticLocked() {
	if h.staticLn != nil && !h.staticClosed {
		h.staticClosed = true
		h.staticLn.Close()
		h.svc.holdStatic(h.staticPort, -1)
	}
}

// tellLocked queues a frame for all members that are still there.
func (h *hub) tellLocked(f frame, except *peer) {
	for _, p := range h.peers {
		if p != except && !p.gone() {
			p.link.send(f)
		}
	}
}

// shutdown ends the room because its process closes the service.
func (h *hub) shutdown() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopClockLocked()
	h.closeStaticLocked()
	for _, e := range h.ops {
		e.stop()
	}
	for l := range h.links {
		l.close()
	}
}
