package socket

// #include "faults.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/gccl/gccl/net/transport"
)

// Faults are what goes wrong in the system calls of an endpoint, by a fixed seed: for tests.
type Faults struct {
	Seed uint64
	// Of 100,000 calls so many do less than they could, are interrupted, or find the kernel not ready.
	Short, Interrupt, Again int
	// Of 100,000 calls so many break a stream: by a reset, an end, a wrong bit in a head. At most Breaks do.
	Reset, End, Corrupt int
	Breaks              int
}

// Injected counts what went wrong, and changes how much may.
type Injected struct {
	p           unsafe.Pointer // nil after Free
	all, broken int            // then the last counts
}

// Inject puts faults between an endpoint of this package and its sockets. No thread may be in its data path.
func Inject(e transport.Endpoint, f Faults) (*Injected, error) {
	ep, ok := e.(*endpoint)
	if !ok {
		return nil, errors.New("not an endpoint of the socket transport")
	}
	c := C.gccl_socket_faults{seed: C.uint64_t(f.Seed), breaks: C.int64_t(f.Breaks)}
	for kind, n := range []int{f.Short, f.Interrupt, f.Again, f.Reset, f.End, f.Corrupt} {
		c.per_100000[kind] = C.uint32_t(n)
	}
	p := C.gccl_socket_faults_set(ep.p, &c)
	if p == nil {
		return nil, errors.New("out of memory")
	}
	return &Injected{p: p}, nil
}

// Allow sets how many streams may still be broken.
func (i *Injected) Allow(breaks int) { C.gccl_socket_faults_allow(i.p, C.int64_t(breaks)) }

// Count is how often what has happened: all faults, and those that broke a stream.
func (i *Injected) Count() (all, broken int) {
	if i.p == nil {
		return i.all, i.broken
	}
	for kind := range C.int(C.GCCL_FAULTS) {
		n := int(C.gccl_socket_faults_count(i.p, kind))
		all += n
		if kind >= C.GCCL_FAULT_BREAK {
			broken += n
		}
	}
	return all, broken
}

// Free ends it; the counts stay. The endpoint must be closed.
func (i *Injected) Free() {
	i.all, i.broken = i.Count()
	C.gccl_socket_faults_free(i.p)
	i.p = nil
}
