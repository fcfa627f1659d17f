// Package control owns the Go view of struct ncclComm (device/layout/comm.h): it fills what the C front reads,
// puts lowered plans into the launch table and latches failures.
//
// It must not know how a communicator comes to be: no bootstrap, no settings, no policy. The structure's memory
// belongs to whoever handed it over (the front's slab); the arrays, plans and windows hanging from it are allocated
// here and freed by Release.
package control

// #include "control.h"
// #include <stdlib.h>
import "C"

import (
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// State is enum gccl_comm_state.
type State uint32

// The states of a communicator.
const (
	Free      State = C.GCCL_COMM_FREE
	Init      State = C.GCCL_COMM_INIT
	Ready     State = C.GCCL_COMM_READY
	Failed    State = C.GCCL_COMM_FAILED
	Finalized State = C.GCCL_COMM_FINALIZED
	Revoked   State = C.GCCL_COMM_REVOKED
	Dead      State = C.GCCL_COMM_DEAD
)

// Limits of the launch table.
const (
	NumColls = int(C.GCCL_NUM_COLLS)
	Classes  = int(C.GCCL_CLASSES)
	Windows  = 64
)

// Comm is a struct ncclComm. The zero value is none.
type Comm struct{ p *C.ncclComm_s }

// At wraps a structure that C owns.
func At(p unsafe.Pointer) Comm { return Comm{(*C.ncclComm_s)(p)} }

// New makes a structure as the front would; Delete frees it.
func New() Comm          { return Comm{C.gccl_ctl_new()} }
func (c Comm) Delete()   { C.free(unsafe.Pointer(c.p)) }
func (c Comm) Nil() bool { return c.p == nil }

// Pointer is the address of the structure.
func (c Comm) Pointer() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Core is the handle that the core left in the structure.
func (c Comm) Core() uint64 { return uint64(c.p.core) }

// Identity is what a communicator is from its first moment on.
type Identity struct {
	Core            uint64
	Rank, NRanks    int
	Blocking        bool
	Check           bool
	NoOneSided      bool
	OneProcess      bool
	DeviceAPI       bool // device communicators can be made
	Copies          bool // a GPU: what only moves data is done by copies of the driver
	Spin            int  // a GPU: gccl_spin_wish of this rank
	LSASize         int  // ranks of an LSA team
	Crowded         bool // ranks share CPUs
	SpinNs, YieldNs uint32
	LateNs          uint64 // after how long a wait is reported; 0 never
}

func flag(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

// SetIdentity stores the identity.
func (c Comm) SetIdentity(id Identity) {
	v := C.gccl_ctl_identity{
		core: C.uint64_t(id.Core), rank: C.int32_t(id.Rank), nranks: C.int32_t(id.NRanks),
		blocking: flag(id.Blocking), check: flag(id.Check), no_onesided: flag(id.NoOneSided), one_process: flag(id.OneProcess), crowded: flag(id.Crowded),
		device_api: flag(id.DeviceAPI), copies: flag(id.Copies), spin: C.uint8_t(id.Spin), lsa_size: C.int32_t(id.LSASize),
		spin_ns: C.uint32_t(id.SpinNs), yield_ns: C.uint32_t(id.YieldNs), late_ns: C.uint64_t(id.LateNs),
	}
	C.gccl_ctl_identity_set(c.p, &v)
}

// SetCore stores the core's handle alone: it is needed before the rest of the identity is known.
func (c Comm) SetCore(h uint64) { c.p.core = C.uint64_t(h) }

// AllocArrays allocates the per-peer arrays.
func (c Comm) AllocArrays(nranks int) error {
	if C.gccl_ctl_arrays(c.p, C.int32_t(nranks)) == 0 {
		return xerr.New(xerr.System, "communicator memory", "out of memory for %d ranks", nranks)
	}
	return nil
}

// AreaSize is how many bytes a rank's area takes.
func AreaSize(nranks int, eager, stage, device uint64) uint64 {
	return uint64(C.gccl_ctl_area_size(C.uint32_t(nranks), C.uint64_t(eager), C.uint64_t(stage), C.uint64_t(device)))
}

// SetGeometry fixes the offsets inside areas. Preconditions: SetIdentity.
func (c Comm) SetGeometry(eager, stage, device uint64) {
	C.gccl_ctl_geometry(c.p, C.uint64_t(eager), C.uint64_t(stage), C.uint64_t(device))
}

// Scratch returns offset and size of the part of an area that holds nothing between operations.
func (c Comm) Scratch() (off, size uint64) {
	return uint64(c.p.geo.stage), uint64(c.p.geo.size - c.p.geo.stage)
}

// SetSelf stores where this rank's area and its process's arena are. area is 0 for a single rank.
func (c Comm) SetSelf(area, arena uintptr, arenaSize uint64) {
	C.gccl_ctl_self(c.p, C.uintptr_t(area), C.uintptr_t(arena), C.uint64_t(arenaSize))
}

// InitArea writes the head of this rank's area. Preconditions: SetIdentity, SetSelf, zeroed memory.
func (c Comm) InitArea() { C.gccl_ctl_area_init(c.p) }

// SetPeer stores how this process reaches a rank.
func (c Comm) SetPeer(rank int, area, arena uintptr, sameProcess bool) {
	same := C.int(0)
	if sameProcess {
		same = 1
	}
	C.gccl_ctl_peer(c.p, C.int32_t(rank), C.uintptr_t(area), C.uintptr_t(arena), same)
}

// SetRemote says that a rank is reached through the port; mirror is this process's image of its area.
func (c Comm) SetRemote(rank int, mirror uintptr) {
	C.gccl_ctl_remote(c.p, C.int32_t(rank), C.uintptr_t(mirror))
}

// SetSleepers says in which rank's area the ranks of this clique count their sleepers. Preconditions: its area is mapped.
func (c Comm) SetSleepers(rank int) { C.gccl_ctl_sleepers(c.p, C.int32_t(rank)) }

// SetGinType stores the ncclGinType_t that kernels of this library's header get.
func (c Comm) SetGinType(t int) { C.gccl_ctl_gin_type(c.p, C.int32_t(t)) }

// SetPort stores the port (gccl_port); nil for none. Preconditions: no operation is in flight.
func (c Comm) SetPort(p unsafe.Pointer) { C.gccl_ctl_port(c.p, (*C.gccl_port)(p)) }

// Area is where this rank's area is.
func (c Comm) Area() uintptr { return uintptr(unsafe.Pointer(c.p.self.area)) }

// AreaBytes is the size of a rank's area. Preconditions: SetGeometry.
func (c Comm) AreaBytes() uint64 { return uint64(c.p.geo.size) }

// CheckArea says whether the area of a rank looks like one of this communicator.
func (c Comm) CheckArea(rank int) error {
	var magic, version C.uint32_t
	var has C.int32_t
	if C.gccl_ctl_area_check(c.p, C.int32_t(rank), &magic, &version, &has) == 0 {
		return xerr.New(xerr.System, "shared memory", "the mapped area is not that of rank %d: it has magic %#x, version %d, rank %d",
			rank, uint32(magic), uint32(version), int32(has)).WithRank(rank)
	}
	return nil
}

// WriteProof stores a pattern in the area of a rank, TakeProof reads and clears what a rank stored in ours.
func (c Comm) WriteProof(to int, pattern uint64) {
	C.gccl_ctl_proof_write(c.p, C.int32_t(to), C.uint64_t(pattern))
}
func (c Comm) TakeProof(from int) uint64 {
	return uint64(C.gccl_ctl_proof_take(c.p, C.int32_t(from)))
}

// Release frees what hangs from the structure. Preconditions: no operation is in flight, windows are gone.
func (c Comm) Release() { C.gccl_ctl_release(c.p) }

// State, SetState and SwapState read and change the state; a reader that sees Ready sees all that was stored before.
func (c Comm) State() State     { return State(C.gccl_ctl_state(c.p)) }
func (c Comm) SetState(s State) { C.gccl_ctl_state_set(c.p, C.uint32_t(s)) }
func (c Comm) SwapState(from, to State) bool {
	return C.gccl_ctl_state_swap(c.p, C.uint32_t(from), C.uint32_t(to)) != 0
}

// Latch records the first cause of a failure, ends all waits of this rank, and says whether it was the first.
func (c Comm) Latch(code xerr.Code, text string) bool {
	b := append([]byte(text), 0)
	return C.gccl_ctl_latch(c.p, C.int32_t(code), (*C.char)(unsafe.Pointer(&b[0])), C.int32_t(len(text))) != 0
}

// Unlatch forgets the cause: for a communicator whose failed waits have all ended on purpose (revoke).
func (c Comm) Unlatch() { C.gccl_ctl_unlatch(c.p) }

// Error is the latched code; Cause its text.
func (c Comm) Error() xerr.Code { return xerr.Code(C.gccl_ctl_error(c.p)) }
func (c Comm) Cause() string    { return C.GoString(&c.p.cause[0]) }

// Aborted and SetAborted are the word that ends every wait of this rank.
func (c Comm) Aborted() bool { return C.gccl_ctl_abort(c.p) != 0 }
func (c Comm) SetAborted(on bool) {
	C.gccl_ctl_abort_set(c.p, C.uint32_t(flag(on)))
	if on && c.State() != Init { // before that nobody sleeps, and the area may go at any moment
		C.gccl_ctl_wake(c.p)
	}
}

// Unfinished says whether this rank gave up its last collective half-way, so that peers may wait for it.
// Preconditions: nothing is in flight.
func (c Comm) Unfinished() bool { return C.gccl_ctl_unfinished(c.p) != 0 }

// InFlight says whether operations of this rank are in flight, and gives the number of the collective reached.
func (c Comm) InFlight() (seq uint64, on bool) {
	var n C.uint64_t
	on = C.gccl_ctl_in_flight(c.p, &n) != 0
	return uint64(n), on
}

// TookPart says whether a rank has finished a collective. Preconditions: its area is mapped.
func (c Comm) TookPart(rank int, seq uint64) bool {
	return C.gccl_ctl_took_part(c.p, C.int32_t(rank), C.uint64_t(seq)) != 0
}

// Finished is the last collective that a rank has finished. Preconditions: its area is mapped.
func (c Comm) Finished(rank int) uint64 { return uint64(C.gccl_ctl_finished(c.p, C.int32_t(rank))) }

// Joined says whether a rank has joined a collective, and what its call is as long as it is the newest of GCCL_RECORDS. Preconditions:
// its area is mapped.
func (c Comm) Joined(rank int, seq uint64) (call string, ok bool) {
	var text [96]C.char
	if C.gccl_ctl_joined(c.p, C.int32_t(rank), C.uint64_t(seq), &text[0], C.int32_t(len(text))) == 0 {
		return "", false
	}
	return C.GoString(&text[0]), true
}

// Counted is how many communication calls this rank has made, and their bytes.
func (c Comm) Counted() (calls, bytes uint64) {
	var n, b C.uint64_t
	C.gccl_ctl_counted(c.p, &n, &b)
	return uint64(n), uint64(b)
}

// Async and SetAsync are what ncclCommGetAsyncError answers.
func (c Comm) Async() xerr.Code        { return xerr.Code(C.gccl_ctl_async(c.p)) }
func (c Comm) SetAsync(code xerr.Code) { C.gccl_ctl_async_set(c.p, C.int32_t(code)) }

// SetLimit stores up to how many bytes a count class of a collective is used.
func (c Comm) SetLimit(coll, class int, bytes uint64) {
	C.gccl_ctl_limit(c.p, C.uint32_t(coll), C.uint32_t(class), C.uint64_t(bytes))
}

// Limit reads it back.
func (c Comm) Limit(coll, class int) uint64 { return uint64(c.p.limit[coll][class]) }

// HasPlan says whether the launch table has an entry.
func (c Comm) HasPlan(coll, class, root uint32) bool {
	return C.gccl_ctl_plan_find(c.p, C.uint32_t(coll), C.uint32_t(class), C.uint32_t(root)) != nil
}

// AddPlan copies a lowered plan to C memory and publishes it in the launch table.
//
// Preconditions: calls for one communicator are serialised; HasPlan is false.
func (c Comm) AddPlan(coll, class, root uint32, block []byte) (kept uint64, err error) {
	if len(block) < C.sizeof_gccl_lowered {
		return 0, xerr.New(xerr.Internal, "launch table", "a lowered plan of %d bytes is too short", len(block))
	}
	var n C.uint64_t
	if C.gccl_ctl_plan_add(c.p, C.uint32_t(coll), C.uint32_t(class), C.uint32_t(root), unsafe.Pointer(&block[0]), C.uint64_t(len(block)), &n) == 0 {
		return 0, xerr.New(xerr.System, "launch table", "out of memory for a plan of %d bytes", len(block))
	}
	return uint64(n), nil
}

// MarkLeft tells a rank, in its area, that this one reads it no more.
func (c Comm) MarkLeft(to int) { C.gccl_ctl_left_mark(c.p, C.int32_t(to)) }

// SignalsOffset is where the words of the peers are in an area.
func (c Comm) SignalsOffset() uint64 { return uint64(c.p.geo.signals) }

// HasLeft says whether a rank has left the area at an address. It needs no communicator: areas outlive theirs until
// all peers have left.
func HasLeft(area uintptr, signals uint64, from int) bool {
	return C.gccl_ctl_left_read(C.uintptr_t(area), C.uint64_t(signals), C.int32_t(from)) != 0
}
