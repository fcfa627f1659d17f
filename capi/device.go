package main

// #include "bridge.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

// maxDeviceHello is room for what a device says of itself at creation.
const maxDeviceHello = 1024

// cuda is the front's CUDA device for the core; nil if the front has none.
func cuda(front *C.gccl_front_api) *comm.Device {
	d := front.cuda
	if d == nil {
		return nil
	}
	return &comm.Device{
		Section: func(nranks int) uint64 { return uint64(C.gccl_bridge_device_section(d, C.uint32_t(nranks))) },
		Hello: func(c control.Comm) []byte {
			b := make([]byte, maxDeviceHello)
			n := C.gccl_bridge_device_hello(d, (*C.struct_ncclComm)(c.Pointer()), unsafe.Pointer(&b[0]), C.int32_t(len(b)))
			return b[:n]
		},
		Meet: func(c control.Comm, hellos [][]byte) error {
			var all []byte
			for r, h := range hellos {
				if len(h) == 0 || len(h) != len(hellos[0]) {
					return xerr.New(xerr.Remote, "communicator init", "rank %d says nothing of its GPU", r).WithRank(r)
				}
				all = append(all, h...)
			}
			var text [C.GCCL_TEXT]C.char
			if rc := C.gccl_bridge_device_meet(d, (*C.struct_ncclComm)(c.Pointer()), unsafe.Pointer(&all[0]), &text[0]); rc != 0 {
				return xerr.New(xerr.Code(rc), "communicator init", "%s", C.GoString(&text[0]))
			}
			return nil
		},
		Leave: func(c control.Comm) { C.gccl_bridge_device_leave(d, (*C.struct_ncclComm)(c.Pointer())) },
	}
}
