package main

// #include "core.h"
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/xerr"
)

//export gcclgo_mem_alloc
func gcclgo_mem_alloc(out *unsafe.Pointer, size C.uint64_t, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclMemAlloc"
		if out == nil {
			return argument(op, "ptr is NULL")
		}
		a, err := arena.Process()
		if err != nil {
			return &named{op, err}
		}
		al, err := a.Alloc(max(uint64(size), 1))
		if err != nil {
			return &named{op, err}
		}
		*out = unsafe.Pointer(&a.Bytes(al)[0])
		return nil
	})
}

//export gcclgo_mem_free
func gcclgo_mem_free(p unsafe.Pointer, text *C.char) C.int32_t {
	return guard(text, func() error {
		const op = "ncclMemFree"
		if p == nil {
			return nil
		}
		a := arena.Existing()
		if a != nil {
			if al, ok := a.Lookup(uintptr(p)); ok && uintptr(p) == a.Base()+uintptr(al.Offset) {
				if err := a.Free(al); err != nil {
					return &named{op, err}
				}
				return nil
			}
		}
		return xerr.New(xerr.InvalidArgument, op, "%p is not the start of memory from ncclMemAlloc, or has been freed", p).
			WithHint("pass the pointer that ncclMemAlloc returned, once")
	})
}
