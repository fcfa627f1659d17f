// Package trace owns a wrapper of transports that writes down what passes an endpoint: the last few thousand work requests
// that were taken and events that were handed out, with their times.
//
// It must not know which transport it wraps.
package trace

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include "trace.h"
*/
import "C"

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

type wrapper struct{ transport.Transport }

// Wrap makes a transport that wraps another.
func Wrap(t transport.Transport) transport.Transport { return &wrapper{t} }

func (w *wrapper) Name() string { return "trace " + w.Transport.Name() }

type endpoint struct {
	inner transport.Endpoint
	p     *C.gccl_net_ep
}

func (w *wrapper) Open(o transport.Options) (transport.Endpoint, error) {
	inner, err := w.Transport.Open(o)
	if err != nil {
		return nil, err
	}
	p := C.gccl_trace_open((*C.gccl_net_ep)(inner.C()))
	if p == nil {
		_ = inner.Close()
		return nil, xerr.New(xerr.System, "trace transport", "out of memory")
	}
	return &endpoint{inner, p}, nil
}

// Line is a work request that was taken, or an event.
type Line struct {
	At     time.Duration // since the endpoint was opened
	Peer   int
	Op     transport.Op        // 0 for an event
	Event  transport.EventKind // 0 for a work request
	Weak   bool
	Bytes  uint64
	Off    uint64
	Cookie uint64
}

func (l Line) String() string {
	if l.Event != 0 {
		return fmt.Sprintf("%12v from rank %d: %s, %d bytes, cookie %#x", l.At, l.Peer, map[transport.EventKind]string{transport.Done: "done", transport.Message: "message", transport.Fault: "fault"}[l.Event], l.Bytes, l.Cookie)
	}
	op := map[transport.Op]string{transport.Put: "put", transport.PutInline: "put inline", transport.Get: "get", transport.Msg: "message", transport.Flush: "flush"}[l.Op]
	if l.Weak {
		op = "weak " + op
	}
	return fmt.Sprintf("%12v to rank %d: %s, %d bytes at %d, cookie %#x", l.At, l.Peer, op, l.Bytes, l.Off, l.Cookie)
}

// Lines are the last lines of an endpoint that Wrap's transport opened, oldest first, and how many there ever were. Any
// goroutine may ask.
func Lines(e transport.Endpoint) (last []Line, total uint64) {
	t, ok := e.(*endpoint)
	if !ok {
		return nil, 0
	}
	raw := make([]C.gccl_trace_line, C.GCCL_TRACE_LINES)
	total = uint64(C.gccl_trace_read(t.p, &raw[0]))
	for _, r := range raw[:min(total, uint64(len(raw)))] {
		l := Line{At: time.Duration(r.ns), Peer: int(r.peer), Weak: r.flags&C.GCCL_NET_WEAK != 0, Bytes: uint64(r.bytes), Off: uint64(r.off), Cookie: uint64(r.cookie)}
		if r.is_event != 0 {
			l.Event, l.Weak = transport.EventKind(r.what), false
		} else {
			l.Op = transport.Op(r.what)
		}
		last = append(last, l)
	}
	return last, total
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	C.gccl_trace_close(e.p)
	return e.inner.Close()
}

type conn struct {
	transport.Conn
	ep *endpoint
	p  *C.gccl_net_conn
}

func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	c, err := e.inner.NewConn(peer)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, ep: e}, nil
}

func (c *conn) Connect(ctx context.Context, remote []byte) error {
	if err := c.Conn.Connect(ctx, remote); err != nil {
		return err
	}
	if c.p = C.gccl_trace_conn(c.ep.p, (*C.gccl_net_conn)(c.Conn.C())); c.p == nil {
		return xerr.New(xerr.System, "trace connect", "out of memory")
	}
	return nil
}

func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }
