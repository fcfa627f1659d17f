package clique

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/xerr"
)

// A conversation that the other side cuts off is tried again: on a busy machine its deadline may have passed there.
const (
	fetchTries = 5
	fetchPause = 5 * time.Millisecond
)

// cutOff says whether a conversation ended without an answer, for whatever reason.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// Peer is another process's arena, mapped here. It is valid until Release.
type Peer struct {
	Base uintptr
	Size uint64
	FD   int
	PID  int // of the process, as seen from here; 0 if it is in another PID namespace

	nonce arena.Nonce
	mu    sync.Mutex // held while the mapping is made or undone
	refs  int        // guarded by peers.mu
}

var peers struct {
	mu sync.Mutex
	m  map[arena.Nonce]*Peer
}

// Acquire maps the arena of the process behind an endpoint, or takes a reference on the mapping that is there.
func Acquire(ctx context.Context, at Endpoint, secret []byte) (*Peer, error) {
	peers.mu.Lock()
	if peers.m == nil {
		peers.m = map[arena.Nonce]*Peer{}
	}
	p := peers.m[at.Nonce]
	if p == nil {
		p = &Peer{nonce: at.Nonce, FD: -1}
		peers.m[at.Nonce] = p
	}
	p.refs++
	peers.mu.Unlock()

	p.mu.Lock()
	err := error(nil)
	if p.FD < 0 {
		err = p.open(ctx, at, secret)
	}
	p.mu.Unlock()
	if err != nil {
		p.Release()
		return nil, err
	}
	return p, nil
}

// Release gives a reference back; with the last one the mapping goes.
func (p *Peer) Release() {
	peers.mu.Lock()
	p.refs--
	last := p.refs == 0
	if last {
		delete(peers.m, p.nonce)
	}
	peers.mu.Unlock()
	if !last {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.FD >= 0 {
		_ = arena.UnmapPeer(p.Base, p.Size)
		_ = unix.Close(p.FD)
		p.FD = -1
	}
}

// Mapped returns how many peer processes are mapped.
func Mapped() int {
	peers.mu.Lock()
	defer peers.mu.Unlock()
	return len(peers.m)
}

// open asks the peer for its descriptor and maps it.
func (p *Peer) open(ctx context.Context, at Endpoint, secret []byte) error {
	const op = "shared memory"
	fd, size, pid, err := fetchPatiently(ctx, at, secret, theArena)
	if err != nil {
		return xerr.Wrap(xerr.System, op, err, "cannot get the peer's memory file over socket %q", "@"+at.Socket).
			WithHint("ranks of one host must share network namespace and user; NCCL_HOSTID tells hosts apart")
	}
	if err := check(fd, size); err != nil {
		_ = unix.Close(fd)
		return xerr.Wrap(xerr.System, op, err, "the peer's memory file is not usable")
	}
	base, err := arena.MapPeer(fd, size)
	if err != nil {
		_ = unix.Close(fd)
		return xerr.Wrap(xerr.System, op, err, "cannot map the peer's arena of %d GiB", size>>30).
			WithHint("raise the limit of address space (ulimit -v)")
	}
	p.Base, p.Size, p.FD, p.PID = base, size, fd, pid
	return nil
}

// Fetch asks the process behind an endpoint for a descriptor of one of its device allocations. The caller closes it.
func Fetch(ctx context.Context, at Endpoint, secret []byte, item uint64) (fd int, size uint64, err error) {
	fd, size, _, err = fetchPatiently(ctx, at, secret, item)
	return fd, size, err
}

func fetchPatiently(ctx context.Context, at Endpoint, secret []byte, item uint64) (fd int, size uint64, pid int, err error) {
	fd, size, pid, err = fetch(ctx, at, secret, item)
	for try := 1; err != nil && cutOff(err) && try < fetchTries; try++ {
		select {
		case <-ctx.Done():
		case <-time.After(fetchPause << try):
		}
		fd, size, pid, err = fetch(ctx, at, secret, item)
	}
	return fd, size, pid, err
}

func fetch(ctx context.Context, at Endpoint, secret []byte, item uint64) (fd int, size uint64, pid int, err error) {
	var d stdnet.Dialer
	conn, err := d.DialContext(ctx, "unixpacket", "@"+at.Socket)
	if err != nil {
		return -1, 0, 0, err
	}
	c := conn.(*stdnet.UnixConn)
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return -1, 0, 0, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if pid, err = sameUser(c); err != nil {
		return -1, 0, 0, err
	}
	theirs := make([]byte, challengeBytes+1)
	n, err := c.Read(theirs)
	if err != nil {
		return -1, 0, 0, err
	}
	if n != challengeBytes {
		return -1, 0, 0, errors.New("malformed challenge")
	}
	theirs = theirs[:n]
	var mine [challengeBytes]byte
	if _, err := rand.Read(mine[:]); err != nil {
		return -1, 0, 0, err
	}
	if _, err := c.Write(ask(IDOf(secret), secret, theirs, mine[:], item)); err != nil {
		return -1, 0, 0, err
	}
	fd, size, err = receive(c, at, secret, mine[:], theirs)
	return fd, size, pid, err
}

// receive takes the last message. Descriptors that come with a bad message are closed.
func receive(c *stdnet.UnixConn, at Endpoint, secret, mine, theirs []byte) (int, uint64, error) {
	buf, oob := make([]byte, answerBytes+1), make([]byte, unix.CmsgSpace(4*4))
	n, noob, _, _, err := c.ReadMsgUnix(buf, oob)
	if errors.Is(err, io.EOF) {
		return -1, 0, fmt.Errorf("the peer refused the proof of the communicator's secret, or gave up: %w", err)
	}
	if err != nil {
		return -1, 0, err
	}
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob[:noob])
	if err == nil {
		for i := range msgs {
			if got, err := unix.ParseUnixRights(&msgs[i]); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	nonce, size, ok := parseAnswer(buf[:n], secret, mine, theirs)
	if ok && nonce == at.Nonce && len(fds) == 1 {
		return fds[0], size, nil
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	switch {
	case ok && nonce != at.Nonce:
		return -1, 0, errors.New("another process answered")
	case ok && len(fds) == 0:
		return -1, 0, errors.New("no descriptor arrived (limit of open files?)")
	}
	return -1, 0, errors.New("malformed answer")
}

// check makes sure that the file is as long as was said and cannot shrink under the mapping.
func check(fd int, size uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if size == 0 || st.Size < 0 || uint64(st.Size) < size {
		return fmt.Errorf("it has %d bytes and should have %d", st.Size, size)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return err
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return errors.New("it is not sealed against shrinking")
	}
	return nil
}

func isClosed(err error) bool { return errors.Is(err, stdnet.ErrClosed) }
