package transport

/*
#include "transport.h"

static uint64_t tl_bytes(gccl_net_link *l) { return atomic_load_explicit(&l->bytes, memory_order_relaxed); }
static uint64_t tl_busy(gccl_net_link *l) { return atomic_load_explicit(&l->busy_ns, memory_order_relaxed); }
*/
import "C"

import (
	"time"
	"unsafe"
)

// Link is what a device has carried for an endpoint (gccl_net_link).
type Link struct {
	Device string
	Port   int
	Bytes  uint64
	Busy   time.Duration
}

// Links tells of the devices of an endpoint; nothing where the transport does not count them. Any goroutine may call it.
func Links(ep Handle) []Link {
	e := (*C.gccl_net_ep)(ep)
	var out []Link
	links := unsafe.Slice(e.link, int(e.nlinks))
	for i := range links {
		l := &links[i]
		out = append(out, Link{C.GoString(&l.name[0]), int(l.port), uint64(C.tl_bytes(l)), time.Duration(C.tl_busy(l))})
	}
	return out
}
