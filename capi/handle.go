package main

// #include "core.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

// handles finds the Go side of a struct ncclComm: its field core is index + 1 in the lower half and the slot's
// generation in the upper one, so that a stale structure is an error and not somebody else's communicator.
type handleTable struct {
	mu    sync.Mutex
	slots []slot
	free  []int
}

type slot struct {
	c          *comm.Comm
	generation uint32
}

var handles handleTable

func (t *handleTable) put(c *comm.Comm) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := len(t.slots)
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		t.slots = append(t.slots, slot{})
	}
	s := &t.slots[i]
	s.generation++
	s.c = c
	return uint64(s.generation)<<32 | uint64(i+1)
}

func (t *handleTable) get(h uint64) *comm.Comm {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := int(uint32(h)) - 1
	if i < 0 || i >= len(t.slots) || t.slots[i].generation != uint32(h>>32) {
		return nil
	}
	return t.slots[i].c
}

func (t *handleTable) drop(h uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := int(uint32(h)) - 1
	if i < 0 || i >= len(t.slots) || t.slots[i].generation != uint32(h>>32) || t.slots[i].c == nil {
		return
	}
	t.slots[i].c = nil
	t.free = append(t.free, i)
}

// find gives the communicator of a structure.
func find(op string, p *C.struct_ncclComm) (*comm.Comm, error) {
	if p == nil {
		return nil, argument(op, "comm is NULL")
	}
	c := handles.get(uint64(p.core))
	if c == nil || c.Control() != control.At(unsafe.Pointer(p)) {
		return nil, xerr.New(xerr.InvalidArgument, op, "comm %p is not a live communicator", unsafe.Pointer(p)).
			WithHint("it has been destroyed, or was never created")
	}
	return c, nil
}
