package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// A link whose connection has gone silent goes on over another one: the member
// looks for the host at all of its addresses and through all interfaces, proves
// the secret anew, and names its session. Both ends then send again what the
// other has not confirmed; a frame that came already is known by its number. So
// a cut link between two hosts costs time, and no frame is lost or doubled.
//
// A connection that the other end has closed is no silent one: its process
// has ended, and nobody waits for it.

// moveLimit is how long a silent link looks, or waits, for another connection.
// With silenceLimit it is the time after which a vanished peer is given up.
const moveLimit = 2500 * time.Millisecond

// opening is the first frame on a connection.
type opening struct {
	session session
	taken   uint64 // the last frame of the host that has come
}

const openingBytes = len(session{}) + 8

func (o opening) frame() []byte {
	e := encoder{b: append([]byte(nil), o.session[:]...)}
	e.u64(o.taken)
	return append(frameHeader(frame{kindOpen, e.b}, 0), e.b...)
}

func decodeOpening(b []byte) (opening, error) {
	d := decoder{b: b}
	var o opening
	copy(o.session[:], d.take(len(o.session)))
	o.taken = d.u64()
	if !d.done() {
		return opening{}, errMalformed
	}
	return o, nil
}

func takenFrame(n uint64) []byte {
	var e encoder
	e.u64(n)
	return append(frameHeader(frame{kindTaken, e.b}, 0), e.b...)
}

func decodeTaken(b []byte) (uint64, error) {
	d := decoder{b: b}
	n := d.u64()
	if !d.done() {
		return 0, errMalformed
	}
	return n, nil
}

// lost is called by the reader when a connection has failed: nil means that
// another one goes on.
func (l *tcpLink) lost(turn int, err error) error {
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return err
	case turn != l.turn: // the member came over another one before we noticed
		l.mu.Unlock()
		return nil
	case !l.lasting || !silent(l.conn, err, l.quiet):
		l.mu.Unlock()
		return err
	}
	l.stuck = true
	abandon(l.conn)
	hosts := slices.Clone(l.hosts)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(l.ctx, moveLimit, fmt.Errorf("its other addresses did not answer within %v", moveLimit))
	defer cancel()
	if l.redial == nil {
		for {
			select {
			case <-l.again:
			case <-ctx.Done():
				return fmt.Errorf("no word came over its connection, and it did not come over another one within %v", moveLimit)
			}
			if l.onTurn() != turn {
				return nil
			}
		}
	}
	conn, err := l.redial(ctx, hosts)
	if err != nil {
		return fmt.Errorf("no word came over it, and there is no other way: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveLocked(conn, bufio.NewReader(conn))
	l.control = opening{session: l.session, taken: l.taken}.frame()
	l.wakeLocked()
	return nil
}

func (l *tcpLink) onTurn() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn
}

// attach goes on over another connection of the same member: the host's end.
func (l *tcpLink) attach(conn stdnet.Conn, in *bufio.Reader, o opening) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return nil
	}
	if err := l.confirmedLocked(o.taken); err != nil {
		conn.Close()
		return err
	}
	abandon(l.conn)
	if l.lasting {
		_ = conn.SetDeadline(time.Time{})
	}
	l.moveLocked(conn, in)
	l.control = nil
	l.tellTakenLocked()
	l.wakeLocked()
	select {
	case l.again <- struct{}{}:
	default:
	}
	return nil
}

func (l *tcpLink) moveLocked(conn stdnet.Conn, in *bufio.Reader) {
	if l.closed {
		conn.Close()
		return
	}
	l.conn, l.in = conn, in
	l.turn++
	l.stuck, l.next = false, 0
	l.told, l.takenBytes = l.taken, 0
}

// undelivered is true while the other host has not got what was sent.
func (l *tcpLink) undelivered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && (l.stuck || !l.writtenLocked() || inFlight(l.conn))
}

// silent is whether a failed connection means that nothing came through any
// more, rather than that the other end closed it. A reset counts as silence
// after a silence: the other end has given the connection up before us.
func silent(conn stdnet.Conn, err error, limit time.Duration) bool {
	var ne stdnet.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return true
	case !isClosed(err) && !errors.As(err, &ne):
		return false // what came was nonsense
	}
	// Of two goroutines that fail on a socket one gets the cause and the other
	// an end or a broken pipe, so the error alone does not tell.
	state, quiet, known := tcpState(conn)
	if !known {
		return !isClosed(err)
	}
	return state != stateCloseWait && state != stateLastAck && quiet >= limit
}

// merged adds addresses that are not listed yet.
func merged(a, b []netip.AddrPort) []netip.AddrPort {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// readOpening reads the first frame of a connection.
func readOpening(in io.Reader) (opening, error) {
	f, number, err := readFrame(in, openingBytes)
	if err != nil {
		return opening{}, err
	}
	if f.kind != kindOpen || number != 0 {
		return opening{}, fmt.Errorf("the first frame is of kind %d", f.kind)
	}
	return decodeOpening(f.body)
}

// unknownSession tells a member that it comes too late.
func unknownSession() frame {
	return frame{kindReject, notice{code: xerr.Remote, rank: -1, text: "rank 0 has given this rank up, after a silence on its connection"}.encode()}
}
