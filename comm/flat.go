package comm

import (
	"os"
	"sync"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// team is the flat range of a communicator in this process: rank p's part of a window stands at base + p·stride + the
// window's offset. Thread ranks of one process share it, because n ranges of n·stride would use up the address space.
type team struct {
	key    string
	base   uintptr
	stride uint64
	nranks int
	refs   int // guarded by Engine.mu

	mu    sync.Mutex
	spots map[uint64]*spot // by the window's number in the communicator
}

// spot is one window's place in each rank's part of the range.
type spot struct {
	off, size uint64
	refs      int
}

// joinTeam takes a reference on the communicator's flat range; the first one reserves it.
func (e *Engine) joinTeam(c *Comm) (*team, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := c.group.Derive([]byte("flat range")).ID // the same for the ranks of this communicator and no others
	key := string(id[:])
	t := e.teams[key]
	if t == nil {
		stride := uint64(c.set.Size(param.GCCLLsaStride))
		base, err := arena.Reserve(stride * uint64(c.nranks))
		if err != nil {
			return nil, xerr.Wrap(xerr.System, "window", err, "cannot reserve %d × %d MiB of address space for the flat range of windows", c.nranks, stride>>20).
				WithHint("lower GCCL_LSA_STRIDE, or raise the limit of address space (ulimit -v)")
		}
		t = &team{key: key, base: base, stride: stride, nranks: c.nranks, spots: map[uint64]*spot{}}
		e.teams[key] = t
	}
	t.refs++
	return t, nil
}

// leaveTeam gives a reference back; the last one gives the range back.
func (e *Engine) leaveTeam(t *team) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.refs--; t.refs == 0 {
		delete(e.teams, t.key)
		_ = arena.Unreserve(t.base, t.stride*uint64(t.nranks))
	}
}

// place maps a window at all ranks, or finds the place where another rank of this process has mapped it, and returns the
// address of rank 0's part.
func (t *team) place(c *Comm, seq uint64, all []placed) (uintptr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.spots[seq]; s != nil {
		s.refs++
		return t.base + uintptr(s.off), nil
	}
	page := uint64(os.Getpagesize())
	up := func(n uint64) uint64 { return (n + page - 1) / page * page }
	s := &spot{refs: 1}
	for _, p := range all {
		s.size = max(s.size, up(p.size))
	}
	var ok bool
	if s.off, ok = t.gap(s.size); !ok {
		return 0, xerr.New(xerr.InvalidArgument, "window", "no room for a window of %d bytes: the windows of a rank must fit %d bytes", s.size, t.stride).
			WithHint("deregister windows, or raise GCCL_LSA_STRIDE on all ranks")
	}
	for r, p := range all {
		if c.remote(r) {
			continue // its place stays empty
		}
		fd := c.arena.FD()
		if q := c.peers[r]; q != nil {
			fd = q.FD
		}
		at := t.base + uintptr(uint64(r)*t.stride+s.off)
		if err := arena.Alias(fd, at, p.offset, up(p.size)); err != nil {
			for q := 0; q <= r; q++ {
				_ = arena.Unalias(t.base+uintptr(uint64(q)*t.stride+s.off), s.size)
			}
			return 0, xerr.Wrap(xerr.System, "window", err, "cannot map the window of rank %d", r).WithHint("raise vm.max_map_count")
		}
	}
	t.spots[seq] = s
	return t.base + uintptr(s.off), nil
}

// gap finds the first free offset for size bytes.
func (t *team) gap(size uint64) (uint64, bool) {
	off := uint64(0)
	for moved := true; moved; {
		moved = false
		for _, s := range t.spots {
			if off < s.off+s.size && s.off < off+size {
				off, moved = s.off+s.size, true
			}
		}
	}
	return off, off+size <= t.stride
}

// remove ends one rank's use of a window; the last one unmaps it.
func (t *team) remove(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spots[seq]
	if s == nil {
		return
	}
	if s.refs--; s.refs > 0 {
		return
	}
	delete(t.spots, seq)
	for r := range t.nranks {
		_ = arena.Unalias(t.base+uintptr(uint64(r)*t.stride+s.off), s.size)
	}
}
