package ib

// #include <stdlib.h>
// #include "mlx5.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// Ring says who rings the doorbells of a card's queues.
type Ring int

// Kernels where they can, else the CPU; or one of the two.
const (
	RingAuto   Ring = C.GCCL_CARD_RING_AUTO
	RingKernel Ring = C.GCCL_CARD_RING_KERNEL
	RingCPU    Ring = C.GCCL_CARD_RING_CPU
)

// Card is a port whose send queues kernels can write. One goroutine at a time.
type Card struct {
	p    *C.gccl_card
	Name string // of the port
}

// OpenCard opens the first port that may be used and proves that its queues work; the error names the step that failed.
func (t *Transport) OpenCard(ring Ring) (*Card, error) {
	const op = "send queues for kernels"
	ps, err := t.cfg.ports()
	if err != nil {
		return nil, err
	}
	p := ps[0]
	c := C.gccl_ib_config{traffic_class: C.int32_t(t.cfg.TrafficClass), service_level: C.int32_t(t.cfg.ServiceLevel),
		timeout: C.int32_t(t.cfg.Timeout), retry_count: C.int32_t(t.cfg.RetryCount)}
	var why text
	name := C.CString(p.hca)
	defer C.free(unsafe.Pointer(name))
	k := C.gccl_ib_card_open(name, C.int(p.number), C.int(p.gid), &c, nil, C.int(ring), &why[0])
	if k == nil {
		return nil, xerr.New(xerr.System, op, "%v", &why)
	}
	return &Card{k, p.Name}, nil
}

// C is the gccl_card.
func (c *Card) C() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Relayed says whether the CPU rings the doorbells, and why, if it was not told to.
func (c *Card) Relayed() (why string, yes bool) {
	w := C.gccl_ib_card_relayed(c.p)
	if w == nil {
		return "", false
	}
	return C.GoString(w), true
}

// Close closes it. Preconditions: no queue and no registration is left.
func (c *Card) Close() { C.gccl_ib_card_close(c.p) }
