// Package gin owns the one-sided network of a rank: windows that peers reach, put, get, signal and counters over whatever
// transport carries them, and the thread that serves it. The data path is C (gin.h); Go makes, connects and ends it.
//
// It has two backends. `host`: an executor leaves commands in the port's ring (device/layout/port.h) and helps to serve it while it
// waits. `proxy`: rings of descriptors in NCCL's formats, which kernels can write.
//
// It must not know plans, launch tables or how a communicator comes to be; of the devices it knows the layout of shared areas.
package gin

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#cgo LDFLAGS: -pthread
#include "gin.h"

static int g_faulted(gin *g, int32_t rank, uint64_t older) {
  gin_peer *p = &g->peer[rank];
  return __atomic_load_n(&p->faulted, __ATOMIC_ACQUIRE) && !__atomic_load_n(&p->left, __ATOMIC_ACQUIRE) && gin_now() - p->faulted_ns >= older;
}
static int g_fault(gin *g) { return gccl_net_faulted(&g->fault); }
static void g_disconnect(gin *g, int32_t rank) {
  gccl_net_conn *c = g->peer[rank].conn;
  if (!c) return;
  gin_connect(g, rank, 0, NULL);
  c->ops->close_conn(c);
}
static gin_region *g_region(gin *g, int mirrors) { return mirrors ? &g->mirrors : &g->area; }
static int g_register(gin *g, int mirrors, uintptr_t base, uint64_t bytes, char *why) {
  return gin_register(g, g_region(g, mirrors), (void *)base, bytes, why);
}
static int g_window_add(gin *g, uint32_t number, uintptr_t base, uint64_t bytes, gin_window **out, char *why) {
  return gin_window_add(g, number, (void *)base, bytes, out, why);
}
static int g_import(gin *g, int32_t rank, int mirror, const void *blob, uint32_t bytes, char *why) {
  gin_peer *p = &g->peer[rank];
  return gin_import(g, rank, blob, bytes, mirror ? &p->mirror : &p->area, why);
}
static int g_import_window(gin *g, int32_t rank, uint32_t number, const void *blob, uint32_t bytes, char *why) {
  gin_window *w = gin_window_of(g, number);
  return w ? gin_import(g, rank, blob, bytes, &w->remote[rank], why) : gccl_net_why(why, GCCL_NET_EINVAL, "no window %u", number);
}
static void g_window_key(gin *g, int32_t rank, uint32_t number, uint32_t rkey) {
  gin_window *w = gin_window_of(g, number);
  if (w) w->keys.rkeys[rank] = gccl_be32(rkey);
}
static int g_lanes_open(gin *g, uintptr_t ops, struct ncclComm *comm, int on_device, char *why) {
  return gin_lanes_open(g, (const gccl_mover_ops *)ops, comm, on_device, why);
}
static gccl_port *g_port(gin *g) { return &g->port; }
*/
import "C"

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// MaxTransports is how many transports one object can use side by side.
const MaxTransports = int(C.GIN_ENDPOINTS)

// Gin is one rank's object. Its methods may be called from any goroutine, but not after Close.
type Gin struct {
	p    *C.gin
	rank int
	eps  [MaxTransports]transport.Endpoint
	comm control.Comm // that has the port
}

// New makes an object without connections. comm is the rank's struct ncclComm, whose area and mirrors peers write; nil for none.
func New(rank, nranks int, comm unsafe.Pointer) (*Gin, error) {
	p := C.gin_new(C.int32_t(rank), C.int32_t(nranks), (*C.struct_ncclComm)(comm))
	if p == nil {
		return nil, outOfMemory()
	}
	return &Gin{p: p, rank: rank}, nil
}

func outOfMemory() error { return xerr.New(xerr.System, "gin", "out of memory") }

// Thread says how the object's thread behaves.
type Thread struct {
	Spin time.Duration // silence before it naps; negative: it never naps
	Nap  time.Duration
	CPU  int // to run on; -1 any
}

// Start starts the thread.
func (g *Gin) Start(t Thread) error {
	g.p.spin_ns = C.uint64_t(t.Spin)
	if t.Spin < 0 {
		g.p.spin_ns = C.UINT64_MAX
	}
	if t.Nap > 0 {
		g.p.nap_ns = C.uint64_t(t.Nap)
	}
	g.p.cpu = C.int(t.CPU)
	if rc := C.gin_start(g.p); rc != 0 {
		return xerr.New(xerr.System, "gin", "cannot start a thread: error %d", int(rc)).WithHint("raise the limit of processes (ulimit -u)")
	}
	return nil
}

// Drain waits until everything that was asked for is posted, for at most d.
func (g *Gin) Drain(d time.Duration) bool { return C.gin_drain(g.p, C.uint64_t(d)) != 0 }

// Leave tells the peers that this rank leaves, and how far it has come. Preconditions: nobody uses the port.
func (g *Gin) Leave(d time.Duration) {
	g.with(func() { C.gin_leave(g.p) })
	g.Drain(d)
}

