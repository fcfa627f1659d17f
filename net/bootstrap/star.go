package bootstrap

import (
	"fmt"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// farewellWait bounds how long a goodbye may take before a connection is closed.
const farewellWait = time.Second

// exchange is one all-gather under way.
type exchange struct {
	parts map[int][]byte
	timer *time.Timer
}

func (e *exchange) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// handle does what a registered member asks for. An error ends its connection.
func (h *hub) handle(p *peer, f frame) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f.kind {
	case kindBye:
		h.byeLocked(p)
		return nil
	case kindFail:
		n, err := decodeNotice(f.body)
		if err != nil {
			return err
		}
		h.memberFailsLocked(p, n)
		return nil
	case kindAck:
		h.ackLocked(p)
		return nil
	}
	if h.state != open {
		if h.state == failed || h.state == ended {
			return nil
		}
		return fmt.Errorf("frame of kind %d before the room was complete", f.kind)
	}
	t, err := decodeTagged(f.body)
	if err != nil {
		return err
	}
	switch f.kind {
	case kindGather:
		return h.gatherLocked(p, t)
	case kindMessage:
		return h.forwardLocked(p, t)
	}
	return fmt.Errorf("frame of kind %d is none of a member", f.kind)
}

// gatherLocked takes one rank's part of an all-gather, and answers all when it
// was the last.
func (h *hub) gatherLocked(p *peer, t tagged) error {
	for _, q := range h.peers {
		if q.gone() {
			n := h.goneNotice(q)
			p.link.send(frame{kindGatherFailed, tagged{key: t.key, data: n.encode()}.encode()})
			return nil
		}
	}
	e := h.ops[t.key]
	if e == nil {
		e = &exchange{parts: map[int][]byte{}}
		e.timer = time.AfterFunc(h.opWait, func() { h.opExpired(t.key, e) })
		h.ops[t.key] = e
	}
	if _, twice := e.parts[p.Rank]; twice {
		return fmt.Errorf("part %d of exchange %q came twice", t.key.seq, t.key.tag)
	}
	e.parts[p.Rank] = t.data
	if len(e.parts) < h.nranks {
		return nil
	}
	e.stop()
	delete(h.ops, t.key)
	all := make([][]byte, h.nranks)
	for r, b := range e.parts {
		all[r] = b
	}
	h.tellLocked(frame{kindGathered, tagged{key: t.key, data: encodeList(all)}.encode()}, nil)
	return nil
}

func (h *hub) goneNotice(q *peer) notice {
	if q.left {
		return notice{code: xerr.InvalidUsage, rank: q.Rank, text: q.who() + " has already closed the communicator", hint: "all ranks must make the same calls before they destroy it"}
	}
	return notice{code: xerr.Remote, rank: q.Rank, text: q.who() + " has failed"}
}

func (h *hub) opExpired(key opKey, e *exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ops[key] != e {
		return
	}
	came, missing := missingFrom(h.nranks, e.parts)
	h.failOpLocked(key, e, notice{code: xerr.Timeout, rank: -1,
		text: fmt.Sprintf("%s did not come within %v (came: %s)", subject(missing, h.nranks), h.opWait, rankSet(came)),
		hint: "all ranks must make the same calls in the same order"})
}

func (h *hub) failOpLocked(key opKey, e *exchange, n notice) {
	e.stop()
	delete(h.ops, key)
	f := frame{kindGatherFailed, tagged{key: key, data: n.encode()}.encode()}
	for r := range e.parts {
		if q := h.peers[r]; !q.gone() {
			q.link.send(f)
		}
	}
}

func (h *hub) failOpsLocked(n notice) {
	for key, e := range h.ops {
		h.failOpLocked(key, e, n)
	}
}

func (h *hub) forwardLocked(p *peer, t tagged) error {
	to := h.peers[t.rank]
	if to == nil {
		return fmt.Errorf("message to rank %d of %d", t.rank, h.nranks)
	}
	if !to.gone() {
		t.rank = p.Rank
		to.link.send(frame{kindMessage, t.encode()})
	}
	return nil
}

// memberFailsLocked spreads what a member says about its own failure. Before
// the communicator is complete it ends the init of all.
func (h *hub) memberFailsLocked(p *peer, n notice) {
	if p.gone() {
		return
	}
	if n.rank < 0 {
		n.rank = p.Rank
	}
	switch h.state {
	case collecting, handing:
		p.lost = true
		h.failLocked(n)
	case open:
		h.loseLocked(p, n)
	}
}

