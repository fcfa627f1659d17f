package conformance

import (
	"testing"

	"github.com/gccl/gccl/net/transport"
)

// Pair is two connected endpoints for tests of what one transport has alone.
type Pair struct{ s [2]*side }

// NewPair connects, with n bytes of memory at each end.
func NewPair(t testing.TB, m Maker, n int) *Pair {
	a, b := m.pair(t, n)
	return &Pair{[2]*side{a, b}}
}

// Endpoint and Conn are those of an end.
func (p *Pair) Endpoint(i int) transport.Handle { return p.s[i].ep.C() }
func (p *Pair) Conn(i int) transport.Handle     { return p.s[i].conn }

// Post posts at an end, polling both while queues are full.
func (p *Pair) Post(i int, work ...transport.Work) {
	p.s[i].t.Helper()
	p.s[i].post(p.s[1-i], work...)
}

// Messages are those of an end after so many turns.
func (p *Pair) Messages(i, turns int) (all [][]byte) {
	for range turns {
		poll(p.s[0], p.s[1])
	}
	for {
		e, ok := p.s[i].take(transport.Message)
		if !ok {
			return all
		}
		all = append(all, e.Data)
	}
}

// Message and Done wait for the next one at an end.
func (p *Pair) Message(i int) []byte {
	p.s[i].t.Helper()
	return p.s[i].next(transport.Message, p.s[1-i]).Data
}
func (p *Pair) Done(i int) {
	p.s[i].t.Helper()
	p.s[i].next(transport.Done, p.s[1-i])
}

// Faults puts all of the memory both ways until both connections have failed, and returns why.
func (p *Pair) Faults() (a, b error) {
	p.s[0].t.Helper()
	until(p.s[0].t, "fault at both ends", func() bool {
		for i, s := range p.s {
			s.ev = nil
			_, _ = transport.Post(s.conn, put(s, 0, 0, len(s.mem)), msg(byte(i)))
		}
		a, b = transport.ConnErr(p.s[0].conn), transport.ConnErr(p.s[1].conn)
		return a != nil && b != nil
	}, p.s[0], p.s[1])
	return a, b
}

// Check sends a few bytes each way.
func (p *Pair) Check() {
	for i, s := range p.s {
		s.t.Helper()
		other := p.s[1-i]
		fill(s.mem, 77+i)
		s.post(other, put(s, 0, 0, len(s.mem)), msg(9))
		other.next(transport.Message, s)
		same(s.t, "put", other.mem, s.mem)
	}
}
