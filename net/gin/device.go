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
	NIC                                bool   // send queues of the software NIC; otherwise descriptors
	Format                             Format // of descriptors
	ContextBytes                       int    // of a gccl_proxy_context as the kernels' header has it
	Contexts, Signals, Counters, Depth int
}

// Device is the contexts of a device communicator.
type Device struct {
	g *Gin
	p *C.gin_device
}

// OpenDevice opens them. All ranks open the same in the same order.
func (g *Gin) OpenDevice(w Want) (*Device, error) {
	v := C.gin_want{nic: cbool(w.NIC), format: C.int(w.Format), context_bytes: C.uint32_t(w.ContextBytes), n: C.uint32_t(w.Contexts),
		nsignals: C.uint32_t(w.Signals), ncounters: C.uint32_t(w.Counters), depth: C.uint32_t(w.Depth)}
	var p *C.gin_device
	g.with(func() { p = C.gin_device_open(g.p, &v) })
	if p == nil {
		return nil, xerr.New(xerr.System, "gin", "no room for %d contexts with queues of %d (a communicator has %d in all)", w.Contexts, w.Depth, C.GIN_CONTEXTS).
			WithHint("ask for fewer contexts (ginContextCount), or destroy device communicators that are not used any more")
	}
	return &Device{g, p}, nil
}

// Contexts is what kernels get: an array of gccl_proxy_context or gccl_gdaki_context.
func (d *Device) Contexts() unsafe.Pointer { return d.p.contexts }

// closeTime bounds the wait for what kernels have asked for and not waited for.
const closeTime = 5 * time.Second

// Close does what kernels have asked for, and ends the contexts. Preconditions: no kernel uses them, here or at a peer. aborted: kernels may
// still run and peers may be gone; nothing is waited for, and the memory that kernels know stays for ever.
func (d *Device) Close(aborted bool) {
	idle := func() (ok bool) {
		d.g.with(func() { ok = C.gin_device_idle(d.g.p, d.p) != 0 })
		return ok
	}
	for end := time.Now().Add(closeTime); !aborted && !idle() && time.Now().Before(end); {
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