// lose is called when a member's connection ended without goodbye.
func (h *hub) lose(p *peer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.gone() {
		h.ackLocked(p)
		return
	}
	switch h.state {
	case collecting, handing:
		p.lost = true
		came, missing := missingFrom(h.nranks, h.peers)
		text := fmt.Sprintf("%s ended before the communicator was complete (%s): %d of %d ranks had come", p.who(), ending(err), len(came), h.nranks)
		if len(missing) > 0 {
			text += fmt.Sprintf(", %s had not", subject(missing, h.nranks))
		}
		h.failLocked(notice{code: xerr.Remote, rank: p.Rank, text: text, hint: "look at that rank's own output"})
	case open:
		h.loseLocked(p, notice{code: xerr.Remote, rank: p.Rank,
			text: fmt.Sprintf("%s is gone: its connection to rank 0 ended without goodbye (%s)", p.who(), ending(err)), hint: "look at that rank's own output"})
	}
}

func (h *hub) loseLocked(p *peer, n notice) {
	p.lost = true
	h.tellLocked(frame{kindPeerFailed, failureOf(p.Rank, n)}, p)
	h.failOpsLocked(n)
	if p.Rank == 0 {
		h.farewellLocked(p) // it may say goodbye next and take this process with it
	}
	h.ackLocked(p)
	h.endLocked()
}

// byeLocked lets a member go without anybody seeing a failure.
func (h *hub) byeLocked(p *peer) {
	p.bye = true
	if p.gone() { // it has told of its failure before
		if p.Rank != 0 || h.farewell == 0 {
			p.link.send(frame{kindByeAck, nil})
		}
		return
	}
	p.left = true
	switch h.state {
	case open:
		h.tellLocked(frame{kindPeerLeft, failureOf(p.Rank, h.goneNotice(p))}, p)
		h.failOpsLocked(h.goneNotice(p))
		if p.Rank == 0 {
			h.farewellLocked(p)
		} else {
			p.link.send(frame{kindByeAck, nil})
			h.ackLocked(p)
		}
	case collecting:
		// Only a rank that gives up says goodbye here; it tells why before.
		h.failLocked(notice{code: xerr.Remote, rank: p.Rank, text: p.who() + " left before the communicator was complete"})
	default:
		p.link.send(frame{kindByeAck, nil})
	}
	h.endLocked()
}

// farewellLocked has rank 0's goodbye answered when all remote members know how it
// went: its process may end right after, and that must not look like a failure,
// or hide the one that rank 0 told of.
func (h *hub) farewellLocked(zero *peer) {
	h.farewell = 0
	for _, q := range h.peers {
		q.acked = q.gone()
		if !q.acked {
			h.farewell++
		}
	}
	if h.farewell == 0 && zero.bye {
		zero.link.send(frame{kindByeAck, nil})
	}
}

// ackLocked counts a member that knows that rank 0 has left, or is gone itself.
func (h *hub) ackLocked(p *peer) {
	if p.acked || p.Rank == 0 || h.farewell == 0 {
		return
	}
	p.acked = true
	if h.farewell--; h.farewell == 0 && h.peers[0].bye {
		h.peers[0].link.send(frame{kindByeAck, nil})
	}
}

// endLocked forgets a room that all members have left.
func (h *hub) endLocked() {
	if h.state != open && h.state != handing {
		return
	}
	for _, p := range h.peers {
		if !p.gone() {
			return
		}
	}
	h.state = ended
	h.retireLocked()
}

// retireLocked lets go of everything but the room's fate, which the service
// remembers for late comers.
func (h *hub) retireLocked() {
	h.stopClockLocked()
	for _, e := range h.ops {
		e.stop()
	}
	h.peers, h.ops, h.farewell = nil, nil, 0
	h.svc.retire(h)
}

// failureOf is the body of kindPeerFailed and kindPeerLeft.
func failureOf(rank int, n notice) []byte {
	return tagged{rank: rank, data: n.encode()}.encode()
}

func decodeFailure(b []byte) (rank int, n notice, err error) {
	t, err := decodeTagged(b)
	if err != nil {
		return 0, notice{}, err
	}
	n, err = decodeNotice(t.data)
	return t.rank, n, err
}

// ending says in words how a connection ended.
func ending(err error) string {
	if isClosed(err) {
		return "the process ended or closed the connection"
	}
	return err.Error()
}
