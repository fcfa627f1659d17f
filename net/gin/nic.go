package gin

/*
#include "gin.h"

static unsigned char *g_block(gin *g, int context, int32_t peer, uint32_t index) {
  nic_qp *q = &g->context[context].qp[peer];
  return q->q.sq + (uint64_t)(index & (q->q.depth - 1)) * GCCL_WQE_BYTES;
}
// A completion, if it is there. 1, 0 not yet, -1 with a text.
static int g_cqe(gin *g, int context, int32_t peer, uint64_t n, cqe *out, char *why) {
  nic_qp *q = &g->context[context].qp[peer];
  unsigned char *at = q->q.cq + (n & (q->q.depth - 1)) * GCCL_CQE_BYTES;
  if (!gccl_cqe_is(__atomic_load_n(at + GCCL_CQE_OP_OWN, __ATOMIC_ACQUIRE), n, q->q.depth)) return 0;
  return cqe_read(at, out, why) ? 1 : -1;
}
static int g_done(const nic_qp *q, uint64_t n) {
  return gccl_cqe_is(__atomic_load_n(&q->q.cq[(n & (q->q.depth - 1)) * GCCL_CQE_BYTES + GCCL_CQE_OP_OWN], __ATOMIC_ACQUIRE), n, q->q.depth);
}
// The same write n times, as fast as its completions leave room; for measurements.
static void g_ring_many(gin *g, int context, int32_t peer, gccl_wqe *e, uint32_t from, uint64_t n, uint32_t batch) {
  nic_qp *q = &g->context[context].qp[peer];
  uint64_t posted = from, done = from, end = from + n;
  while (posted != end) {
    for (uint32_t k = 0; k < batch && posted != end; k++, posted++) {
      while (posted - done >= q->q.depth)
        done += g_done(q, done);
      e->w[0] = gccl_wqe_pair((uint32_t)(posted & 0xffff) << 8 | GCCL_WQE_WRITE, q->q.qpn << 8 | 3);
      memcpy(g_block(g, context, peer, (uint32_t)posted), e, sizeof *e);
    }
    gin_nic_ring(g, context, peer, (uint32_t)posted);
  }
  while (done != end)
    done += g_done(q, done);
}
static void g_record(gin *g, int context, int32_t peer, uint32_t next) {
  __atomic_store_n(&g->context[context].qp[peer].q.dbrec[GCCL_DBREC_SEND], gccl_dbrec_value(next), __ATOMIC_RELEASE);
}
static void g_doorbell(gin *g, int context, int32_t peer, uint64_t value) {
  __atomic_store_n(g->context[context].qp[peer].q.doorbell, value, __ATOMIC_RELEASE);
}
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// EntryBytes is the size of a work-queue entry.
const EntryBytes = C.GCCL_WQE_BYTES

// Opcodes of entries.
const (
	Nop      = C.GCCL_WQE_NOP
	Write    = C.GCCL_WQE_WRITE
	Read     = C.GCCL_WQE_READ
	FetchAdd = C.GCCL_WQE_FETCH_ADD
)

// Entry is a work-queue entry in clear. Addresses are offsets in what a key stands for.
type Entry struct {
	Opcode     uint8
	Value      bool // a write of the low Bytes bytes of Add, inline
	Fence      bool
	Silent     bool // without a completion
	Bytes      uint32
	LKey, RKey uint32
	LAddr      uint64
	RAddr      uint64
	Add        uint64
}

// Encode gives the block of an entry for a place in a queue, as the builders of the public header make it.
func (e Entry) Encode(qpn, index uint32) [EntryBytes]byte {
	var w C.gccl_wqe
	i, q := C.uint32_t(index), C.uint32_t(qpn)
	ra, rk, la, lk, n := C.uint64_t(e.RAddr), C.uint32_t(e.RKey), C.uint64_t(e.LAddr), C.uint32_t(e.LKey), C.uint32_t(e.Bytes)
	switch {
	case e.Opcode == Write && e.Value:
		C.gccl_wqe_write_value(&w, i, q, ra, rk, C.uint64_t(e.Add), n)
	case e.Opcode == Write:
		C.gccl_wqe_write(&w, i, q, ra, rk, la, lk, n)
	case e.Opcode == Read:
		C.gccl_wqe_read(&w, i, q, ra, rk, la, lk, n)
	case e.Opcode == FetchAdd:
		C.gccl_wqe_fetch_add(&w, i, q, ra, rk, C.uint64_t(e.Add), la, lk)
	default:
		C.gccl_wqe_nop(&w, i, q)
	}
	b := *(*[EntryBytes]byte)(unsafe.Pointer(&w))
	if e.Fence {
		b[11] |= C.GCCL_WQE_FENCE
	}
	if e.Silent {
		b[11] &^= C.GCCL_WQE_CQ_UPDATE
	}
	return b
}

// DecodeEntry reads a block as a device does, or says which field is wrong.
func DecodeEntry(b [EntryBytes]byte, qpn, index uint32) (Entry, string) {
	var e C.wqe
	var why [C.GCCL_NET_TEXT]C.char
	if C.wqe_read((*C.uchar)(&b[0]), C.uint32_t(qpn), C.uint32_t(index), &e, &why[0]) == 0 {
		return Entry{}, C.GoString(&why[0])
	}
	out := Entry{Opcode: uint8(e.opcode), Value: e.inlined != 0, Fence: e.fence != 0, Silent: e.signaled == 0, Bytes: uint32(e.bytes),
		LKey: uint32(e.lkey), RKey: uint32(e.rkey), LAddr: uint64(e.laddr), RAddr: uint64(e.raddr), Add: uint64(e.add)}
	for i := 0; out.Value && i < 8 && i < int(e.bytes); i++ {
		out.Add |= uint64(e.data[i]) << (8 * i)
	}
	return out, ""
}

// Completion is a completion entry in clear. Syndrome 0 is success.
type Completion struct {
	Opcode, Syndrome  uint8
	QPN, Index, Bytes uint32
}

func completion(c *C.cqe) Completion {
	return Completion{uint8(c.opcode), uint8(c.syndrome), uint32(c.qpn), uint32(c.index), uint32(c.bytes)}
}

// Encode gives the bytes of completion n in a queue of so many entries.
func (c Completion) Encode(n uint64, entries uint32) [EntryBytes]byte {
	var b [EntryBytes]byte
	v := C.cqe{opcode: C.uint8_t(c.Opcode), syndrome: C.uint8_t(c.Syndrome), qpn: C.uint32_t(c.QPN),
		index: C.uint32_t(c.Index), bytes: C.uint32_t(c.Bytes)}
	C.cqe_write((*C.uchar)(&b[0]), C.uint64_t(n), C.uint32_t(entries), &v)
	return b
}

// DecodeCompletion reads a completion entry, or says what is wrong with it.
func DecodeCompletion(b [EntryBytes]byte) (Completion, string) {
	var c C.cqe
	var why [C.GCCL_NET_TEXT]C.char
	if C.cqe_read((*C.uchar)(&b[0]), &c, &why[0]) == 0 {
		return Completion{}, C.GoString(&why[0])
	}
	return completion(&c), ""
}

// WindowKey and the others are the software NIC's keys; WindowKey is both a local and a remote one.
func WindowKey(number uint32) uint32 { return uint32(C.nic_key(C.NIC_KEY_WINDOW, C.uint32_t(number))) }
func (q *Queues) SignalsKey() uint32 {
	return uint32(C.nic_key(C.NIC_KEY_SIGNALS, q.g.p.context[q.id].number))
}
func (q *Queues) SinkKey() uint32 {
	return uint32(C.nic_key(C.NIC_KEY_SINK, q.g.p.context[q.id].number))
}
func (q *Queues) QPN(peer int) uint32 { return uint32(q.qp(peer).q.qpn) }
func (q *Queues) Signal(i int) uint64 {
	return uint64(*(*C.uint64_t)(unsafe.Add(unsafe.Pointer(q.g.p.context[q.id].signals), 8*i)))
}
func (q *Queues) Posted(peer int) uint64 { return q.posted[peer] }

// Queues are the send queues of a context of the software NIC, one for each peer, with a CPU as their producer.
type Queues struct {
	g            *Gin
	id           int
	posted, seen []uint64
}

// OpenQueues makes a context whose queues have a depth that is a power of two. All ranks open the same contexts in the same order.
func (g *Gin) OpenQueues(signals, counters, depth int) (*Queues, error) {
	id := C.int(-1)
	var why [C.GCCL_NET_TEXT]C.char
	g.with(func() {
		id = C.gin_queues_open(g.p, C.uint32_t(signals), C.uint32_t(counters), C.uint32_t(depth), &why[0])
	})
	if id < 0 {
		return nil, xerr.New(xerr.System, "gin", "no context with send queues of %d entries: %s", depth, C.GoString(&why[0]))
	}
	n := int(g.p.nranks)
	return &Queues{g: g, id: int(id), posted: make([]uint64, n), seen: make([]uint64, n)}, nil
}

func (q *Queues) qp(peer int) *C.nic_qp {
	return (*C.nic_qp)(unsafe.Add(unsafe.Pointer(q.g.p.context[q.id].qp), peer*C.sizeof_nic_qp))
}

// StartAt sets the index of all queues, before their first use: for tests of wrap-around.
func (q *Queues) StartAt(index uint32) {
	q.g.with(func() { C.gin_context_start(q.g.p, C.int(q.id), C.uint32_t(index)) })
	for p := range q.posted {
		q.posted[p], q.seen[p] = uint64(index), uint64(index)
	}
}

// Put stores entries without telling of them. Preconditions: room, which is the depth less Posted less what Poll has returned.
func (q *Queues) Put(peer int, entries ...Entry) {
	for _, e := range entries {
		q.PutRaw(peer, e.Encode(q.QPN(peer), uint32(q.posted[peer])))
	}
}

// PutRaw stores any 64 bytes in the place of the next entry.
func (q *Queues) PutRaw(peer int, block [EntryBytes]byte) {
	at := C.g_block(q.g.p, C.int(q.id), C.int32_t(peer), C.uint32_t(q.posted[peer]))
	copy(unsafe.Slice((*byte)(at), EntryBytes), block[:])
	q.posted[peer]++
}

// Ring stores the record and the doorbell.
func (q *Queues) Ring(peer int) {
	C.gin_nic_ring(q.g.p, C.int(q.id), C.int32_t(peer), C.uint32_t(q.posted[peer]))
}

// Record and Doorbell store one of them, with any value.
func (q *Queues) Record(peer int, next uint32) {
	C.g_record(q.g.p, C.int(q.id), C.int32_t(peer), C.uint32_t(next))
}
func (q *Queues) Doorbell(peer int, v uint64) {
	C.g_doorbell(q.g.p, C.int(q.id), C.int32_t(peer), C.uint64_t(v))
}

// Poll returns the next completion of a queue, if it has come.
func (q *Queues) Poll(peer int) (Completion, bool, error) {
	var c C.cqe
	var why [C.GCCL_NET_TEXT]C.char
	switch C.g_cqe(q.g.p, C.int(q.id), C.int32_t(peer), C.uint64_t(q.seen[peer]), &c, &why[0]) {
	case 1:
		q.seen[peer]++
		return completion(&c), true, nil
	case 0:
		return Completion{}, false, nil
	}
	return Completion{}, false, xerr.New(xerr.System, "gin", "%s", C.GoString(&why[0]))
}

// RingMany writes the same value n times, a doorbell for each batch, and waits for the completions; it returns how long that took.
func (q *Queues) RingMany(peer int, e Entry, n, batch int) time.Duration {
	b := e.Encode(q.QPN(peer), 0)
	start := time.Now()
	C.g_ring_many(q.g.p, C.int(q.id), C.int32_t(peer), (*C.gccl_wqe)(unsafe.Pointer(&b)),
		C.uint32_t(q.posted[peer]), C.uint64_t(n), C.uint32_t(batch))
	q.posted[peer] += uint64(n)
	q.seen[peer] += uint64(n)
	return time.Since(start)
}

// Orders is what the software NIC is told to do wrong.
type Orders struct {
	Delay   time.Duration // between a doorbell and its entries
	Drop    int           // so many starts of entries are lost
	Fail    uint8         // the next entry fails with this syndrome
	Shuffle uint64        // seed; 0: queues and writes in their order
}

// Order gives the software NIC of this rank its orders.
func (g *Gin) Order(o Orders) {
	g.with(func() {
		g.p.orders = C.nic_orders{delay_ns: C.uint64_t(o.Delay), drop: C.uint32_t(o.Drop),
			fail: C.uint8_t(o.Fail), shuffle: C.uint64_t(o.Shuffle)}
	})
}
