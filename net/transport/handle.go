package transport

/*
#cgo CFLAGS: -std=gnu11 -O2
#include <stdlib.h>
#include "transport.h"

static int tp_reg(gccl_net_ep *e, uintptr_t addr, uint64_t bytes, int dmabuf, uint64_t off, gccl_net_mr **mr, char *why) {
  gccl_net_mem m = {(void *)addr, bytes, dmabuf, off};
  return e->ops->reg(e, &m, mr, why);
}
static void tp_dereg(gccl_net_mr *m) { m->ep->ops->dereg(m); }
static int tp_import(gccl_net_conn *c, const void *b, uint32_t n, gccl_net_rmr *r, char *why) { return c->ops->import(c, b, n, r, why); }
static int tp_post(gccl_net_conn *c, const gccl_net_wr *w, int n, char *why) { return c->ops->post(c, w, n, why); }
static int tp_poll(gccl_net_ep *e, gccl_net_event *ev, int max) { return e->ops->poll(e, ev, max); }
static void tp_wait(gccl_net_ep *e, uint64_t ns) { if (e->ops->wait) e->ops->wait(e, ns); }
static void tp_wake(gccl_net_ep *e) { if (e->ops->wake) e->ops->wake(e); }
static void tp_close_conn(gccl_net_conn *c) { c->ops->close_conn(c); }
static int tp_conn_faulted(gccl_net_conn *c) { return gccl_net_faulted(&c->fault); }
static int tp_ep_faulted(gccl_net_ep *e) { return gccl_net_faulted(&e->fault); }
static uint64_t tp_load(_Atomic uint64_t *p) { return atomic_load_explicit(p, memory_order_relaxed); }
static void tp_stats(gccl_net_conn *c, uint64_t *o) {
  gccl_net_stats *s = &c->stats;
  o[0] = tp_load(&s->tx_bytes), o[1] = tp_load(&s->rx_bytes), o[2] = tp_load(&s->tx_ops), o[3] = tp_load(&s->tx_msgs);
  o[4] = tp_load(&s->rx_msgs), o[5] = tp_load(&s->busy_ns), o[6] = tp_load(&s->retries);
  o[7] = atomic_load_explicit(&s->paths, memory_order_relaxed);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// Handle is a gccl_net_ep or gccl_net_conn, for C.
type Handle = unsafe.Pointer

// Limits of the table.
const (
	MaxBlob   = C.GCCL_NET_CONN_BLOB
	MaxMemory = C.GCCL_NET_MEM_BLOB
	MaxMsg    = C.GCCL_NET_MSG
)

// Op is what a work request does.
type Op uint8

// The operations.
const (
	Put       Op = C.GCCL_NET_PUT
	PutInline Op = C.GCCL_NET_PUT_INLINE
	Get       Op = C.GCCL_NET_GET
	Msg       Op = C.GCCL_NET_MSGSEND
	Flush     Op = C.GCCL_NET_FLUSH
	Send      Op = C.GCCL_NET_SEND // to number Off
)

// Work is a gccl_net_wr.
type Work struct {
	Op       Op
	Weak     bool
	Signaled bool
	Cookie   uint64
	Bytes    uint64
	Local    Memory
	LocalOff uint64
	Remote   Remote
	Off      uint64
	Data     []byte // of Msg and PutInline, whose Bytes follow from it
}

// EventKind is what an Event tells.
type EventKind uint32

// The kinds of events.
const (
	Done    EventKind = C.GCCL_NET_EV_DONE
	Message EventKind = C.GCCL_NET_EV_MSG
	Fault   EventKind = C.GCCL_NET_EV_FAULT
)

// Event is a gccl_net_event.
type Event struct {
	Conn   Handle
	Kind   EventKind
	Cookie uint64
	Data   []byte
}

// Memory is a registration.
type Memory struct{ p *C.gccl_net_mr }

// Blob is what peers import.
func (m Memory) Blob() []byte { return C.GoBytes(unsafe.Pointer(&m.p.blob[0]), C.int(m.p.blob_bytes)) }

// C is the gccl_net_mr.
func (m Memory) C() Handle { return Handle(m.p) }

// Deregister ends the registration.
func (m Memory) Deregister() { C.tp_dereg(m.p) }

// Remote is an imported registration.
type Remote struct{ r C.gccl_net_rmr }

// C copies the gccl_net_rmr to C memory.
func (r Remote) C() (p Handle, free func()) {
	c := C.malloc(C.sizeof_gccl_net_rmr)
	*(*C.gccl_net_rmr)(c) = r.r
	return c, func() { C.free(c) }
}

// ErrBusy says that queues are full: poll, then retry. It is not a failure.
var ErrBusy = errors.New("queues are full")

// failed makes an error of a negative result.
func failed(op string, rc C.int, why *[C.GCCL_NET_TEXT]C.char) error {
	code := map[C.int]xerr.Code{C.GCCL_NET_EINVAL: xerr.InvalidArgument, C.GCCL_NET_ENOTSUP: xerr.InvalidUsage, C.GCCL_NET_ENOMEM: xerr.System,
		C.GCCL_NET_ESYSTEM: xerr.System, C.GCCL_NET_ETIMEOUT: xerr.Timeout, C.GCCL_NET_EFAULT: xerr.Remote, C.GCCL_NET_EREMOTE: xerr.Remote}[rc]
	if code == xerr.Success {
		code = xerr.Internal
	}
	return xerr.New(code, op, "%s", C.GoString(&why[0]))
}

// Register registers bytes at an address for an endpoint's connections. The memory is not Go's.
func Register(ep Handle, addr uintptr, bytes uint64) (Memory, error) {
	return RegisterDevice(ep, addr, bytes, -1, 0)
}

// RegisterDevice registers memory of a device, whose first byte is the one at offset of a dma-buf, which stays the caller's.
func RegisterDevice(ep Handle, addr uintptr, bytes uint64, dmabuf int, offset uint64) (Memory, error) {
	var why [C.GCCL_NET_TEXT]C.char
	var m *C.gccl_net_mr
	if rc := C.tp_reg((*C.gccl_net_ep)(ep), C.uintptr_t(addr), C.uint64_t(bytes), C.int(dmabuf), C.uint64_t(offset), &m, &why[0]); rc < 0 {
		return Memory{}, failed("register memory", rc, &why)
	}
	return Memory{m}, nil
}

// Import decodes a peer's registration.
func Import(conn Handle, blob []byte) (Remote, error) {
	var why [C.GCCL_NET_TEXT]C.char
	var r C.gccl_net_rmr
	if rc := C.tp_import((*C.gccl_net_conn)(conn), unsafe.Pointer(unsafe.SliceData(blob)), C.uint32_t(len(blob)), &r, &why[0]); rc < 0 {
		return Remote{}, failed("import memory", rc, &why)
	}
	return Remote{r}, nil
}

// Post posts work and returns how many requests were taken; with fewer than all of them the error is ErrBusy or says what
// is wrong with the first one left.
func Post(conn Handle, work ...Work) (int, error) {
	if len(work) == 0 {
		return 0, nil
	}
	n := C.size_t(len(work))
	wrs := (*C.gccl_net_wr)(C.calloc(n, C.sizeof_gccl_net_wr))
	remotes := (*C.gccl_net_rmr)(C.calloc(n, C.sizeof_gccl_net_rmr))
	defer C.free(unsafe.Pointer(wrs))
	defer C.free(unsafe.Pointer(remotes))
	for i, w := range work {
		c := &unsafe.Slice(wrs, n)[i]
		r := &unsafe.Slice(remotes, n)[i]
		*r = w.Remote.r
		c.op, c.cookie, c.bytes, c.local, c.loff, c.remote, c.roff = C.uint8_t(w.Op), C.uint64_t(w.Cookie), C.uint64_t(w.Bytes), w.Local.p, C.uint64_t(w.LocalOff), r, C.uint64_t(w.Off)
		if w.Weak {
			c.flags |= C.GCCL_NET_WEAK
		}
		if w.Signaled {
			c.flags |= C.GCCL_NET_SIGNALED
		}
		if w.Data != nil {
			c.bytes = C.uint64_t(len(w.Data))
			for k := range min(len(w.Data), MaxMsg) {
				c.data[k] = C.uchar(w.Data[k])
			}
		}
	}
	var why [C.GCCL_NET_TEXT]C.char
	rc := C.tp_post((*C.gccl_net_conn)(conn), wrs, C.int(len(work)), &why[0])
	switch {
	case rc == C.GCCL_NET_EFAULT:
		return 0, ConnErr(conn)
	case rc < 0:
		return 0, failed("post", rc, &why)
	case int(rc) < len(work):
		return int(rc), ErrBusy
	}
	return int(rc), nil
}

// Poll makes progress and returns at most max events.
func Poll(ep Handle, max int) []Event {
	ev := (*C.gccl_net_event)(C.malloc(C.size_t(max) * C.sizeof_gccl_net_event))
	defer C.free(unsafe.Pointer(ev))
	n := int(C.tp_poll((*C.gccl_net_ep)(ep), ev, C.int(max)))
	out := make([]Event, 0, n)
	for _, e := range unsafe.Slice(ev, n) {
		o := Event{Conn: unsafe.Pointer(e.conn), Kind: EventKind(e.kind), Cookie: uint64(e.cookie)}
		if o.Kind == Message {
			o.Data = C.GoBytes(unsafe.Pointer(&e.data[0]), C.int(e.bytes))
		}
		out = append(out, o)
	}
	return out
}

// Wait sleeps until something may have arrived, Wake was called, or d has passed; not every transport can.
func Wait(ep Handle, d time.Duration) {
	C.tp_wait((*C.gccl_net_ep)(ep), C.uint64_t(max(d, 0)))
}

// Wake ends a Wait of another thread.
func Wake(ep Handle) { C.tp_wake((*C.gccl_net_ep)(ep)) }

// CanWait says whether Wait does anything.
func CanWait(ep Handle) bool { return (*C.gccl_net_ep)(ep).ops.wait != nil }

// CloseConn closes a connection and frees it.
func CloseConn(conn Handle) { C.tp_close_conn((*C.gccl_net_conn)(conn)) }

// Peer is the rank at the other end.
func Peer(conn Handle) int { return int((*C.gccl_net_conn)(conn).peer) }

// ConnErr is the latched failure of a connection, EndpointErr that of an endpoint; nil if there is none.
func ConnErr(conn Handle) error {
	c := (*C.gccl_net_conn)(conn)
	return latched(C.tp_conn_faulted(c), &c.fault, int(c.peer))
}
func EndpointErr(ep Handle) error {
	e := (*C.gccl_net_ep)(ep)
	return latched(C.tp_ep_faulted(e), &e.fault, int(e.rank))
}

func latched(code C.int, f *C.gccl_net_fault, rank int) error {
	if code == 0 {
		return nil
	}
	err := failed("network", code, &f.text)
	var x *xerr.Error
	if errors.As(err, &x) {
		return x.WithRank(rank)
	}
	return err
}

// Stats are gccl_net_stats.
type Stats struct {
	TxBytes, RxBytes, TxOps, TxMsgs, RxMsgs uint64
	Busy                                    time.Duration
	Retries                                 uint64
	Paths                                   int
}

// Rate is what the link gave, in bytes a second; 0 as long as nothing was measured.
func (s Stats) Rate() float64 {
	if s.Busy <= 0 {
		return 0
	}
	return float64(s.TxBytes) / s.Busy.Seconds()
}

func (s Stats) String() string {
	return fmt.Sprintf("sent %d bytes in %d operations and %d messages, received %d bytes and %d messages, busy %v, retries %d, paths %d",
		s.TxBytes, s.TxOps, s.TxMsgs, s.RxBytes, s.RxMsgs, s.Busy, s.Retries, s.Paths)
}

// ConnStats reads the statistics of a connection.
func ConnStats(conn Handle) Stats {
	var o [8]C.uint64_t
	C.tp_stats((*C.gccl_net_conn)(conn), &o[0])
	return Stats{uint64(o[0]), uint64(o[1]), uint64(o[2]), uint64(o[3]), uint64(o[4]), time.Duration(o[5]), uint64(o[6]), int(o[7])}
}
