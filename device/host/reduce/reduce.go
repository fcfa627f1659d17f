// Package reduce owns the reduction and copy kernels of the host device: n sources folded into m destinations, for
// every element type and built-in operator, with the same bits from every instruction set.
//
// The kernels are C (reduce.h is the contract) and are also compiled straight into the front library, so they know
// nothing of Go. This package is a thin way into them for tests, benchmarks and the choice of a set of kernels. It
// must not know communicators, plans or transports.
package reduce

/*
#cgo CFLAGS: -O3 -std=gnu11 -fvisibility=hidden
#include <stdlib.h>
#include "reduce.h"

static int repeat(const gccl_reduce_isa *isa, long times, int dtype, int op, gccl_reduce_dst *dst, int ndst,
                  const gccl_reduce_src *src, int nsrc, size_t n, uint64_t div)
{
	int rc = 0;
	for (long i = 0; i < times && !rc; i++)
		rc = gccl_reduce(isa, dtype, op, dst, ndst, src, nsrc, n, div);
	return rc;
}

static void repeat_copy(const gccl_reduce_isa *isa, long times, void *dst, const void *src, size_t bytes, int stream)
{
	for (long i = 0; i < times; i++)
		gccl_copy(isa, dst, src, bytes, stream);
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"
)

// Dtype is an element type; values are those of ncclDataType_t.
type Dtype int

// The element types.
const (
	Int8 Dtype = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	Bfloat16
	Float8e4m3
	Float8e5m2
)

// Op is an operator; values are those of ncclRedOp_t.
type Op int

// The operators.
const (
	Sum Op = iota
	Prod
	Max
	Min
)

// Size is the bytes of an element, 0 for an unknown type.
func (d Dtype) Size() int { return int(C.gccl_dtype_size(C.int(d))) }

// AccSize is the bytes of a partial value, 0 for an unknown type.
func (d Dtype) AccSize() int { return int(C.gccl_acc_size(C.int(d))) }

// Source is one source of a fold. Partial: elements of the accumulator's type. Scaled: multiplied by Scale, the bits
// of a number of the accumulator's type (a 64-bit integer for every integer type).
type Source struct {
	Data            []byte
	Partial, Scaled bool
	Scale           uint64
}

// Dest is one destination of a fold. Stream asks for non-temporal stores.
type Dest struct {
	Data            []byte
	Partial, Stream bool
}

// Fold runs gccl_reduce with the named set of kernels on n elements. The slices must hold n elements.
func Fold(isa string, t Dtype, op Op, dst []Dest, src []Source, n int, div uint64) error {
	return Repeat(isa, 1, t, op, dst, src, n, div)
}

// Repeat runs the same Fold several times without leaving C, to measure it.
func Repeat(isa string, times int, t Dtype, op Op, dst []Dest, src []Source, n int, div uint64) error {
	k, err := named("fold", isa)
	if err != nil {
		return err
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pin := func(what string, i int, data []byte, partial bool) (unsafe.Pointer, error) {
		size := t.Size()
		if partial {
			size = t.AccSize()
		}
		if n < 0 || len(data) < n*size {
			return nil, fmt.Errorf("reduce: fold: %s %d holds %d bytes, %d elements need %d; pass a larger buffer",
				what, i, len(data), n, n*size)
		}
		if len(data) == 0 {
			return nil, nil
		}
		pins.Pin(&data[0])
		return unsafe.Pointer(&data[0]), nil
	}
	// One element more than needed, so that there is a first one.
	cdst := make([]C.gccl_reduce_dst, len(dst)+1)
	for i, d := range dst {
		if cdst[i].ptr, err = pin("destination", i, d.Data, d.Partial); err != nil {
			return err
		}
		cdst[i].partial, cdst[i].stream = flag(d.Partial), flag(d.Stream)
	}
	csrc := make([]C.gccl_reduce_src, len(src)+1)
	for i, s := range src {
		if csrc[i].ptr, err = pin("source", i, s.Data, s.Partial); err != nil {
			return err
		}
		csrc[i].partial, csrc[i].scaled = flag(s.Partial), flag(s.Scaled)
		binary.NativeEndian.PutUint64(csrc[i].scale[:], s.Scale)
	}
	if C.repeat(k, C.long(times), C.int(t), C.int(op), &cdst[0], C.int(len(dst)), &csrc[0], C.int(len(src)),
		C.size_t(n), C.uint64_t(div)) != 0 {
		return fmt.Errorf("reduce: fold: type %d, operator %d, %d sources: types are 0 to 11, operators 0 to 3, "+
			"and there must be a source", t, op, len(src))
	}
	return nil
}

// Copy copies src to the equally long dst, several times, with the named set of kernels.
func Copy(isa string, times int, dst, src []byte, stream bool) error {
	k, err := named("copy", isa)
	if err != nil {
		return err
	}
	if len(dst) != len(src) {
		return fmt.Errorf("reduce: copy: destination holds %d bytes, source %d; pass equal lengths", len(dst), len(src))
	}
	if len(src) == 0 {
		return nil
	}
	C.repeat_copy(k, C.long(times), unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), C.size_t(len(src)),
		C.int(flag(stream)))
	return nil
}

// Selected is the set of kernels that C code uses.
func Selected() string { return C.GoString(C.gccl_reduce_name(C.gccl_reduce_best())) }

// Force makes C code use the named set of kernels; "" gives the choice back.
func Force(isa string) error {
	name := C.CString(isa)
	defer C.free(unsafe.Pointer(name))
	if C.gccl_reduce_force(name) != 0 {
		return unknown("force", isa)
	}
	return nil
}

// Available lists the sets of kernels that this processor runs, plain C first.
func Available() []string {
	var names []string
	for _, isa := range []string{"c", "neon", "avx2", "avx512"} {
		if _, err := named("available", isa); err == nil {
			names = append(names, isa)
		}
	}
	return names
}

func named(call, isa string) (*C.gccl_reduce_isa, error) {
	name := C.CString(isa)
	defer C.free(unsafe.Pointer(name))
	if k := C.gccl_reduce_named(name); k != nil {
		return k, nil
	}
	return nil, unknown(call, isa)
}

func unknown(call, isa string) error {
	return fmt.Errorf("reduce: %s: no kernels named %q on this processor; use one of c, avx2, avx512, neon that it "+
		"supports", call, isa)
}

func flag(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}
