// Package conformance owns the suite that every transport passes, wrapped or not: exact bytes, order, completions,
// back-pressure, limits and endings.
//
// It must not know any implementation.
package conformance

// #include <stdlib.h>
import "C"

import "unsafe"

// Alloc returns zeroed C memory, page-aligned, and its address.
func Alloc(n int) ([]byte, uintptr) {
	const page = 4096
	size := (n + 2*page - 1) / page * page
	p := C.aligned_alloc(page, C.size_t(size))
	b := unsafe.Slice((*byte)(p), size)
	clear(b)
	return b[:n:n], uintptr(p)
}

// Free frees it.
func Free(b []byte) { C.free(unsafe.Pointer(unsafe.SliceData(b))) }
