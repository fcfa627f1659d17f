// Package socket owns the transport over TCP: several streams for each connection, over all interfaces that lead to the
// peer. What a stream that dies carried goes over the others, and counts once.
//
// It must not know windows, signals or communicators.
package socket

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#include <stdlib.h>
#include "socket.h"

static void socket_close_ep(gccl_net_ep *e) { e->ops->close(e); }
*/
import "C"

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Transport is the transport.
type Transport struct{ cfg Config }

var _ transport.Transport = (*Transport)(nil)

// New makes the transport.
func New(c Config) *Transport { return &Transport{c} }

// Name is "socket".
func (*Transport) Name() string { return "socket" }

// Devices lists the interfaces that the settings allow, best first.
func (t *Transport) Devices() ([]transport.Device, error) {
	ds, err := t.cfg.devices()
	if err != nil {
		return nil, err
	}
	out := make([]transport.Device, len(ds))
	for i, d := range ds {
		out[i] = d.Device
	}
	return out, nil
}

// Together says why connections of these devices would not go over all of them; nil if they do.
func (t *Transport) Together(want []transport.Device) error {
	devs, err := t.cfg.devices()
	if err != nil {
		return err
	}
	devs = slices.DeleteFunc(devs, func(d device) bool {
		return !slices.ContainsFunc(want, func(w transport.Device) bool { return w.Name == d.Name })
	})
	if used := preferred(devs); len(used) < len(want) {
		return xerr.New(xerr.InvalidUsage, "socket transport", "of %s only %s would be used together: the others are of another kind, down, or less than half as fast",
			names(want), strings.Join(deviceNames(used), " "))
	}
	return nil
}

func names(list []transport.Device) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Name)
	}
	return strings.Join(out, "+")
}

func deviceNames(list []device) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.Name)
	}
	return out
}

type text [C.GCCL_NET_TEXT]C.char

func (t *text) String() string { return C.GoString(&t[0]) }

type endpoint struct {
	p      *C.gccl_net_ep
	cfg    Config
	opt    transport.Options
	devs   []device
	first  int // so many of devs are preferred
	places []place
	acc    *transport.Acceptor
}

// Open makes an endpoint, which listens on the addresses of its devices and on no other.
func (t *Transport) Open(o transport.Options) (transport.Endpoint, error) {
	devs, err := t.cfg.devices()
	if err != nil {
		return nil, err
	}
	if o.Devices != nil {
		devs = slices.DeleteFunc(devs, func(d device) bool {
			return !slices.ContainsFunc(o.Devices, func(w transport.Device) bool { return w.Name == d.Name })
		})
		if len(devs) == 0 {
			return nil, xerr.New(xerr.InvalidArgument, "socket transport", "none of the devices %v is there", o.Devices)
		}
	}
	e := &endpoint{cfg: t.cfg, opt: o, devs: devs, first: len(preferred(devs))}
	// Preferred devices stand first, so that rails have equal numbers on hosts that are built alike.
	better := preferred(devs)
	rest := slices.DeleteFunc(slices.Clone(devs), func(d device) bool {
		return slices.ContainsFunc(better, func(b device) bool { return b.Name == d.Name })
	})
	e.devs = append(better, rest...)
	var listeners []stdnet.Listener
	var failures []error
	for i, d := range e.devs {
		for _, a := range d.Addrs {
			ls, err := listen(a, d.Name, sharesNetwork(e.devs, i))
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", d.Name, err))
				continue
			}
			listeners = append(listeners, ls...)
			e.places = append(e.places, place{netip.AddrPortFrom(a, portOf(ls[0])), i})
		}
	}
	if len(listeners) == 0 {
		return nil, xerr.Wrap(xerr.System, "socket transport", errors.Join(failures...), "cannot listen on any address")
	}
	var why text
	if e.p = C.gccl_socket_open(C.int32_t(o.Rank), &why[0]); e.p == nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		return nil, xerr.New(xerr.System, "socket transport", "%v", &why)
	}
	for i := range e.devs {
		name := C.CString(e.devs[i].Name)
		e.devs[i].link = int(C.gccl_socket_add_link(e.p, name))
		C.free(unsafe.Pointer(name))
	}
	e.acc = transport.NewAcceptor(o.Secret, listeners...)
	return e, nil
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	e.acc.Close()
	C.socket_close_ep(e.p)
	return nil
}

