package bootstrap

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	stdnet "net"
	"net/netip"
	"sync"
	"time"
)

// maxQueuedBytes bounds what waits for a peer that does not read, or has not
// said that it has (a guess: two full-size frames). The peer is given up beyond it.
const maxQueuedBytes = 2*maxFrameBytes + (1 << 20)

// A receiver says what has come at least once in so many frames or bytes (guesses).
const (
	takenFrames = 16
	takenBytes  = 1 << 20
)

// session names a link over all connections that it uses one after the other.
type session [16]byte

// tcpLink is a link between processes. It outlives its connection: move.go. Its
// writer goroutine lives only while something is queued, so an idle
// communicator has one goroutine per end.
type tcpLink struct {
	session session
	ctx     context.Context // ends with the link
	cancel  context.CancelFunc
	redial  redialer      // the member's end; nil at the host's, where the member comes again
	again   chan struct{} // the host's end: another connection is here
	quiet   time.Duration // Options.quiet
	limit   int           // of the next frame's body; only the reader touches it

	mu      sync.Mutex
	conn    stdnet.Conn
	in      *bufio.Reader
	turn    int  // counts the connections
	stuck   bool // nothing more is written to this connection
	lasting bool // the other end has said who it is, so the end of a connection need not be that of the link
	hosts   []netip.AddrPort

	kept      []keptFrame // all that has not been confirmed
	first     uint64      // number of kept[0]
	next      int         // the first of kept that this connection has not carried
	keptBytes int
	control   []byte // frames of the connection, written first

	taken      uint64 // the last number that has come
	told       uint64 // the last that the other end knows of
	takenBytes int    // that have come since

	writing bool
	ending  bool
	closed  bool
	drained chan struct{} // closed when all is written after finish
}

type keptFrame struct{ header, body []byte }

// redialer connects to the host of a link over whatever way there is.
type redialer func(ctx context.Context, hosts []netip.AddrPort) (stdnet.Conn, error)

func newTCPLink(opt *Options, conn stdnet.Conn, in *bufio.Reader, name session, limit int) *tcpLink {
	l := &tcpLink{session: name, quiet: opt.quiet, conn: conn, in: in, limit: limit, first: 1, again: make(chan struct{}, 1), drained: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// newMemberLink is the member's end of a link to a room's host, over a first connection.
func (s *Service) newMemberLink(conn stdnet.Conn, room Room, hosts []netip.AddrPort) (*tcpLink, error) {
	var name session
	if _, err := rand.Read(name[:]); err != nil {
		return nil, err
	}
	l := newTCPLink(&s.opt, conn, bufio.NewReader(conn), name, maxFrameBytes)
	l.redial, l.hosts, l.lasting = s.redialer(room), hosts, true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control = opening{session: name}.frame()
	l.wakeLocked()
	return l, nil
}

func (l *tcpLink) send(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.ending {
		return
	}
	k := keptFrame{frameHeader(f, l.first+uint64(len(l.kept))), f.body}
	l.kept = append(l.kept, k)
	l.keptBytes += len(k.header) + len(k.body)
	if l.keptBytes > maxQueuedBytes {
		l.closeLocked()
		return
	}
	l.wakeLocked()
}

// wakeLocked has somebody write what waits.
func (l *tcpLink) wakeLocked() {
	if !l.writing && !l.closed {
		l.writing = true
		go l.write()
	}
}

func (l *tcpLink) write() {
	for {
		l.mu.Lock()
		if l.ending && l.writtenLocked() {
			l.closeLocked()
		}
		if l.closed || l.stuck || l.writtenLocked() {
			l.writing = false
			l.mu.Unlock()
			return
		}
		conn, turn := l.conn, l.turn
		batch := stdnet.Buffers{l.control}
		for _, k := range l.kept[l.next:] {
			batch = append(batch, k.header, k.body)
		}
		l.control, l.next = nil, len(l.kept)
		l.mu.Unlock()
		if _, err := batch.WriteTo(conn); err != nil {
			l.unwritable(turn, err)
		}
	}
}

func (l *tcpLink) writtenLocked() bool { return len(l.control) == 0 && l.next == len(l.kept) }

// unwritable gives up writing to a connection. The reader decides what that
// means: what the peer sent before (why it went) is still readable there.
func (l *tcpLink) unwritable(turn int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if turn != l.turn {
		return
	}
	l.stuck = true
	if !isClosed(err) {
		_ = l.conn.SetReadDeadline(time.Now())
	}
}

func (l *tcpLink) recv() (frame, error) {
	for {
		l.mu.Lock()
		in, turn := l.in, l.turn
		l.mu.Unlock()
		f, number, err := readFrame(in, l.limit)
		if err != nil {
			if err := l.lost(turn, err); err != nil {
				return frame{}, err
			}
			continue
		}
		if fresh, err := l.take(f, number); err != nil || fresh {
			return f, err
		}
	}
}

// take counts a frame that has come. It is false for one that the link itself
// is meant by, or that came over an earlier connection already.
func (l *tcpLink) take(f frame, number uint64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case number == 0 && f.kind == kindTaken:
		n, err := decodeTaken(f.body)
		if err != nil {
			return false, err
		}
		return false, l.confirmedLocked(n)
	case number == 0 && f.kind == kindReject:
		n, err := decodeNotice(f.body)
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("%s", n.text)
	case number == 0:
		return false, fmt.Errorf("frame of kind %d has no number", f.kind)
	case number <= l.taken:
		return false, nil
	case number > l.taken+1:
		return false, fmt.Errorf("frame %d comes after frame %d", number, l.taken)
	}
	l.taken = number
	l.takenBytes += len(f.body)
	if l.taken-l.told >= takenFrames || l.takenBytes >= takenBytes {
		l.tellTakenLocked()
		l.wakeLocked()
	}
	return true, nil
}

func (l *tcpLink) tellTakenLocked() {
	l.control = append(l.control, takenFrame(l.taken)...)
	l.told, l.takenBytes = l.taken, 0
}

// confirmedLocked forgets what the other end has got.
func (l *tcpLink) confirmedLocked(upTo uint64) error {
	if upTo+1 < l.first {
		return nil // said before, over another connection
	}
	n := upTo + 1 - l.first
	if n > uint64(len(l.kept)) {
		return fmt.Errorf("frame %d is confirmed, and was never sent", upTo)
	}
	for _, k := range l.kept[:n] {
		l.keptBytes -= len(k.header) + len(k.body)
	}
	clear(l.kept[:n])
	l.kept = l.kept[n:]
	l.first += n
	l.next = max(0, l.next-int(n))
	return nil
}

func (l *tcpLink) finish(limit time.Duration) {
	l.mu.Lock()
	l.ending = true
	if !l.writing && !l.stuck {
		l.closeLocked()
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
	l.kept, l.keptBytes, l.next = nil, 0, 0
	l.cancel()
	l.conn.Close()
	close(l.drained)
}

// registered lifts what holds for a member that has not said who it is: the
// deadline and the smaller limit. Called by the reader.
func (l *tcpLink) registered() {
	l.limit = maxFrameBytes
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lasting = true
	_ = l.conn.SetDeadline(time.Time{})
}

func (l *tcpLink) elsewhere(hosts []netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts = merged(hosts, l.hosts)
}

func (l *tcpLink) where() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.RemoteAddr().String()
}
