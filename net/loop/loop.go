// Package loop owns the transport between ranks of one process. It is the plain reference for the others, and what the
// proxy is measured with.
//
// It must not know windows, signals or communicators.
package loop

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#include "loop.h"

static void tp_close_ep(gccl_net_ep *e) { e->ops->close(e); }
*/
import "C"

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"sync"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Transport is the transport.
type Transport struct{}

var _ transport.Transport = Transport{}

// Name is "loop".
func (Transport) Name() string { return "loop" }

// Devices lists the one device: memory.
func (Transport) Devices() ([]transport.Device, error) {
	return []transport.Device{{Name: "memory", NUMA: -1}}, nil
}

// Open makes an endpoint.
func (Transport) Open(o transport.Options) (transport.Endpoint, error) {
	e := C.gccl_loop_open(C.int32_t(o.Rank))
	if e == nil {
		return nil, outOfMemory()
	}
	return &endpoint{e, o}, nil
}

func outOfMemory() error { return xerr.New(xerr.System, "loop transport", "out of memory") }

type endpoint struct {
	p   *C.gccl_net_ep
	opt transport.Options
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	C.tp_close_ep(e.p)
	return nil
}

// blob is the name of a connection in its process: random, so that one of another process is not found here.
const blobBytes = 16

type blob [blobBytes]byte

// waiting are the connections of this process that nobody has joined yet.
var (
	mu      sync.Mutex
	waiting = map[blob]*conn{}
)

type conn struct {
	ep     *endpoint
	p      *C.gccl_net_conn
	id     blob
	wants  blob       // the other end, once known
	joined chan error // ends the wait of the end that came first
}

// NewConn prepares a connection.
func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	c := &conn{ep: e, joined: make(chan error, 1)}
	if _, err := rand.Read(c.id[:]); err != nil {
		return nil, xerr.Wrap(xerr.System, "loop transport", err, "no random numbers")
	}
	if c.p = C.gccl_loop_conn(e.p, C.int32_t(peer)); c.p == nil {
		return nil, outOfMemory()
	}
	return c, nil
}

func (c *conn) Blob() []byte      { return c.id[:] }
func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Connect joins the two ends: the second that comes does it.
func (c *conn) Connect(ctx context.Context, remote []byte) error {
	if len(remote) != blobBytes {
		peer := int(c.p.peer)
		C.gccl_loop_discard(c.p)
		return xerr.New(xerr.InvalidArgument, "loop connect", "%d bytes that are no name of a loop connection", len(remote)).WithRank(peer)
	}
	mu.Lock()
	c.wants = blob(remote)
	other := waiting[c.wants]
	if other != nil && other.wants == c.id {
		delete(waiting, other.id)
		err := c.join(other)
		other.joined <- err
		mu.Unlock()
		return err
	}
	waiting[c.id] = c
	mu.Unlock()
	select {
	case err := <-c.joined:
		return err
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case err := <-c.joined: // in the last moment
		return err
	default:
	}
	delete(waiting, c.id)
	peer := int(c.p.peer)
	C.gccl_loop_discard(c.p)
	return xerr.Wrap(xerr.Timeout, "loop connect", ctx.Err(), "rank %d did not connect; loop works inside one process only", peer).WithRank(peer)
}

// join is called with mu held.
func (c *conn) join(other *conn) error {
	var err error
	switch {
	case !hmac.Equal(c.ep.opt.Secret[:], other.ep.opt.Secret[:]):
		err = xerr.New(xerr.Remote, "loop connect", "the other end has another secret").WithRank(int(c.p.peer))
	case C.gccl_loop_join(c.p, other.p) != 0:
		err = outOfMemory()
	}
	if err != nil {
		C.gccl_loop_discard(c.p)
		C.gccl_loop_discard(other.p)
	}
	return err
}
