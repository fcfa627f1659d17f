// Package world runs the host executor for all ranks of a communicator inside one Go process: the bridge that lets tests
// put plans, the executor and the simulator side by side.
package world

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files -pthread
#include <stdlib.h>
#include "world.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	_ "github.com/gccl/gccl/device/host/exec" // the executor itself
)

// World is a communicator of n ranks in this process.
type World struct {
	w *C.gccl_world
	n int
	p []unsafe.Pointer // lowered plans to free
}

// Kinds of an Op; the values are those of exec.h.
const (
	Coll = C.GCCL_DO_COLL
	Send = C.GCCL_DO_SEND
	Recv = C.GCCL_DO_RECV
)

// Op is one operation of one rank.
type Op struct {
	Kind, Coll, DType, Red, Class, Root int
	Scale                               uint64 // accumulator bits of a user operator's factor
	Send, Recv                          *Buf
	SendOff, RecvOff                    int // bytes into the buffers, for in-place variants
	Count                               int
	Plan                                []byte // lowered block, for Coll
	Ahead                               int    // not 0: the send buffer is filled while it runs, so many elements of a part beyond what is made
	SendBytes                           int    // with Ahead
}

// Buf is memory of the executor.
type Buf struct {
	p unsafe.Pointer
	n int
}

// Bytes gives access to the memory. Valid until World.Reset.
func (b *Buf) Bytes() []byte { return unsafe.Slice((*byte)(b.p), b.n) }

// New makes a world. simd names a kernel set, "" is the best.
func New(nranks, eagerBytes, stageBytes, arenaBytes int, simd string) (*World, error) {
	var name *C.char
	if simd != "" {
		name = C.CString(simd)
		defer C.free(unsafe.Pointer(name))
	}
	w := C.gccl_world_new(C.int(nranks), C.uint64_t(eagerBytes), C.uint64_t(stageBytes), C.uint64_t(arenaBytes), name)
	if w == nil {
		return nil, fmt.Errorf("world of %d ranks, kernels %q: out of memory or no such kernels", nranks, simd)
	}
	return &World{w: w, n: nranks}, nil
}

// Close frees everything.
func (w *World) Close() {
	C.gccl_world_free(w.w)
	for _, p := range w.p {
		C.free(p)
	}
}

// Comm is the struct ncclComm of a rank.
func (w *World) Comm(rank int) unsafe.Pointer {
	return unsafe.Pointer(C.gccl_world_comm(w.w, C.int(rank)))
}

// Reset frees the buffers.
func (w *World) Reset() { C.gccl_world_reset(w.w) }

// Alloc makes a buffer; peers can address it only if reachable.
func (w *World) Alloc(n int, reachable bool) *Buf {
	r := C.int(0)
	if reachable {
		r = 1
	}
	p := C.gccl_world_alloc(w.w, C.uint64_t(n), r)
	if p == nil {
		panic(fmt.Sprintf("world: no room for %d bytes", n))
	}
	return &Buf{p, n}
}

func (b *Buf) at(off int) unsafe.Pointer {
	if b == nil {
		return nil
	}
	return unsafe.Add(b.p, off)
}

// Add queues an operation of a rank for the next Run.
func (w *World) Add(rank int, o Op) {
	var c C.gccl_op
	c.kind, c.coll, c.dtype = C.uint8_t(o.Kind), C.uint8_t(o.Coll), C.uint8_t(o.DType)
	c.red, c.cls, c.root = C.uint8_t(o.Red), C.uint8_t(o.Class), C.int32_t(o.Root)
	c.send, c.recv = o.Send.at(o.SendOff), o.Recv.at(o.RecvOff)
	c.count = C.uint64_t(o.Count)
	*(*uint64)(unsafe.Pointer(&c.scale)) = o.Scale
	if o.Plan != nil {
		p := C.CBytes(o.Plan)
		w.p = append(w.p, p)
		c.plan = (*C.gccl_lowered)(p)
	}
	if o.Ahead > 0 {
		if C.gccl_world_add_flow(w.w, C.int(rank), &c, C.uint64_t(o.SendBytes), C.uint64_t(o.Ahead)) != 0 {
			panic("world: too many operations in one run")
		}
		return
	}
	if C.gccl_world_add(w.w, C.int(rank), &c) != 0 {
		panic("world: too many operations in one run")
	}
}

// Run executes what was added: from one thread that drives all ranks, or with a thread for each.
func (w *World) Run(threads bool) error {
	t := C.int(0)
	if threads {
		t = 1
	}
	rc := C.gccl_world_run(w.w, t)
	if C.gccl_world_stuck(w.w) != 0 {
		return errors.New("a rank waited for parts of a buffer that come when parts before them have been made")
	}
	if rc == 0 {
		return nil
	}
	for r := range w.n {
		if s := C.GoString(C.gccl_world_cause(w.w, C.int(r))); s != "" {
			return fmt.Errorf("code %d: %s", int(rc), s)
		}
	}
	return fmt.Errorf("code %d", int(rc))
}