// local is whether an address is one of ours.
func (e *endpoint) local(a netip.Addr) bool {
	return a.IsLoopback() || slices.ContainsFunc(e.devs, func(d device) bool { return slices.Contains(d.Addrs, a) })
}

type conn struct {
	ep      *endpoint
	peer    int
	id      transport.ConnID
	arrived <-chan transport.Stream
	p       *C.gccl_net_conn
}

func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	id, err := transport.NewConnID()
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "socket transport", err, "no random numbers")
	}
	return &conn{ep: e, peer: peer, id: id, arrived: e.acc.Expect(id)}, nil
}

func (c *conn) Blob() []byte      { return encodeBlob(c.id, c.ep.places) }
func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Connect dials or waits to be dialed, whichever the names say.
func (c *conn) Connect(ctx context.Context, remote []byte) error {
	streams, err := c.meet(ctx, remote)
	c.ep.acc.Forget(c.id)
	if err == nil {
		err = c.start(streams)
	}
	closeAll(streams) // C has its own descriptors
	if err == nil {
		return nil
	}
	code := xerr.System
	switch {
	case errors.Is(err, transport.ErrUnproved):
		code = xerr.Remote
	case ctx.Err() != nil:
		code = xerr.Timeout
	}
	return xerr.Wrap(code, "socket connect", err, "no connection with rank %d", c.peer).WithRank(c.peer).
		WithHint("name the interfaces that lead to all ranks with NCCL_SOCKET_IFNAME, and let TCP pass between them")
}

func (c *conn) meet(ctx context.Context, remote []byte) ([]*stdnet.TCPConn, error) {
	to, places, err := decodeBlob(remote)
	if err != nil {
		return nil, err
	}
	if bytes.Compare(c.id[:], to[:]) < 0 {
		return c.dial(ctx, to, places)
	}
	return c.await(ctx, to)
}

// After the handshake, when the dialer knows how many streams there are, it says on each one which it is; the listener
// answers on each when all are there, or when the rest has not come within settling: a link was cut meanwhile. Whoever misses
// a stream then begins with a dead one in its place, which the data path treats like one that dies later.
type role struct{ index, count uint16 }

const roleBytes = 4

func (r role) encode() []byte {
	return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, r.index), r.count)
}

func decodeRole(b []byte) (role, error) {
	r := role{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])}
	if r.count == 0 || r.index >= r.count || r.count > maxTotal {
		return r, fmt.Errorf("stream %d of %d", r.index, r.count)
	}
	return r, nil
}

// maxTotal bounds the streams of a connection over all its paths.
const maxTotal = 64

// settling is how long the rest of the streams may take when one is there: what the data path gives a silent stream.
const settling = 3 * time.Second

func (c *conn) dial(ctx context.Context, to transport.ConnID, places []place) ([]*stdnet.TCPConn, error) {
	streams, err := c.open(ctx, to, places)
	if err != nil {
		return nil, err
	}
	return streams, c.assign(ctx, streams)
}

