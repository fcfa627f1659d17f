// Package shm owns the transport between processes of one host that cannot map each other's windows: a segment of shared
// memory for each connection, through which the data is copied.
//
// It must not know windows, signals or communicators, nor why windows cannot be mapped.
package shm

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#include "shm.h"

static void shm_close_ep(gccl_net_ep *e) { e->ops->close(e); }
*/
import "C"

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Transport is the transport.
type Transport struct{}

var _ transport.Transport = Transport{}

// Name is "shm".
func (Transport) Name() string { return "shm" }

// Devices lists the one device: memory.
func (Transport) Devices() ([]transport.Device, error) {
	return []transport.Device{{Name: "memory", NUMA: -1}}, nil
}

type text [C.GCCL_NET_TEXT]C.char

func (t *text) String() string { return C.GoString(&t[0]) }

type endpoint struct {
	p    *C.gccl_net_ep
	opt  transport.Options
	name string // of the abstract socket
	acc  *transport.Acceptor
}

// Open makes an endpoint. It listens on a socket of an unguessable abstract name, which leaves nothing in a file system.
func (Transport) Open(o transport.Options) (transport.Endpoint, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, xerr.Wrap(xerr.System, "shm transport", err, "no random numbers")
	}
	name := "gccl-shm-" + hex.EncodeToString(random[:])
	l, err := stdnet.ListenUnix("unixpacket", &stdnet.UnixAddr{Net: "unixpacket", Name: "@" + name})
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "shm transport", err, "cannot listen on a Unix socket")
	}
	var why text
	p := C.gccl_shm_open(C.int32_t(o.Rank), &why[0])
	if p == nil {
		_ = l.Close()
		return nil, xerr.New(xerr.System, "shm transport", "%v", &why)
	}
	return &endpoint{p, o, name, transport.NewAcceptor(o.Secret, l)}, nil
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	e.acc.Close()
	C.shm_close_ep(e.p)
	return nil
}

type conn struct {
	ep      *endpoint
	p       *C.gccl_net_conn
	id      transport.ConnID
	arrived <-chan transport.Stream
}

func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	id, err := transport.NewConnID()
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "shm transport", err, "no random numbers")
	}
	p := C.gccl_shm_conn(e.p, C.int32_t(peer))
	if p == nil {
		return nil, xerr.New(xerr.System, "shm transport", "out of memory")
	}
	return &conn{e, p, id, e.acc.Expect(id)}, nil
}

// Blob is the name of the connection and the name of the socket.
func (c *conn) Blob() []byte      { return append(c.id[:len(c.id):len(c.id)], c.ep.name...) }
func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Connect dials or waits to be dialed, whichever the names say, agrees on a segment over the socket, and proves that both
// ends see the same memory.
func (c *conn) Connect(ctx context.Context, remote []byte) error {
	peer := int(c.p.peer)
	socket, err := c.meet(ctx, remote)
	c.ep.acc.Forget(c.id)
	if err == nil {
		var why text
		if C.gccl_shm_start(c.p, C.int(socket), &why[0]) < 0 {
			err = errors.New(why.String())
		}
	}
	if err != nil {
		C.gccl_shm_discard(c.p)
		code := xerr.System
		if ctx.Err() != nil {
			code = xerr.Timeout
		}
		return xerr.Wrap(code, "shm connect", err, "no shared memory with rank %d", peer).WithRank(peer)
	}
	return nil
}

// meet returns the socket, which is C's then.
func (c *conn) meet(ctx context.Context, remote []byte) (socket int, err error) {
	var to transport.ConnID
	if len(remote) <= len(to) || len(remote) > transport.MaxBlob {
		return 0, fmt.Errorf("%d bytes that are no name of a connection", len(remote))
	}
	copy(to[:], remote)
	var u *stdnet.UnixConn
	dials := bytes.Compare(c.id[:], to[:]) < 0
	if dials {
		u, err = c.dial(ctx, to, string(remote[len(to):]))
	} else {
		u, err = c.await(ctx, to)
	}
	if err != nil {
		return 0, err
	}
	defer u.Close()
	stop := context.AfterFunc(ctx, func() { _ = u.Close() })
	defer stop()
	if dials {
		err = c.offer(u)
	} else {
		err = c.accept(u)
	}
	if err != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	f, err := u.File() // a copy of the descriptor
	if err != nil {
		return 0, err
	}
	defer f.Close()
	socket, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return socket, unix.SetNonblock(socket, true)
}

