// Package arena owns the memory that ranks share in host mode: one memory file (memfd) per process, mapped once, with
// a page-granular allocator on top. Communicator areas and the user's ncclMemAlloc memory both come from it, so that
// a peer that has mapped the file once reaches everything.
//
// It must not know communicators, ranks, sockets or who maps the file elsewhere: it hands out the descriptor and
// the size, and offsets that are valid in every mapping.
package arena

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
)

// Reservation sizes. The range is only address space: a page costs memory when it is first touched.
const (
	maxReserve = 256 << 30
	minReserve = 256 << 20
	// Where address space is limited, peers' arenas and windows need their part of it too (a guess).
	shareOfLimit = 8
)

// NonceBytes is the length of a process identity.
const NonceBytes = 16

// Nonce tells processes apart; unlike a process id it is not used twice.
type Nonce [NonceBytes]byte

// Allocation is a range of an arena. Generation tells apart two allocations that had the same offset one after the
// other: offsets are used again after Free.
type Allocation struct {
	Offset, Size uint64
	Generation   uint64
}

// Arena is one memory file and its mapping. Safe for use by several goroutines.
type Arena struct {
	fd    int
	base  uintptr
	size  uint64
	page  uint64
	nonce Nonce

	mu         sync.Mutex
	used       []entry  // by offset
	free       []extent // by offset, never adjacent
	usedBytes  uint64
	generation uint64
}

type extent struct{ off, size uint64 }

// entry is a live allocation. One that is freed while it is pinned is doomed: it goes with the last pin.
type entry struct {
	Allocation
	pins   int
	doomed bool
}

var process struct {
	mu sync.Mutex
	a  *Arena
}

// Process returns the arena of this process, made at the first call. It lives as long as the process.
func Process() (*Arena, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.a == nil {
		a, err := New(maxReserve)
		if err != nil {
			return nil, err
		}
		process.a = a
	}
	return process.a, nil
}

// Existing returns the arena of this process, or nil if nothing has needed it yet.
func Existing() *Arena {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.a
}

// New makes an arena of at most limit bytes; it tries half as much again and again where the system refuses.
func New(limit uint64) (*Arena, error) {
	const op = "shared memory"
	a := &Arena{page: uint64(os.Getpagesize()), fd: -1}
	if _, err := rand.Read(a.nonce[:]); err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "no random process identity")
	}
	fd, err := unix.MemfdCreate("gccl", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		e := xerr.Wrap(xerr.System, op, err, "memfd_create failed")
		switch {
		case errors.Is(err, unix.EMFILE):
			e = e.WithHint("raise the limit of open files (ulimit -n), now %s", limitText(unix.RLIMIT_NOFILE))
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			e = e.WithHint("host mode needs memfd_create (Linux 3.17); allow it in the sandbox's system-call filter")
		}
		return nil, e
	}
	a.fd = fd
	// Growing a file past RLIMIT_FSIZE does not only fail, it sends SIGXFSZ (setrlimit(2)): stay below.
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &lim) == nil && lim.Cur < limit {
		limit = lim.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &lim) == nil && lim.Cur != unix.RLIM_INFINITY {
		limit = min(limit, max(lim.Cur/shareOfLimit, minReserve))
	}
	limit = limit / a.page * a.page
	least := min(uint64(minReserve), limit)
	for size := limit; ; size /= 2 {
		if size < least || size < a.page {
			_ = unix.Close(fd)
			return nil, xerr.Wrap(xerr.System, op, err, "cannot reserve %s of address space for the arena", bytesText(least)).
				WithHint("raise the limits of address space (ulimit -v, now %s) and file size (ulimit -f, now %s)",
					limitText(unix.RLIMIT_AS), limitText(unix.RLIMIT_FSIZE))
		}
		size = size / a.page * a.page
		if err = unix.Ftruncate(fd, int64(size)); err != nil {
			continue
		}
		if a.base, err = mapFile(fd, size); err == nil {
			a.size = size
			break
		}
	}
	// A peer that maps the file must not fear that it shrinks under it (SIGBUS).
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		_ = a.Close()
		return nil, xerr.Wrap(xerr.System, op, err, "cannot seal the memory file")
	}
	a.free = []extent{{0, a.size}}
	return a, nil
}

// Close unmaps the arena. For tests: the process's arena is never closed.
func (a *Arena) Close() error {
	err := unmap(a.base, a.size)
	return errors.Join(err, unix.Close(a.fd))
}

// FD is the memory file; the arena keeps it. Size is the length of the mapping, Base its address here.
func (a *Arena) FD() int       { return a.fd }
func (a *Arena) Size() uint64  { return a.size }
func (a *Arena) Base() uintptr { return a.base }

// Nonce is the identity of the process.
func (a *Arena) Nonce() Nonce { return a.nonce }

// Used returns the bytes handed out.
func (a *Arena) Used() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usedBytes
}

