package main

// #include "bridge.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/device/host/clique"
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
	clique.SetExporter(func(item uint64) (int, uint64) {
		var size C.uint64_t
		fd := C.gccl_bridge_export_memory(d, C.uint64_t(item), &size)
		return int(fd), uint64(size)
	})
	return &comm.Device{
		Section: func(nranks int) uint64 { return uint64(C.gccl_bridge_device_section(d, C.uint32_t(nranks))) },
		Hello: func(c control.Comm) []byte {
			b := make([]byte, maxDeviceHello)
			n := C.gccl_bridge_device_hello(d, (*C.struct_ncclComm)(c.Pointer()), unsafe.Pointer(&b[0]), C.int32_t(len(b)))
			return b[:n]
		},
		UUID: func(hello []byte) (uuid [16]byte, ok bool) {
			// gccl_cuda_hello of device/cuda/cuda.h: two words, then the UUID.
			if len(hello) < 24 {
				return uuid, false
			}
			return [16]byte(hello[8:24]), true
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
		Link: func(c control.Comm) (linked bool, why string, err error) {
			var text [C.GCCL_TEXT]C.char
			r := C.gccl_bridge_device_link(d, (*C.struct_ncclComm)(c.Pointer()), &text[0])
			if r < 0 {
				return false, "", xerr.New(xerr.Code(-r), "communicator init", "%s", C.GoString(&text[0]))
			}
			return r == 1, C.GoString(&text[0]), nil
		},
		Unlink: func(c control.Comm) { C.gccl_bridge_device_unlink(d, (*C.struct_ncclComm)(c.Pointer())) },
		OfferWindow: func(c control.Comm, buff uintptr, size uint64) ([]byte, error) {
			b := make([]byte, maxDeviceHello)
			var rc C.int32_t
			var text [C.GCCL_TEXT]C.char
			n := C.gccl_bridge_window_offer(d, (*C.struct_ncclComm)(c.Pointer()), C.uintptr_t(buff), C.uint64_t(size), unsafe.Pointer(&b[0]), C.int32_t(len(b)), &rc, &text[0])
			if n < 0 {
				return nil, xerr.New(xerr.Code(rc), "window", "%s", C.GoString(&text[0]))
			}
			return b[:n], nil
		},
		MapWindow: func(c control.Comm, w control.Window, parts [][]byte) error {
			var all []byte
			for _, p := range parts {
				all = append(all, p...)
			}
			var text [C.GCCL_TEXT]C.char
			if rc := C.gccl_bridge_window_map(d, (*C.struct_ncclComm)(c.Pointer()), (*C.gccl_window)(w.Pointer()), unsafe.Pointer(&all[0]), &text[0]); rc != 0 {
				return xerr.New(xerr.Code(rc), "window", "%s", C.GoString(&text[0]))
			}
			return nil
		},
		ShowWindow: func(c control.Comm, w control.Window) error {
			var text [C.GCCL_TEXT]C.char
			if rc := C.gccl_bridge_window_show(d, (*C.struct_ncclComm)(c.Pointer()), (*C.gccl_window)(w.Pointer()), &text[0]); rc != 0 {
				return xerr.New(xerr.Code(rc), "window", "%s", C.GoString(&text[0]))
			}
			return nil
		},
		Look: func(c control.Comm) { C.gccl_bridge_look(d, (*C.struct_ncclComm)(c.Pointer())) },
		HideWindow: func(c control.Comm, w control.Window) {
			C.gccl_bridge_window_hide(d, (*C.struct_ncclComm)(c.Pointer()), (*C.gccl_window)(w.Pointer()))
		},
		ReleaseWindow: func(c control.Comm, w control.Window, part []byte) {
			C.gccl_bridge_window_release(d, (*C.struct_ncclComm)(c.Pointer()), (*C.gccl_window)(w.Pointer()), unsafe.Pointer(&part[0]))
		},
		NewMemory: func(c control.Comm, bytes uint64) (uintptr, error) {
			var p unsafe.Pointer
			var text [C.GCCL_TEXT]C.char
			if rc := C.gccl_bridge_memory_new(d, (*C.struct_ncclComm)(c.Pointer()), C.uint64_t(bytes), &p, &text[0]); rc != 0 {
				return 0, xerr.New(xerr.Code(rc), "device memory", "%s", C.GoString(&text[0]))
			}
			return uintptr(p), nil
		},
		Mover:      uintptr(unsafe.Pointer(d.mover)),
		FreeMemory: func(p uintptr) { C.gccl_bridge_memory_free(d, C.uintptr_t(p)) },
		Progress: func(c control.Comm) (finished, called uint64) {
			var n C.uint64_t
			finished = uint64(C.gccl_bridge_device_progress(d, (*C.struct_ncclComm)(c.Pointer()), &n))
			return finished, uint64(n)
		},
		Leave: func(c control.Comm) bool {
			return C.gccl_bridge_device_leave(d, (*C.struct_ncclComm)(c.Pointer())) == 0
		},
	}
}

//export gcclgo_fetch_memory
func gcclgo_fetch_memory(p *C.struct_ncclComm, rank C.int32_t, id C.uint64_t, fd *C.int32_t, size *C.uint64_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		c, err := find("memory of a peer", p)
		if err != nil {
			return err
		}
		n, bytes, err := c.FetchMemory(int(rank), uint64(id))
		*fd, *size = C.int32_t(n), C.uint64_t(bytes)
		return err
	})
}
