// Package faulty owns a wrapper of transports that makes trouble by a fixed seed: queues that are full, batches taken in part,
// events that come late or one by one, connections that are dropped. What goes wrong on the wire is for each transport's
// own tests.
//
// It must not know which transport it wraps.
package faulty

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include "faulty.h"
*/
import "C"

import (
	"context"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Config says what goes wrong, per 1000 calls.
type Config struct {
	Seed      uint64
	Busy      int // post takes nothing
	Partial   int // post takes some
	Late      int // poll brings nothing
	Single    int // poll brings one event
	DropAfter int // work requests, after which a connection is dropped; 0: never
	// Links are devices that work goes over, each as slow as it says; none: the transport's own.
	Links []Link
}

// Link is a device of a wrapped endpoint.
type Link struct {
	Device         string
	Port           int
	BytesPerSecond float64
}

type wrapper struct {
	transport.Transport
	cfg Config
}

// Wrap makes a transport that wraps another.
func Wrap(t transport.Transport, c Config) transport.Transport { return &wrapper{t, c} }

func (w *wrapper) Name() string { return "faulty " + w.Transport.Name() }

type endpoint struct {
	inner transport.Endpoint
	p     *C.gccl_net_ep
}

func (w *wrapper) Open(o transport.Options) (transport.Endpoint, error) {
	inner, err := w.Transport.Open(o)
	if err != nil {
		return nil, err
	}
	c := w.cfg
	want := C.gccl_faulty_want{seed: C.uint64_t(c.Seed) + C.uint64_t(o.Rank), busy: C.uint32_t(c.Busy), partial: C.uint32_t(c.Partial),
		late: C.uint32_t(c.Late), single: C.uint32_t(c.Single), drop_after: C.uint64_t(c.DropAfter)}
	if len(c.Links) > len(want.link) {
		_ = inner.Close()
		return nil, xerr.New(xerr.InvalidArgument, "faulty transport", "%d links, at most %d", len(c.Links), len(want.link))
	}
	for i, l := range c.Links {
		for k, b := range []byte(l.Device[:min(len(l.Device), len(want.link[i].name)-1)]) {
			want.link[i].name[k] = C.char(b)
		}
		want.link[i].port = C.int32_t(l.Port)
		want.link[i].bytes_per_second = C.double(l.BytesPerSecond)
	}
	want.nlinks = C.int(len(c.Links))
	p := C.gccl_faulty_open((*C.gccl_net_ep)(inner.C()), &want)
	if p == nil {
		_ = inner.Close()
		return nil, xerr.New(xerr.System, "faulty transport", "out of memory")
	}
	return &endpoint{inner, p}, nil
}

// Count is how often something went wrong at an endpoint that Wrap's transport opened.
func Count(e transport.Endpoint) int {
	f, ok := e.(*endpoint)
	if !ok {
		return 0
	}
	return int(C.gccl_faulty_count(f.p))
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	C.gccl_faulty_close(e.p)
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
	if c.p = C.gccl_faulty_conn(c.ep.p, (*C.gccl_net_conn)(c.Conn.C())); c.p == nil {
		return xerr.New(xerr.System, "faulty connect", "out of memory")
	}
	return nil
}

func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }
