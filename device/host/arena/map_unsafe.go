package arena

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const rw = unix.PROT_READ | unix.PROT_WRITE

// Places of mappings. Ranks allocate alike, so buffers that belong together have equal offsets in their arenas. Were the
// arenas mapped at equal distances of a large power of two, equal offsets would differ in high address bits only, and AMD's
// first-level cache, whose way predictor hashes bits 12 to 27 (Lipp et al., Take A Way, 2020), takes such addresses for each
// other: an all-reduce of 2 MiB took 180 µs instead of 52. So each mapping of a process begins at another 2 MiB step.
const (
	mapStep  = 2 << 20 // keeps large pages possible
	mapSteps = 128     // bits 21 to 27
	mapOdd   = 37      // neighbours in time get distant steps
)

var mappings atomic.Uint32

// mapFile maps size bytes of a memory file at an address of the system's choice.
func mapFile(fd int, size uint64) (uintptr, error) {
	const slack = mapStep * (mapSteps + 1)
	room, err := Reserve(size + slack)
	if err != nil {
		return 0, err
	}
	step := uintptr((mappings.Add(1)-1)*mapOdd%mapSteps) * mapStep
	at := (room+mapStep-1)/mapStep*mapStep + step
	p, err := unix.MmapPtr(fd, 0, pointer(at), uintptr(size), rw, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		_ = unmap(room, size+slack)
		return 0, err
	}
	if before := at - room; before > 0 {
		_ = unmap(room, uint64(before))
	}
	page := uint64(unix.Getpagesize())
	end := at + uintptr((size+page-1)/page*page)
	if after := room + uintptr(size+slack) - end; after > 0 {
		_ = unmap(end, uint64(after))
	}
	// Large pages where the kernel gives them to shared memory on advice. Advice only: a refusal changes nothing else.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(p), uintptr(size), unix.MADV_HUGEPAGE)
	return at, nil
}

func unmap(base uintptr, size uint64) error {
	return unix.MunmapPtr(pointer(base), uintptr(size))
}

// pointer turns an address outside the Go heap into a pointer; the detour through memory tells vet that the
// collector is not concerned.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Bytes returns the memory of an allocation. It is valid until Free.
func (a *Arena) Bytes(al Allocation) []byte {
	return unsafe.Slice((*byte)(pointer(a.base+uintptr(al.Offset))), al.Size)
}

// MapPeer maps another process's memory file of the given size here.
func MapPeer(fd int, size uint64) (uintptr, error) { return mapFile(fd, size) }

// UnmapPeer undoes MapPeer.
func UnmapPeer(base uintptr, size uint64) error { return unmap(base, size) }

// Reserve takes size bytes of address space without memory behind it.
func Reserve(size uint64) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	return uintptr(p), err
}

// Alias maps size bytes at offset off of a memory file to a place inside a reserved range.
//
// Preconditions: [at, at+size) lies in a range of Reserve; all three are multiples of the page size.
func Alias(fd int, at uintptr, off, size uint64) error {
	_, err := unix.MmapPtr(fd, int64(off), pointer(at), uintptr(size), rw, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err
}

// Unalias turns part of a reserved range back into bare address space.
func Unalias(at uintptr, size uint64) error {
	_, err := unix.MmapPtr(-1, 0, pointer(at), uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err
}

// Unreserve gives a whole range of Reserve back.
func Unreserve(base uintptr, size uint64) error { return unmap(base, size) }
