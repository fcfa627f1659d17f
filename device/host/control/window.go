package control

// #include "control.h"
import "C"

import "unsafe"

// Window is a gccl_window. The zero value is none.
type Window struct{ p *C.gccl_window }

// WindowAt wraps a window that C handed over. It is not looked at: use Comm.HasWindow first.
func WindowAt(p unsafe.Pointer) Window { return Window{(*C.gccl_window)(p)} }

// Pointer is the structure that C sees.
func (w Window) Pointer() unsafe.Pointer { return unsafe.Pointer(w.p) }

// Handle is what the program gets for it.
func (w Window) Handle() unsafe.Pointer { return w.p.handle }

// Nil says whether there is no window.
func (w Window) Nil() bool { return w.p == nil }

// NewWindow allocates a window of this rank; it is not yet visible. number is the same at all ranks. resource: it belongs to a device
// communicator, and the program cannot name it.
func (c Comm) NewWindow(number uint32, user uintptr, size, arenaOffset uint64, flags int, resource bool) Window {
	w := Window{C.gccl_ctl_window_new(c.p, C.uint32_t(number), C.uintptr_t(user), C.uint64_t(size), C.uint64_t(arenaOffset), C.int32_t(flags))}
	if resource {
		C.gccl_ctl_window_resource(w.p)
	}
	return w
}

// SetPeer stores where the window is at a rank.
func (w Window) SetPeer(rank int, offset, size uint64) {
	C.gccl_ctl_window_peer(w.p, C.int32_t(rank), C.uint64_t(offset), C.uint64_t(size))
}

// SetFlat stores the window's place in the team's flat range.
func (w Window) SetFlat(flat uintptr, stride uint64) {
	C.gccl_ctl_window_flat(w.p, C.uintptr_t(flat), C.uint64_t(stride))
}

// SetKeys tells kernels how the network of kernels knows the window: by its number, and by keys (gccl_gdaki_mem).
func (w Window) SetKeys(keys unsafe.Pointer) { C.gccl_ctl_window_keys(w.p, keys) }

// Publish puts the window into the communicator; false if all slots are taken.
func (c Comm) Publish(w Window) bool { return C.gccl_ctl_window_publish(c.p, w.p) != 0 }

// Drop takes the window out; false if it is not one of this communicator.
func (c Comm) Drop(w Window) bool { return C.gccl_ctl_window_drop(c.p, w.p) != 0 }

// WindowIn returns the window in a slot.
func (c Comm) WindowIn(slot int) Window { return Window{C.gccl_ctl_window_at(c.p, C.int32_t(slot))} }

// NumberOf is the number of a window, which is the same at all ranks.
func (c Comm) NumberOf(w Window) uint32 { return uint32(w.p.number) }

// Free frees the window. Preconditions: it is not in a communicator.
func (w Window) Free() { C.gccl_ctl_window_free(w.p) }

// Flat returns the window's place in the team's flat range, and the distance between ranks; 0: there is none.
func (w Window) Flat() (flat uintptr, stride uint64) {
	return uintptr(unsafe.Pointer(w.p.flat)), uint64(w.p.stride)
}
