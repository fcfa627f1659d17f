package conformance

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Endings tests what happens to a connection whose other end is a process that is killed, stopped or ends.
func Endings(t *testing.T, m Maker) {
	t.Run("echo", func(t *testing.T) {
		s, p := m.withPeer(t, 4096)
		p.ask("echo")
		echo(t, s, 200)
	})
	t.Run("killed", func(t *testing.T) {
		s, p := m.withPeer(t, 4096)
		p.ask("echo")
		echo(t, s, 10)
		p.signal(syscall.SIGKILL)
		s.next(transport.Fault, s)
		var x *xerr.Error
		if err := transport.ConnErr(s.conn); !errors.As(err, &x) || x.Code != xerr.Remote || x.Rank != 1 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("killed while much is under way", func(t *testing.T) {
		n := 32 << 20 / max(m.Scale, 1)
		s, p := m.withPeer(t, n)
		p.ask("echo")
		echo(t, s, 10)
		p.signal(syscall.SIGSTOP)
		s.post(s, put(s, 0, 0, n), put(s, 0, 0, n))
		for range 100 {
			poll(s)
		}
		p.signal(syscall.SIGKILL)
		s.next(transport.Fault, s)
	})
	t.Run("stopped and continued", func(t *testing.T) {
		s, p := m.withPeer(t, 1<<20)
		p.ask("echo")
		echo(t, s, 10)
		p.signal(syscall.SIGSTOP)
		w := make([]transport.Work, 0, 50)
		for i := range 50 {
			w = append(w, msg(binary.LittleEndian.AppendUint64(nil, uint64(i))...))
		}
		for i := range 50 {
			for _, e := range transport.Poll(s.ep.C(), 16) {
				t.Fatalf("event %v from a stopped process", e.Kind)
			}
			if n, err := transport.Post(s.conn, w[i]); n != 1 {
				t.Fatal(err)
			}
		}
		p.signal(syscall.SIGCONT)
		for i := range 50 {
			if got := binary.LittleEndian.Uint64(s.next(transport.Message, s).Data); got != uint64(i) {
				t.Fatalf("message %d, want %d", got, i)
			}
		}
	})
	t.Run("sleeping", func(t *testing.T) {
		s, p := m.withPeer(t, 4096)
		p.ask("echo")
		if !transport.CanWait(s.ep.C()) {
			t.Skip("this transport cannot sleep")
		}
		for i := range 20 {
			s.post(s, msg(binary.LittleEndian.AppendUint64(nil, uint64(i))...))
			for end := time.Now().Add(limit); ; {
				transport.Wait(s.ep.C(), limit)
				if poll(s); len(s.ev) > 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatal("no message")
				}
			}
			s.ev = nil
		}
		woke := make(chan struct{})
		go func() {
			transport.Wait(s.ep.C(), limit)
			close(woke)
		}()
		for woken := false; !woken; {
			transport.Wake(s.ep.C())
			select {
			case <-woke:
				woken = true
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// echo sends n messages behind puts of eight bytes and compares what comes back.
func echo(t *testing.T, s *side, n int) {
	t.Helper()
	for i := range n {
		s.echoOf(uint64(i), 8)
	}
}

// echoOf puts the first bytes of memory, sends a message behind it and compares what comes back. The other end's memory must
// be like this one's behind those bytes.
func (s *side) echoOf(i uint64, bytes int) {
	s.t.Helper()
	fill(s.mem[:bytes], int(i)+1)
	s.post(s, put(s, 0, 0, bytes), msg(binary.LittleEndian.AppendUint64(nil, i)...))
	got := s.next(transport.Message, s).Data
	if len(got) != 24 || binary.LittleEndian.Uint64(got) != i || string(got[8:16]) != string(s.mem[:8]) || binary.LittleEndian.Uint64(got[16:]) != sum(s.mem) {
		s.t.Fatalf("message %d: %x, want what was put: %x and sum %x", i, got, s.mem[:8], sum(s.mem))
	}
}