// Alloc hands out size bytes of zeroed memory, rounded up to pages.
func (a *Arena) Alloc(size uint64) (Allocation, error) {
	const op = "shared memory allocation"
	if size == 0 || size > a.size {
		return Allocation{}, xerr.New(xerr.System, op, "%s do not fit the arena of %s", bytesText(size), bytesText(a.size)).
			WithHint("raise the limit of address space (ulimit -v, now %s) or ask for less", limitText(unix.RLIMIT_AS))
	}
	want := (size + a.page - 1) / a.page * a.page
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, e := range a.free {
		if e.size < want {
			continue
		}
		if e.size == want {
			a.free = append(a.free[:i], a.free[i+1:]...)
		} else {
			a.free[i] = extent{e.off + want, e.size - want}
		}
		a.generation++
		al := Allocation{Offset: e.off, Size: want, Generation: a.generation}
		at := a.find(al.Offset)
		a.used = append(a.used, entry{})
		copy(a.used[at+1:], a.used[at:])
		a.used[at] = entry{Allocation: al}
		a.usedBytes += want
		return al, nil
	}
	return Allocation{}, xerr.New(xerr.System, op, "no free range of %s: %s of the arena's %s are in use",
		bytesText(want), bytesText(a.usedBytes), bytesText(a.size)).
		WithHint("free memory, or raise the limit of address space (ulimit -v, now %s)", limitText(unix.RLIMIT_AS))
}

// find returns the index of the first allocation at or after off.
func (a *Arena) find(off uint64) int {
	return sort.Search(len(a.used), func(i int) bool { return a.used[i].Offset >= off })
}

// Free gives an allocation back: its pages return to the system and read as zeros afterwards, in all mappings. While
// it is pinned that waits for the last Unpin.
func (a *Arena) Free(al Allocation) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := a.indexLocked("shared memory free", al)
	if err != nil {
		return err
	}
	if a.used[i].doomed {
		return errNotAllocated("shared memory free", al)
	}
	if a.used[i].pins > 0 {
		a.used[i].doomed = true
		return nil
	}
	a.freeLocked(i)
	return nil
}

// Pin keeps an allocation from being used again, Unpin ends that.
func (a *Arena) Pin(al Allocation) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := a.indexLocked("shared memory pin", al)
	if err == nil {
		a.used[i].pins++
	}
	return err
}

// Unpin undoes one Pin.
func (a *Arena) Unpin(al Allocation) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := a.indexLocked("shared memory unpin", al)
	if err != nil {
		return err
	}
	if a.used[i].pins == 0 {
		return xerr.New(xerr.Internal, "shared memory unpin", "offset %d is not pinned", al.Offset)
	}
	if a.used[i].pins--; a.used[i].pins == 0 && a.used[i].doomed {
		a.freeLocked(i)
	}
	return nil
}

func errNotAllocated(op string, al Allocation) error {
	return xerr.New(xerr.InvalidArgument, op, "offset %d (generation %d) is not an allocation", al.Offset, al.Generation).
		WithHint("memory can be freed once, with the pointer that the allocation returned")
}

func (a *Arena) indexLocked(op string, al Allocation) (int, error) {
	i := a.find(al.Offset)
	if i == len(a.used) || a.used[i].Allocation != al {
		return 0, errNotAllocated(op, al)
	}
	return i, nil
}

func (a *Arena) freeLocked(i int) {
	al := a.used[i].Allocation
	if err := unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(al.Offset), int64(al.Size)); err != nil {
		clear(a.Bytes(al)) // where holes are refused the memory stays in use, but the next owner gets zeros
	}
	a.used = append(a.used[:i], a.used[i+1:]...)
	a.usedBytes -= al.Size
	a.release(extent{al.Offset, al.Size})
}

// release adds a range to the free list and joins it with its neighbours.
func (a *Arena) release(e extent) {
	i := sort.Search(len(a.free), func(i int) bool { return a.free[i].off >= e.off })
	if i < len(a.free) && e.off+e.size == a.free[i].off {
		e.size += a.free[i].size
		a.free = append(a.free[:i], a.free[i+1:]...)
	}
	if i > 0 && a.free[i-1].off+a.free[i-1].size == e.off {
		a.free[i-1].size += e.size
		return
	}
	a.free = append(a.free, extent{})
	copy(a.free[i+1:], a.free[i:])
	a.free[i] = e
}

// Trim gives the pages of a range back without freeing it: it reads as zeros.
func (a *Arena) Trim(off, size uint64) error {
	if off+size > a.size || off+size < off {
		return xerr.New(xerr.Internal, "shared memory trim", "range %d+%d is outside the arena", off, size)
	}
	if err := unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(size)); err != nil {
		return xerr.Wrap(xerr.System, "shared memory trim", err, "fallocate refused a hole")
	}
	return nil
}

// Lookup returns the allocation that holds address p, if any.
func (a *Arena) Lookup(p uintptr) (Allocation, bool) {
	if p < a.base || p-a.base >= uintptr(a.size) {
		return Allocation{}, false
	}
	off := uint64(p - a.base)
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.find(off + 1)
	if i == 0 {
		return Allocation{}, false
	}
	al := a.used[i-1]
	return al.Allocation, !al.doomed && off-al.Offset < al.Size
}

func limitText(resource int) string {
	var lim unix.Rlimit
	if err := unix.Getrlimit(resource, &lim); err != nil {
		return "unknown"
	}
	if lim.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	if resource == unix.RLIMIT_NOFILE {
		return fmt.Sprint(lim.Cur)
	}
	return bytesText(lim.Cur)
}

func bytesText(n uint64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n&(1<<u.shift-1) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
