package control

// #include "probe.h"
// #include <stdlib.h>
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/device/probe"
	"github.com/gccl/gccl/internal/xerr"
)

// Trace is what the front offers for tracing (gccl_trace_api). The zero value offers nothing.
type Trace struct{ p *C.gccl_trace_api }

// TraceAt wraps the front's table, which must live as long as the process; nil is none. Another layout than this build's is none too.
func TraceAt(p unsafe.Pointer) Trace {
	t := (*C.gccl_trace_api)(p)
	if t != nil && (t.size != C.sizeof_gccl_trace_api || t.event_size != C.sizeof_gccl_event) {
		t = nil
	}
	return Trace{t}
}

// OK says whether there is anything.
func (t Trace) OK() bool { return t.p != nil }

// Steps is what adapters of net plugins are given (gccl_step_api); nil: the front has none.
func (t Trace) Steps() unsafe.Pointer {
	if t.p == nil {
		return nil
	}
	return unsafe.Pointer(t.p.steps)
}

// Tracer is the rings of the process.
type Tracer struct {
	t Trace
	p *C.struct_gccl_tracer
}

// Open makes the tracer at its first call.
func (t Trace) Open() (Tracer, error) {
	p := C.gccl_ctl_tracer(t.p)
	if p == nil {
		return Tracer{}, xerr.New(xerr.System, "trace", "out of memory")
	}
	return Tracer{t, p}, nil
}

// AtExit makes f, a C function without arguments, run when the process ends in order.
func (t Trace) AtExit(f unsafe.Pointer) { C.gccl_ctl_at_exit(t.p, (*[0]byte)(f)) }

// Take moves records of a ring into buf and returns how many, with the thread that they are of; -1: no ring has that index. One caller at
// a time.
func (t Tracer) Take(index int, buf []probe.Event) (n int, thread uint64) {
	var id C.uint64_t
	at := (*C.gccl_event)(unsafe.Pointer(unsafe.SliceData(buf)))
	n = int(C.gccl_ctl_trace_take(t.t.p, t.p, C.int32_t(index), at, C.int32_t(len(buf)), &id))
	return n, uint64(id)
}

// Dropped is how many operations and puts found no room so far.
func (t Tracer) Dropped() uint64 { return uint64(C.gccl_ctl_trace_dropped(t.t.p, t.p)) }

// Now is the time of records. Begin does so before a round of takes, and makes the times of records follow CLOCK_MONOTONIC. The caller of
// Take calls both.
func (t Tracer) Now() uint64 { return uint64(C.gccl_ctl_trace_now(t.t.p, t.p, 0)) }
func (t Tracer) Begin()      { C.gccl_ctl_trace_now(t.t.p, t.p, 1) }

// Now is CLOCK_MONOTONIC.
func Now() uint64 { return uint64(C.gccl_ctl_now()) }

// Probe is a gccl_probe. The zero value is none.
type Probe struct{ p *C.gccl_probe }

// NewProbe makes the probe of a communicator. tracer may be the zero value: nothing goes into a trace then.
func (t Trace) NewProbe(tracer Tracer, number uint32, rank int) (Probe, error) {
	p := C.gccl_ctl_probe_new(t.p, tracer.p, C.uint32_t(number), C.int32_t(rank))
	if p == nil {
		return Probe{}, xerr.New(xerr.System, "trace", "out of memory")
	}
	return Probe{p}, nil
}

// Pointer is the address of the gccl_probe, for those who give it plugins.
func (p Probe) Pointer() unsafe.Pointer { return unsafe.Pointer(p.p) }

// Nil says whether there is none.
func (p Probe) Nil() bool { return p.p == nil }

// Busy says whether calls or groups are under way that still look at it.
func (p Probe) Busy() bool { return C.gccl_ctl_probe_inside(p.p) != 0 }

// Free frees it. Preconditions: no communicator has it, and it is not busy.
func (p Probe) Free() { C.free(unsafe.Pointer(p.p)) }

// SetProbe makes the event points of the communicator tell the probe. Preconditions: no operation is in flight.
func (c Comm) SetProbe(p Probe) { C.gccl_ctl_probe_set(c.p, p.p) }