// Close stops the thread, ends the connections and frees everything. Preconditions: nobody uses the port or a context.
func (g *Gin) Close() {
	if !g.comm.Nil() {
		g.comm.SetPort(nil)
	}
	C.gin_stop(g.p)
	for i := range C.int(C.GIN_WINDOWS) {
		C.gin_window_end(&g.p.window[i])
	}
	for r := range int(g.p.nranks) {
		C.g_disconnect(g.p, C.int32_t(r))
	}
	C.gin_unmirror(g.p)
	for i, e := range g.eps {
		if e != nil {
			_ = e.Close()
			g.eps[i] = nil
		}
	}
	C.gin_free(g.p)
	g.p = nil
}

// with runs f while nobody serves the object.
func (g *Gin) with(f func()) {
	C.gin_acquire(g.p)
	defer C.gin_release(g.p)
	f()
}

// Attach makes the ring of commands, of a depth that is a power of two, and gives the port to a communicator's executor.
func (g *Gin) Attach(c control.Comm, depth int) error {
	if C.gin_port_open(g.p, C.uint32_t(depth)) == 0 {
		return outOfMemory()
	}
	c.SetPort(unsafe.Pointer(C.g_port(g.p)))
	g.comm = c
	return nil
}

// Help serves the object in the caller.
func (g *Gin) Help() bool { return C.gin_help(g.p) != 0 }

// Fault is a connection that has failed, though its rank has not left.
type Fault struct {
	Rank int
	Text string
}

// Faults lists the connections that failed at least `older` ago.
func (g *Gin) Faults(older time.Duration) []Fault {
	var out []Fault
	for r := range int(g.p.nranks) {
		if C.g_faulted(g.p, C.int32_t(r), C.uint64_t(older)) != 0 {
			p := (*C.gin_peer)(unsafe.Add(unsafe.Pointer(g.p.peer), r*C.sizeof_gin_peer))
			out = append(out, Fault{r, C.GoString(&p.fault[0])})
		}
	}
	return out
}

// Err is a mistake of this rank, such as a descriptor that makes no sense.
func (g *Gin) Err() error {
	if C.g_fault(g.p) == 0 {
		return nil
	}
	code := xerr.InvalidUsage
	if C.g_fault(g.p) == C.GCCL_NET_ESYSTEM { // of the mover
		code = xerr.UnhandledCuda
	}
	return xerr.New(code, "gin", "%s", C.GoString(&g.p.fault.text[0])).WithRank(g.rank)
}

// ---- Connections ----

// endpoint gives the object an endpoint in a slot.
func (g *Gin) endpoint(slot int, e transport.Endpoint) {
	g.with(func() { C.gin_endpoint(g.p, C.int(slot), (*C.gccl_net_ep)(e.C())) })
	g.eps[slot] = e
}

// Links tells what the devices of all endpoints have carried.
func (g *Gin) Links() []transport.Link {
	var out []transport.Link
	for _, e := range g.eps {
		if e != nil {
			out = append(out, transport.Links(e.C())...)
		}
	}
	return out
}

// dropEndpoint ends an endpoint and all that hangs on it.
func (g *Gin) dropEndpoint(slot int) {
	e := g.eps[slot]
	if e == nil {
		return
	}
	g.with(func() { C.gin_dismiss(g.p, C.int(slot)) })
	_ = e.Close()
	g.eps[slot] = nil
}

func (g *Gin) connect(rank, slot int, c transport.Conn) {
	g.with(func() { C.gin_connect(g.p, C.int32_t(rank), C.int(slot), (*C.gccl_net_conn)(c.C())) })
}

func (g *Gin) disconnect(rank int) { g.with(func() { C.g_disconnect(g.p, C.int32_t(rank)) }) }

// Transport names what carries traffic with a rank; empty if there is no connection.
func (g *Gin) Transport(rank int) string {
	p := (*C.gin_peer)(unsafe.Add(unsafe.Pointer(g.p.peer), rank*C.sizeof_gin_peer))
	if p.conn == nil {
		return ""
	}
	return C.GoString(p.conn.ops.name)
}

// ---- Memory ----

func memError(what string, why *[C.GCCL_NET_TEXT]C.char) error {
	return xerr.New(xerr.System, "gin", "%s: %s", what, C.GoString(&why[0]))
}

