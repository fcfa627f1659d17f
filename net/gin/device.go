package gin

/*
#include "gin.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// Want is what a device communicator asks for: so many contexts, and of each so many signals, counters and entries of a queue (a
// power of two).
type Want struct {
	NIC                                bool   // send queues, of the card or the software NIC; otherwise descriptors
	Format                             Format // of descriptors
	ContextBytes                       int    // of a gccl_proxy_context as the kernels' header has it
	Contexts, Signals, Counters, Depth int
	// With a mover, and descriptors: the window with the words that ranks tell their signals in, by context, rank and signal, and where in it. 0: none.
	Window uint32
	Told   uint64
}

// Device is the contexts of a device communicator.
type Device struct {
	g        *Gin
	p        *C.gin_device
	contexts int
}

// OpenDevice opens them. All ranks open the same in the same order.
func (g *Gin) OpenDevice(w Want) (*Device, error) {
	v := C.gin_want{nic: cbool(w.NIC), format: C.int(w.Format), context_bytes: C.uint32_t(w.ContextBytes), n: C.uint32_t(w.Contexts),
		nsignals: C.uint32_t(w.Signals), ncounters: C.uint32_t(w.Counters), depth: C.uint32_t(w.Depth),
		window: C.uint32_t(w.Window), told: C.uint64_t(w.Told)}
	var p *C.gin_device
	var why [C.GCCL_NET_TEXT]C.char
	g.with(func() { p = C.gin_device_open(g.p, &v, &why[0]) })
	if p == nil {
		return nil, xerr.New(xerr.System, "gin", "%d contexts with queues of %d: %s", w.Contexts, w.Depth, C.GoString(&why[0])).
			WithHint("ask for fewer contexts (ginContextCount), or destroy device communicators that are not used any more")
	}
	return &Device{g, p, w.Contexts}, nil
}

// Addresses is what the other ranks need to know of this rank's queues: nothing without a card. Address returns one rank's part of it.
func (d *Device) Addresses() []byte {
	var all []byte
	if d.g.p.card == nil || d.g.p.context[d.p.first[0]].by == nil {
		return nil
	}
	for r := range int(d.g.p.nranks) {
		for x := range d.contexts {
			var b [C.GIN_ADDRESS]C.uchar
			C.gin_device_address(d.g.p, d.p, C.int(x), C.int32_t(r), &b[0])
			all = append(all, C.GoBytes(unsafe.Pointer(&b[0]), C.GIN_ADDRESS)...)
		}
	}
	return all
}

// Join connects the queues to a rank, this one included, from what it says of its own.
func (d *Device) Join(rank int, all []byte) error {
	if len(all) != int(d.g.p.nranks)*d.contexts*C.GIN_ADDRESS {
		return xerr.New(xerr.Remote, "gin", "rank %d has sent %d bytes that are no addresses of queues", rank, len(all)).WithRank(rank)
	}
	for x := range d.contexts {
		at := (d.g.rank*d.contexts + x) * C.GIN_ADDRESS
		var why [C.GCCL_NET_TEXT]C.char
		var rc C.int
		d.g.with(func() {
			rc = C.gin_device_join(d.g.p, d.p, C.int(x), C.int32_t(rank), (*C.uchar)(unsafe.Pointer(&all[at])), &why[0])
		})
		if rc < 0 {
			return xerr.New(xerr.System, "gin", "cannot connect a queue to rank %d: %s", rank, C.GoString(&why[0])).WithRank(rank)
		}
	}
	return nil
}

// Contexts is what kernels get: an array of gccl_proxy_context or gccl_gdaki_context.
func (d *Device) Contexts() unsafe.Pointer { return d.p.contexts }

// closeTime bounds the wait for what kernels have asked for and not waited for.
const closeTime = 5 * time.Second

// Close does what kernels have asked for, unless the object has failed, and ends the contexts. Preconditions: no kernel uses them, here or at a peer. aborted: kernels may
// still run and peers may be gone; nothing is waited for, and the memory that kernels know stays for ever.
func (d *Device) Close(aborted bool) {
	idle := func() (ok bool) {
		d.g.with(func() { ok = C.gin_device_idle(d.g.p, d.p) != 0 })
		return ok
	}
	for end := time.Now().Add(closeTime); !aborted && d.g.Err() == nil && !idle() && time.Now().Before(end); {
		if !d.g.Help() {
			time.Sleep(50 * time.Microsecond)
		}
	}
	d.g.with(func() { C.gin_device_close(d.g.p, d.p, cbool(aborted)) })
}

// Keys is the gccl_gdaki_mem of a window, for kernels with queues of their own; nil if there is no such window.
func (g *Gin) Keys(number uint32) unsafe.Pointer {
	w := C.gin_window_of(g.p, C.uint32_t(number))
	if w == nil {
		return nil
	}
	return unsafe.Pointer(&w.keys)
}
