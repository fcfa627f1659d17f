package arena

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const rw = unix.PROT_READ | unix.PROT_WRITE

// mapFile maps size bytes of a memory file at an address of the system's choice.
func mapFile(fd int, size uint64) (uintptr, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), rw, unix.MAP_SHARED|unix.MAP_NORESERVE)
	return uintptr(p), err
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
