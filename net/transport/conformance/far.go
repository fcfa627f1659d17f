package conformance

import (
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
)

// Far is a connection to an echo in another process, for tests of what lies between.
type Far struct {
	s *side
	i uint64
}

// NewFar connects, with a megabyte of memory at each end.
func NewFar(t testing.TB, m Maker) *Far {
	s, p := m.withPeer(t, 1<<20)
	p.ask("echo")
	return &Far{s: s}
}

// Echo has puts of all the memory and small ones come back n times each, and fails the test on any other byte.
func (f *Far) Echo(n int) {
	f.s.t.Helper()
	for range n {
		f.i++
		f.s.echoOf(f.i, 1<<20)
		f.i++
		f.s.echoOf(f.i, 8)
	}
}

// Fault waits until the connection has failed, and returns how long that took and the error.
func (f *Far) Fault() (took time.Duration, err error) {
	f.s.t.Helper()
	start := time.Now()
	f.s.next(transport.Fault, f.s)
	return time.Since(start), transport.ConnErr(f.s.conn)
}

// Stats are those of this end.
func (f *Far) Stats() transport.Stats { return transport.ConnStats(f.s.conn) }
