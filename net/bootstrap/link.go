package bootstrap

import (
	"bufio"
	"errors"
	"io"
	stdnet "net"
	"sync"
	"time"
)

// link is one control connection, seen from either end.
type link interface {
	// send queues a frame and never blocks. Errors show at recv.
	send(frame)
	// recv waits for the next frame; one goroutine at a time.
	recv() (frame, error)
	// finish closes after what is queued has left, or after limit.
	finish(limit time.Duration)
	// close ends the link at once; recv of both ends returns an error.
	close()
	// registered tells the host's end that the member has said who it is.
	registered()
	// where is the other end's address, for people.
	where() string
}

// maxQueuedBytes bounds what waits for a peer that does not read (a guess: two
// full-size frames). The peer is given up beyond it.
const maxQueuedBytes = 2*maxFrameBytes + (1 << 20)

// tcpLink is a link between processes. Its writer goroutine lives only while
// something is queued, so an idle communicator has one goroutine per end.
type tcpLink struct {
	conn  stdnet.Conn
	in    *bufio.Reader
	limit int // of the next frame's body; only the reader touches it

	mu      sync.Mutex
	queue   stdnet.Buffers
	queued  int
	writing bool
	ending  bool
	closed  bool
	drained chan struct{} // closed when the queue is empty after finish
}

func newTCPLink(conn stdnet.Conn, limit int) *tcpLink {
	return &tcpLink{conn: conn, in: bufio.NewReader(conn), limit: limit, drained: make(chan struct{})}
}

func (l *tcpLink) send(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ending {
		return
	}
	h := frameHeader(f)
	l.queue = append(l.queue, h)
	if len(f.body) > 0 {
		l.queue = append(l.queue, f.body)
	}
	l.queued += len(h) + len(f.body)
	if l.queued > maxQueuedBytes {
		l.closeLocked()
		return
	}
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

func (l *tcpLink) write() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 || l.closed {
			l.writing = false
			if l.ending {
				l.closeLocked()
			}
			l.mu.Unlock()
			return
		}
		batch := l.queue
		l.queue, l.queued = nil, 0
		l.mu.Unlock()
		if _, err := batch.WriteTo(l.conn); err != nil {
			// The reader learns of the loss from the connection itself; what
			// the peer sent before (why it went) is still readable there.
			l.mu.Lock()
			l.writing = false
			if l.ending {
				l.closeLocked()
			}
			l.ending = true
			l.mu.Unlock()
			return
		}
	}
}

func (l *tcpLink) recv() (frame, error) { return readFrame(l.in, l.limit) }

func (l *tcpLink) finish(limit time.Duration) {
	l.mu.Lock()
	l.ending = true
	if !l.writing {
		l.closeLocked()
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-l.drained:
	case <-t.C:
		l.close()
	}
}

func (l *tcpLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
}

func (l *tcpLink) closeLocked() {
	if l.closed {
		return
	}
	l.closed = true
	l.queue = nil
	l.conn.Close()
	close(l.drained)
}

// registered lifts what holds for a member that has not said who it is: the
// deadline and the smaller limit. Called by the reader.
func (l *tcpLink) registered() {
	l.limit = maxFrameBytes
	_ = l.conn.SetDeadline(time.Time{})
}

func (l *tcpLink) where() string { return l.conn.RemoteAddr().String() }

// memLink is one end of a link inside a process: ranks that are threads of one
// process need neither descriptors nor system calls.
type memLink struct{ out, in *memQueue }

type memQueue struct {
	mu     sync.Mutex
	more   sync.Cond
	frames []frame
	closed bool
}

func newMemLinks() (a, b *memLink) {
	x, y := &memQueue{}, &memQueue{}
	x.more.L, y.more.L = &x.mu, &y.mu
	return &memLink{out: x, in: y}, &memLink{out: y, in: x}
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

func (l *memLink) where() string { return "this process" }

// isClosed is true for the errors by which a connection says that its other
// end has gone.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}
