package conformance

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
)

// Maker opens endpoints of the transport under test: for tests of one process both ranks are in it.
type Maker struct {
	Open func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint
	// OneProcess transports have both ranks in one process in every test.
	OneProcess bool
	// Spawn, if given, changes the command that starts the process at the other end, and Started prepares it before it
	// opens its endpoint.
	Spawn   func(*exec.Cmd)
	Started func(pid int)
	// Scale divides the amounts of the long tests, for slow machines.
	Scale int
}

// limit ends a test that waits for something that does not come.
const limit = 30 * time.Second

var secret = transport.Secret{1, 2, 3}

// side is one end of a pair, with a piece of registered memory.
type side struct {
	t    testing.TB
	ep   transport.Endpoint
	conn transport.Handle
	mem  []byte
	reg  transport.Memory
	peer transport.Remote // the other side's mem
	ev   []transport.Event
}

// pair makes two connected endpoints with memory of n bytes each. They are closed at the end of the test.
func (m Maker) pair(t testing.TB, n int) (a, b *side) {
	t.Helper()
	a, b = m.side(t, 0, n), m.side(t, 1, n)
	connect(t, a, b)
	a.peer, b.peer = a.imports(b.reg), b.imports(a.reg)
	return a, b
}

func (m Maker) side(t testing.TB, rank, n int) *side {
	t.Helper()
	s := &side{t: t, ep: m.Open(t, rank, secret)}
	var addr uintptr
	s.mem, addr = Alloc(n)
	var err error
	if s.reg, err = transport.Register(s.ep.C(), addr, uint64(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.ep.Close(); err != nil {
			t.Error(err)
		}
		Free(s.mem)
	})
	return s
}

// connect connects one connection of two sides.
func connect(t testing.TB, a, b *side) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ca, errA := a.ep.NewConn(1)
	cb, errB := b.ep.NewConn(0)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if n := len(ca.Blob()); n == 0 || n > transport.MaxBlob {
		t.Fatalf("blob of %d bytes", n)
	}
	ended := make(chan error)
	blob := ca.Blob()
	go func() { ended <- cb.Connect(ctx, blob) }()
	errA = ca.Connect(ctx, cb.Blob())
	errB = <-ended
	if errA != nil || errB != nil {
		t.Fatalf("connect: %v; %v", errA, errB)
	}
	a.conn, b.conn = ca.C(), cb.C()
}

func (s *side) imports(m transport.Memory) transport.Remote {
	s.t.Helper()
	r, err := transport.Import(s.conn, m.Blob())
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// poll makes progress on both sides and keeps their events.
func poll(sides ...*side) {
	idle := true
	for _, s := range sides {
		ev := transport.Poll(s.ep.C(), 16)
		for _, e := range ev {
			if e.Kind == transport.Fault {
				s.t.Logf("fault: %v", transport.ConnErr(e.Conn))
			}
		}
		s.ev = append(s.ev, ev...)
		idle = idle && len(ev) == 0
	}
	if idle {
		runtime.Gosched()
	}
}

// until polls both sides until a condition holds.
func until(t testing.TB, what string, cond func() bool, sides ...*side) {
	t.Helper()
	for end := time.Now().Add(limit); !cond(); poll(sides...) {
		if time.Now().After(end) {
			for _, s := range sides {
				t.Logf("error %v, %v", transport.ConnErr(s.conn), transport.ConnStats(s.conn))
			}
			t.Fatalf("no %s within %v", what, limit)
		}
	}
}

// post posts all of the work, polling both sides while queues are full.
func (s *side) post(other *side, work ...transport.Work) {
	s.t.Helper()
	for end := time.Now().Add(limit); len(work) > 0; {
		n, err := transport.Post(s.conn, work...)
		work = work[n:]
		if err != nil && err != transport.ErrBusy {
			s.t.Fatal(err)
		}
		if err == transport.ErrBusy {
			poll(s, other)
		}
		if time.Now().After(end) {
			s.t.Fatalf("queues were full for %v", limit)
		}
	}
}

// tryPost posts until something other than full queues is the answer.
func (s *side) tryPost(other *side, work ...transport.Work) (n int, err error) {
	s.t.Helper()
	until(s.t, "room in the queues", func() bool {
		n, err = transport.Post(s.conn, work...)
		return n > 0 || err != transport.ErrBusy
	}, s, other)
	return n, err
}

// take removes and returns the first event of a kind; ok is false if there is none.
func (s *side) take(kind transport.EventKind) (e transport.Event, ok bool) {
	for i, e := range s.ev {
		if e.Kind == kind {
			s.ev = append(s.ev[:i:i], s.ev[i+1:]...)
			return e, true
		}
	}
	return transport.Event{}, false
}

// next waits for an event of a kind.
func (s *side) next(kind transport.EventKind, other *side) transport.Event {
	s.t.Helper()
	var e transport.Event
	until(s.t, map[transport.EventKind]string{transport.Done: "completion", transport.Message: "message", transport.Fault: "fault"}[kind],
		func() (ok bool) { e, ok = s.take(kind); return ok }, s, other)
	return e
}

// fill writes bytes that no other seed writes.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

// same reports where two slices differ.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: byte %d of %d is %#x, want %#x", what, i, len(want), got[i], want[i])
		}
	}
}

func put(s *side, loff, off, n int) transport.Work {
	return transport.Work{Op: transport.Put, Local: s.reg, LocalOff: uint64(loff), Remote: s.peer, Off: uint64(off), Bytes: uint64(n)}
}

func msg(data ...byte) transport.Work { return transport.Work{Op: transport.Msg, Data: data} }
