package gin

/*
#include "gin.h"

static uint64_t g_word(uint64_t *at, uint32_t i) { return __atomic_load_n(&at[i], __ATOMIC_ACQUIRE); }

// Posts the same descriptor n times; for measurements.
static void g_post_many(gin *g, int context, int32_t peer, const gfd *d, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) gin_context_post(g, context, peer, d, NULL);
}
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// Format is one of NCCL's layouts of a descriptor.
type Format int

// The formats: of callers of 2.28.7 to 2.29.3, of 2.29.5 to 2.29.7, and of 2.30.
const (
	Format64     Format = C.GFD_64
	Format64Wide Format = C.GFD_64_WIDE
	Format128    Format = C.GFD_128
)

// Parts of a descriptor's operation.
const (
	Put       = C.GCCL_GFD_PUT
	Inline    = C.GCCL_GFD_INLINE
	Counter   = C.GCCL_GFD_COUNTER
	SignalInc = C.GCCL_GFD_SIGNAL_INC
	SignalAdd = C.GCCL_GFD_SIGNAL_ADD
	VASignal  = C.GCCL_GFD_VA_SIGNAL
	Get       = C.GCCL_GFD_GET
	Flush     = C.GCCL_GFD_FLUSH
)

// Descriptor is one in clear.
type Descriptor struct {
	Op                        uint32
	Weak                      bool
	Bytes                     uint64
	Value                     uint64 // with Inline
	SrcWindow, DstWindow      uint32
	SrcOff, DstOff            uint64
	SignalWindow              uint32 // with VASignal
	SignalOff                 uint64
	Counter, Signal           uint32
	SignalValue               uint64
	unknownWindow, unknownDst uint64 // the rest of 63 bits, in descriptors that were decoded
}

func (d *Descriptor) c() C.gfd {
	strong := C.uint8_t(1)
	if d.Weak {
		strong = 0
	}
	return C.gfd{op: C.uint32_t(d.Op), strong: strong, bytes: C.uint64_t(d.Bytes), value: C.uint64_t(d.Value),
		src_window: C.uint64_t(d.SrcWindow), src_off: C.uint64_t(d.SrcOff), dst_window: C.uint64_t(d.DstWindow), dst_off: C.uint64_t(d.DstOff),
		signal_window: C.uint64_t(d.SignalWindow), signal_off: C.uint64_t(d.SignalOff),
		counter: C.uint32_t(d.Counter), signal: C.uint32_t(d.Signal), signal_value: C.uint64_t(d.SignalValue)}
}

// Encode gives the words that a producer stores.
func (d *Descriptor) Encode(f Format) ([]uint64, bool) {
	w := make([]uint64, C.gfd_words(C.int(f)))
	v := d.c()
	ok := C.gfd_encode(C.int(f), &v, (*C.uint64_t)(unsafe.Pointer(&w[0]))) != 0
	return w, ok
}

// Decode reads the words of a descriptor, or says what is wrong with them.
func Decode(f Format, words []uint64) (Descriptor, string) {
	var v C.gfd
	if len(words) != int(C.gfd_words(C.int(f))) {
		return Descriptor{}, "it has not the number of words of its format"
	}
	if why := C.gfd_decode(C.int(f), (*C.uint64_t)(unsafe.Pointer(&words[0])), &v); why != nil {
		return Descriptor{}, C.GoString(why)
	}
	return Descriptor{Op: uint32(v.op), Weak: v.strong == 0, Bytes: uint64(v.bytes), Value: uint64(v.value),
		SrcWindow: uint32(v.src_window), SrcOff: uint64(v.src_off), DstWindow: uint32(v.dst_window), DstOff: uint64(v.dst_off),
		SignalWindow: uint32(v.signal_window), SignalOff: uint64(v.signal_off), Counter: uint32(v.counter), Signal: uint32(v.signal),
		SignalValue: uint64(v.signal_value), unknownWindow: uint64(v.src_window|v.signal_window) >> 32, unknownDst: uint64(v.dst_window) >> 32}, ""
}

// Context is a set of signals and counters with a ring of descriptors for each peer. All ranks open the same contexts in the same order.
type Context struct {
	g  *Gin
	id int
}

// OpenContext makes a context. depth is a power of two.
func (g *Gin) OpenContext(f Format, signals, counters, depth int) (*Context, error) {
	id := C.int(-1)
	g.with(func() {
		id = C.gin_context_open(g.p, C.int(f), C.uint32_t(signals), C.uint32_t(counters), C.uint32_t(depth))
	})
	if id < 0 {
		return nil, xerr.New(xerr.System, "gin", "no room for a context with rings of %d descriptors (a power of two)", depth)
	}
	return &Context{g, int(id)}, nil
}

// Post queues a descriptor for a peer and returns a mark for Done; ok is false if the format cannot say it. It waits for room.
func (x *Context) Post(peer int, d Descriptor) (mark uint32, ok bool) {
	v := d.c()
	n := C.gin_context_post(x.g.p, C.int(x.id), C.int32_t(peer), &v, nil)
	return uint32(n), n != 0
}

// PostMany queues the same descriptor n times and returns how long that took.
func (x *Context) PostMany(peer int, d Descriptor, n int) time.Duration {
	v := d.c()
	start := time.Now()
	C.g_post_many(x.g.p, C.int(x.id), C.int32_t(peer), &v, C.uint64_t(n))
	return time.Since(start)
}

// Done says whether everything up to a mark has completed here: sources may be used again, destinations of gets are filled.
func (x *Context) Done(peer int, mark uint32) bool {
	return C.gin_context_reached(x.g.p, C.int(x.id), C.int32_t(peer), C.uint32_t(mark)) != 0
}

func (x *Context) words() *C.gin_context { return &x.g.p.context[x.id] }

// Signal and Counter read a value.
func (x *Context) Signal(i int) uint64  { return uint64(C.g_word(x.words().signals, C.uint32_t(i))) }
func (x *Context) Counter(i int) uint64 { return uint64(C.g_word(x.words().counters, C.uint32_t(i))) }

// Reached says whether a value that only grows has come to a goal; both may have wrapped.
func Reached(value, goal uint64) bool { return int64(value-goal) >= 0 }

// StartAt sets the index of all rings, before their first use: for tests of wrap-around.
func (x *Context) StartAt(index uint32) {
	x.g.with(func() { C.gin_context_start(x.g.p, C.int(x.id), C.uint32_t(index)) })
}