func (c *conn) dial(ctx context.Context, to transport.ConnID, name string) (*stdnet.UnixConn, error) {
	var d stdnet.Dialer
	any, err := d.DialContext(ctx, "unixpacket", "@"+name)
	if err != nil {
		return nil, fmt.Errorf("no way to its socket; is it in this network namespace? %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = any.Close() })
	defer stop()
	if err := transport.ProveAsDialer(any, transport.Hello{To: to, From: c.id, Count: 1}, c.ep.opt.Secret); err != nil {
		_ = any.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return any.(*stdnet.UnixConn), nil
}

func (c *conn) await(ctx context.Context, from transport.ConnID) (*stdnet.UnixConn, error) {
	select {
	case s, ok := <-c.arrived:
		switch {
		case !ok:
			return nil, errors.New("the endpoint was closed")
		case s.Hello.From != from:
			_ = s.Conn.Close()
			return nil, errors.New("another connection of the peer asks for this one")
		}
		return s.Conn.(*stdnet.UnixConn), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("it did not connect: %w", ctx.Err())
	}
}

// pattern is what the side with this role stores in the segment.
func (c *conn) pattern(role byte, nonce []byte) uint64 {
	m := hmac.New(sha256.New, c.ep.opt.Secret[:])
	m.Write([]byte("gccl shm segment"))
	m.Write([]byte{role})
	m.Write(nonce)
	return binary.LittleEndian.Uint64(m.Sum(nil)) | 1
}

// The conversation about the segment: offer sends nonce and descriptor; accept maps it, stores its pattern and says so;
// offer looks, stores its own and says so; accept looks.
const segmentNonce = 32

func (c *conn) offer(u *stdnet.UnixConn) error {
	size := int64(C.gccl_shm_segment_bytes())
	fd, err := unix.MemfdCreate("gccl-shm", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("memfd_create: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, size); err != nil {
		return fmt.Errorf("ftruncate of a memfd to %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return fmt.Errorf("sealing a memfd: %w", err)
	}
	var nonce [segmentNonce]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	if err := c.mapSegment(fd, 0); err != nil {
		return err
	}
	if _, _, err := u.WriteMsgUnix(nonce[:], unix.UnixRights(fd), nil); err != nil {
		return err
	}
	if err := hear(u); err != nil {
		return err
	}
	if got := uint64(C.gccl_shm_proof(c.p)); got != c.pattern(1, nonce[:]) {
		return errors.New("it sees other memory")
	}
	C.gccl_shm_prove(c.p, C.uint64_t(c.pattern(0, nonce[:])))
	return say(u)
}

func (c *conn) accept(u *stdnet.UnixConn) error {
	var nonce [segmentNonce]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, flags, _, err := u.ReadMsgUnix(nonce[:], oob)
	if err != nil {
		return fmt.Errorf("it sent no segment: %w", err)
	}
	fd, err := descriptor(oob[:oobn])
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if n != segmentNonce || flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 {
		return errors.New("it sent something else than a segment")
	}
	unix.CloseOnExec(fd)
	if err := c.mapSegment(fd, 1); err != nil {
		return err
	}
	C.gccl_shm_prove(c.p, C.uint64_t(c.pattern(1, nonce[:])))
	if err := say(u); err != nil {
		return err
	}
	if err := hear(u); err != nil {
		return err
	}
	if got := uint64(C.gccl_shm_proof(c.p)); got != c.pattern(0, nonce[:]) {
		return errors.New("it sees other memory")
	}
	return nil
}

func (c *conn) mapSegment(fd, side int) error {
	var why text
	if C.gccl_shm_map(c.p, C.int(fd), C.int(side), &why[0]) < 0 {
		return errors.New(why.String())
	}
	return nil
}

// descriptor takes the one descriptor out of a control message.
func descriptor(oob []byte) (int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, err
	}
	var fds []int
	for _, m := range msgs {
		got, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		fds = append(fds, got...)
	}
	if len(fds) != 1 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return 0, fmt.Errorf("%d descriptors instead of a segment", len(fds))
	}
	return fds[0], nil
}

func say(w io.Writer) error {
	_, err := w.Write([]byte{1})
	return err
}

func hear(r io.Reader) error {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return err
}