// register registers an area or the mirrors with the endpoints that do not have them.
func (g *Gin) register(mirrors bool, base uintptr, bytes uint64) error {
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	g.with(func() { rc = C.g_register(g.p, cbool(mirrors), C.uintptr_t(base), C.uint64_t(bytes), &why[0]) })
	if rc < 0 {
		return memError("cannot register memory", &why)
	}
	return nil
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func blobOf(m *C.gccl_net_mr) []byte {
	if m == nil {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(&m.blob[0]), C.int(m.blob_bytes))
}

func (g *Gin) blob(mirrors bool, slot int) []byte {
	return blobOf(C.g_region(g.p, cbool(mirrors)).mr[slot])
}

func (g *Gin) importFrom(rank int, mirror bool, blob []byte) error {
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	g.with(func() {
		rc = C.g_import(g.p, C.int32_t(rank), cbool(mirror), unsafe.Pointer(unsafe.SliceData(blob)), C.uint32_t(len(blob)), &why[0])
	})
	if rc < 0 {
		return memError("cannot import memory", &why)
	}
	return nil
}

// UseCard gives kernels the send queues of a card (a gccl_card) instead of the software NIC's. Preconditions: there are no windows and contexts
// yet; the card outlives the object.
func (g *Gin) UseCard(card unsafe.Pointer) { g.p.card = (*C.gccl_card)(card) }

// UseMover makes the object one of a device whose memory the CPU cannot touch. ops is a gccl_mover_ops, comm the struct ncclComm that has the device. onDevice: copies
// may need multiprocessors.
// Preconditions: it is connected, and there are no windows and contexts yet.
func (g *Gin) UseMover(ops uintptr, comm unsafe.Pointer, onDevice bool) error {
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	g.with(func() {
		rc = C.g_lanes_open(g.p, C.uintptr_t(ops), (*C.struct_ncclComm)(comm), cbool(onDevice), &why[0])
	})
	if rc < 0 {
		return memError("no copies between kernels and the network", &why)
	}
	return nil
}

// AddMapped makes a window of the communicator (a gccl_window) known to an object with a mover: peers' parts are mapped where this rank's is.
func (g *Gin) AddMapped(window unsafe.Pointer) error {
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	var w *C.gin_window
	g.with(func() { rc = C.gin_window_mapped(g.p, (*C.gccl_window)(window), &w, &why[0]) })
	if rc < 0 {
		return memError("cannot use a window", &why)
	}
	return nil
}

// AddWindow registers memory as a window, whose number is the same on all ranks and not 0, and returns what peers import: one blob for
// each slot of a transport, and one for a card.
func (g *Gin) AddWindow(number uint32, base uintptr, bytes uint64) ([][]byte, error) {
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	var w *C.gin_window
	g.with(func() {
		rc = C.g_window_add(g.p, C.uint32_t(number), C.uintptr_t(base), C.uint64_t(bytes), &w, &why[0])
	})
	if rc < 0 {
		return nil, memError("cannot register a window", &why)
	}
	blobs := make([][]byte, MaxTransports+1)
	for i := range MaxTransports {
		blobs[i] = blobOf(w.local.mr[i])
	}
	if w.mr != nil {
		blobs[MaxTransports] = binary.BigEndian.AppendUint32(nil, uint32(w.mr.rkey))
	}
	return blobs, nil
}

// ImportWindow takes a peer's blobs of a window.
func (g *Gin) ImportWindow(number uint32, rank int, blobs [][]byte) error {
	p := (*C.gin_peer)(unsafe.Add(unsafe.Pointer(g.p.peer), rank*C.sizeof_gin_peer))
	if p.conn == nil {
		return nil
	}
	if g.p.card != nil {
		if len(blobs) != MaxTransports+1 || len(blobs[MaxTransports]) != 4 {
			return xerr.New(xerr.Remote, "gin", "rank %d has sent no key of its card", rank).WithRank(rank)
		}
		key := binary.BigEndian.Uint32(blobs[MaxTransports])
		g.with(func() { C.g_window_key(g.p, C.int32_t(rank), C.uint32_t(number), C.uint32_t(key)) })
	}
	if int(p.endpoint) >= len(blobs) {
		return xerr.New(xerr.Remote, "gin", "rank %d has sent no registration for its connection", rank).WithRank(rank)
	}
	b := blobs[p.endpoint]
	var why [C.GCCL_NET_TEXT]C.char
	var rc C.int
	g.with(func() {
		rc = C.g_import_window(g.p, C.int32_t(rank), C.uint32_t(number), unsafe.Pointer(unsafe.SliceData(b)), C.uint32_t(len(b)), &why[0])
	})
	if rc < 0 {
		return memError("cannot import a window", &why)
	}
	return nil
}

// DropWindow ends a window here. Preconditions: no peer uses it.
func (g *Gin) DropWindow(number uint32) {
	g.with(func() { C.gin_window_drop(g.p, C.uint32_t(number)) })
}

// PackWindow is what a rank tells of its part of a window: the blobs, or what kept it from registering.
func PackWindow(blobs [][]byte, err error) []byte {
	if err != nil {
		return pack([]byte(err.Error()))
	}
	return pack(append([][]byte{nil}, blobs...)...)
}

// UnpackWindow is the other end.
func UnpackWindow(b []byte) ([][]byte, error) {
	if l := unpack(b, MaxTransports+2); l != nil {
		return l[1:], nil
	}
	if l := unpack(b, 1); l != nil {
		return nil, xerr.New(xerr.System, "gin", "%s", l[0])
	}
	return nil, xerr.New(xerr.Remote, "gin", "%d malformed bytes", len(b))
}
