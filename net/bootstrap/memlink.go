package bootstrap

import (
	"io"
	"net/netip"
	"sync"
	"time"
)

// memLink is one end of a link inside a process: ranks that are threads of one
// process need neither descriptors nor system calls.
type memLink struct {
	out, in *memQueue
	pending func() bool // what undelivered says at the member's end
}

type memQueue struct {
	mu     sync.Mutex
	more   sync.Cond
	frames []frame
	closed bool
}

func newMemLinks() (a, b *memLink) {
	x, y := &memQueue{}, &memQueue{}
	x.more.L, y.more.L = &x.mu, &y.mu
	nothing := func() bool { return false }
	return &memLink{out: x, in: y, pending: nothing}, &memLink{out: y, in: x, pending: nothing}
}

func (l *memLink) send(f frame) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if !l.out.closed {
		l.out.frames = append(l.out.frames, f)
		l.out.more.Signal()
	}
}

func (l *memLink) recv() (frame, error) {
	q := l.in
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 {
		if q.closed {
			return frame{}, io.EOF
		}
		q.more.Wait()
	}
	f := q.frames[0]
	q.frames = q.frames[1:]
	return f, nil
}

func (l *memLink) finish(time.Duration) { l.close() }

func (l *memLink) close() {
	for _, q := range []*memQueue{l.out, l.in} {
		q.mu.Lock()
		q.closed = true
		q.more.Broadcast()
		q.mu.Unlock()
	}
}

func (l *memLink) registered() {}

func (l *memLink) elsewhere([]netip.AddrPort) {}

func (l *memLink) undelivered() bool { return l.pending() }

func (l *memLink) where() string { return "this process" }