// open connects and proves all streams.
func (c *conn) open(ctx context.Context, to transport.ConnID, places []place) ([]*stdnet.TCPConn, error) {
	prove := func(t *stdnet.TCPConn, r *route) error {
		return transport.ProveAsDialer(t, transport.Hello{To: to, From: c.id, Count: 1, Path: uint16(r.rail)}, c.ep.opt.Secret)
	}
	paths, err := c.paths(ctx, places, prove)
	if err != nil {
		return nil, err
	}
	var streams []*stdnet.TCPConn
	for _, p := range paths {
		streams = append(streams, p.conn)
	}
	for k := 1; k < maxTotal; k++ { // the k-th stream of every path that gets as many
		for i := range paths {
			if p := &paths[i]; k < c.ep.cfg.streams(p.dev) && len(streams) < maxTotal {
				if t, err := c.further(ctx, &p.route, prove); err == nil {
					streams = append(streams, t)
				}
			}
		}
	}
	return streams, nil
}

// further opens one more stream along a route that worked.
func (c *conn) further(ctx context.Context, r *route, prove func(*stdnet.TCPConn, *route) error) (*stdnet.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := r.dial(ctx, c.ep.local)
	if err == nil {
		if err = within(ctx, t, func() error { return prove(t, r) }); err != nil {
			_ = t.Close()
		}
	}
	return t, err
}

// assign says on each stream which it is and waits for the answers. Streams without one become nil; one answer is needed.
func (c *conn) assign(ctx context.Context, streams []*stdnet.TCPConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(streams))
	for i, t := range streams {
		go func() {
			err := within(ctx, t, func() error {
				if _, err := t.Write(role{uint16(i), uint16(len(streams))}.encode()); err != nil {
					return err
				}
				var b [1]byte
				_, err := io.ReadFull(t, b[:])
				return err
			})
			answers <- answer{i, err}
		}()
	}
	var errs []error
	var rest *time.Timer
	for range streams {
		a := <-answers
		if a.err != nil {
			_ = streams[a.i].Close()
			streams[a.i] = nil
			errs = append(errs, a.err)
			continue
		}
		if rest == nil {
			rest = time.AfterFunc(settling, cancel)
			defer rest.Stop()
		}
	}
	if len(errs) == len(streams) {
		return fmt.Errorf("it has taken none of %d streams: %w", len(streams), errors.Join(errs...))
	}
	return nil
}

// paths tries the preferred interfaces, then all, again and again.
func (c *conn) paths(ctx context.Context, places []place, prove func(*stdnet.TCPConn, *route) error) ([]path, error) {
	var last error
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		for _, devs := range [][]device{c.ep.devs[:c.ep.first], c.ep.devs} {
			rs := routes(devs, places)
			if len(rs) == 0 {
				continue
			}
			ps, err := try(ctx, rs, c.ep.local, prove)
			if err == nil {
				return ps, nil
			}
			last = err
		}
		if last == nil {
			return nil, fmt.Errorf("no address in common: it listens on %s, here are %s", describe(places), describe(c.ep.places))
		}
		if errors.Is(last, transport.ErrUnproved) && allUnproved(last) {
			return nil, last // it is there and will not change its mind
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), last)
		}
	}
}

// allUnproved is whether every route led to somebody who does not know the secret.
func allUnproved(err error) bool {
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return errors.Is(err, transport.ErrUnproved)
	}
	return !slices.ContainsFunc(j.Unwrap(), func(e error) bool { return !errors.Is(e, transport.ErrUnproved) })
}

// within runs a conversation that ends with ctx.
func within(ctx context.Context, t *stdnet.TCPConn, f func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = t.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := f(); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// await collects the streams that the peer dials.
func (c *conn) await(ctx context.Context, from transport.ConnID) (streams []*stdnet.TCPConn, err error) {
	type assigned struct {
		role
		conn *stdnet.TCPConn
	}
	// Streams whose role was said. Those that the dialer gave up end without a role.
	ready := make(chan assigned)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var late <-chan time.Time
	defer func() {
		if err != nil {
			closeAll(streams)
		}
	}()
	for {
		select {
		case s, ok := <-c.arrived:
			if !ok {
				return nil, errors.New("the endpoint was closed")
			}
			t := s.Conn.(*stdnet.TCPConn)
			if s.Hello.From != from {
				_ = t.Close()
				continue
			}
			go func() {
				var b [roleBytes]byte
				err := within(ctx, t, func() error { _, err := io.ReadFull(t, b[:]); return err })
				r := role{}
				if err == nil {
					r, err = decodeRole(b[:])
				}
				if err == nil {
					select {
					case ready <- assigned{r, t}:
						return
					case <-ctx.Done():
					}
				}
				_ = t.Close()
			}()
		case a := <-ready:
			if streams == nil {
				streams, late = make([]*stdnet.TCPConn, a.count), time.After(settling)
			}
			if len(streams) != int(a.count) || streams[a.index] != nil {
				_ = a.conn.Close()
				return streams, fmt.Errorf("it says that a stream is %d of %d", a.index, a.count)
			}
			streams[a.index] = a.conn
			if !slices.Contains(streams, nil) {
				return streams, answer(streams)
			}
		case <-late:
			return streams, answer(streams)
		case <-ctx.Done():
			return streams, fmt.Errorf("it did not connect to %s: %w", describe(c.ep.places), ctx.Err())
		}
	}
}

// answer tells the dialer which streams are taken. Those that fail become nil; one is needed.
func answer(streams []*stdnet.TCPConn) error {
	var errs []error
	for i, t := range streams {
		if t == nil {
			continue
		}
		if _, err := t.Write([]byte{1}); err != nil {
			_ = t.Close()
			streams[i] = nil
			errs = append(errs, err)
		}
	}
	if !slices.ContainsFunc(streams, func(t *stdnet.TCPConn) bool { return t != nil }) {
		return errors.Join(errs...)
	}
	return nil
}

func closeAll(streams []*stdnet.TCPConn) {
	for _, t := range streams {
		if t != nil {
			_ = t.Close()
		}
	}
}

func describe(ps []place) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.at.String())
	}
	return strings.Join(out, ", ")
}

// start gives copies of the descriptors to C.
func (c *conn) start(streams []*stdnet.TCPConn) error {
	fds, links := make([]int, 0, len(streams)), make([]int, 0, len(streams))
	err := func() error {
		for _, t := range streams {
			if t == nil { // lost before the start
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
				if err != nil {
					return err
				}
				fds, links = append(fds, fd), append(links, -1)
				continue
			}
			raw, err := t.SyscallConn()
			if err != nil {
				return err
			}
			var fd int
			var inner error
			if err := raw.Control(func(p uintptr) { fd, inner = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || inner != nil {
				return errors.Join(err, inner)
			}
			fds, links = append(fds, fd), append(links, c.ep.linkOf(t))
		}
		return c.adopt(fds, links)
	}()
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	return err
}

// linkOf is the device of a stream: the one with its local address.
func (e *endpoint) linkOf(t *stdnet.TCPConn) int {
	at, ok := netip.AddrFromSlice(t.LocalAddr().(*stdnet.TCPAddr).IP)
	for _, d := range e.devs {
		if ok && slices.ContainsFunc(d.Addrs, func(a netip.Addr) bool { return a.WithZone("") == at.Unmap() }) {
			return d.link
		}
	}
	return -1
}

// adopt makes the connection of descriptors, which are C's if it succeeds.
func (c *conn) adopt(fds, links []int) error {
	raw, over := make([]C.int, len(fds)), make([]C.int, len(fds))
	for i, fd := range fds {
		raw[i], over[i] = C.int(fd), C.int(links[i])
	}
	var why text
	if c.p = C.gccl_socket_conn(c.ep.p, C.int32_t(c.peer), &raw[0], &over[0], C.int(len(raw)), &why[0]); c.p == nil {
		return errors.New(why.String())
	}
	C.gccl_socket_start(c.p)
	return nil
}

// headBytes is the length of a frame's head.
const headBytes = C.GCCL_SOCKET_HEAD

// seal makes a head believable: for tests.
func seal(head []byte) { C.gccl_socket_seal(unsafe.Pointer(unsafe.SliceData(head))) }
