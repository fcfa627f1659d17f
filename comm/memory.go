package comm

import (
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// What ncclCommMemStats can be asked for (ncclCommMemStat_t of NCCL 2.30.7).
const (
	statSuspend = iota
	statSuspended
	statPersist
	statTotal
)

// MemStat answers ncclCommMemStats: scratch can be suspended, the rest persists.
func (c *Comm) MemStat(stat int) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, scratch := c.ctl.Scratch()
	if c.area.Size == 0 {
		scratch = 0
	}
	switch stat {
	case statSuspend:
		return scratch, nil
	case statSuspended:
		if c.suspended {
			return 1, nil
		}
		return 0, nil
	case statPersist:
		return c.area.Size - scratch, nil
	case statTotal:
		return c.area.Size, nil
	}
	return 0, xerr.New(xerr.InvalidArgument, "memory statistics", "statistic %d is unknown: it must be from 0 to %d", stat, statTotal)
}

// structBytes is about what a communicator takes besides its plans (device/layout/comm.h).
const structBytes = 32 << 10

// Bytes returns the shared and the private memory of this rank's communicator.
func (c *Comm) Bytes() (shared, private uint64) {
	c.planMu.Lock()
	private = c.planBytes
	c.planMu.Unlock()
	return c.area.Size, private + structBytes + uint64(c.nranks)*64
}

// SuspendMem is NCCL_SUSPEND_MEM.
const SuspendMem = 1

// Suspend gives the pages of this rank's scratch back to the system (ncclCommSuspend). All ranks call it; addresses and
// user memory stay. Operations before Resume are the caller's mistake.
func (c *Comm) Suspend(flags int) error {
	const op = "suspend"
	if flags&SuspendMem == 0 {
		return nil
	}
	if err := c.usable(op); err != nil {
		return err
	}
	if c.set.Bool(param.NCCLDisableMemManager) {
		return xerr.New(xerr.InvalidUsage, op, "NCCL_DISABLE_MEM_MANAGER is 1").WithHint("unset NCCL_DISABLE_MEM_MANAGER")
	}
	c.mu.Lock()
	already := c.suspended
	c.suspended = true
	c.mu.Unlock()
	if already {
		return xerr.New(xerr.InvalidUsage, op, "the communicator is suspended already").WithHint("call ncclCommResume first")
	}
	undo := func(err error) error {
		c.mu.Lock()
		c.suspended = false
		c.mu.Unlock()
		return err
	}
	if code := c.e.front.Quiesce(c.ctl, 0); code != xerr.Success {
		return undo(xerr.New(code, op, "work in flight did not end"))
	}
	if c.group == nil {
		return nil
	}
	// A peer may still read the last operation's data here until it has come to this call itself.
	if err := c.group.Barrier(c.ctx); err != nil {
		return undo(err)
	}
	off, size := c.ctl.Scratch()
	if err := c.arena.Trim(c.area.Offset+off, size); err != nil {
		return undo(err)
	}
	return nil
}

// Resume ends Suspend (ncclCommResume). All ranks call it.
func (c *Comm) Resume() error {
	const op = "resume"
	if err := c.usable(op); err != nil {
		return err
	}
	c.mu.Lock()
	was := c.suspended
	c.suspended = false
	c.mu.Unlock()
	if !was {
		return xerr.New(xerr.InvalidUsage, op, "the communicator is not suspended")
	}
	if c.group == nil {
		return nil
	}
	return c.group.Barrier(c.ctx) // nobody may write to a peer that is not yet back
}

// Estimate predicts the time of a collective in microseconds from a start-up time and a rate per class; the numbers are
// those of a small machine and serve to compare sizes, not machines.
func (c *Comm) Estimate(coll uint32, bytes uint64) (float64, error) {
	if coll >= uint32(control.NumColls) {
		return 0, xerr.New(xerr.InvalidArgument, "estimate", "collective %d is unknown", coll)
	}
	if c.nranks == 1 {
		return float64(bytes) / 10e3, nil
	}
	start, rate := 0.5, 2e3 // µs, bytes per µs and rank
	if bytes > c.ctl.Limit(int(coll), classEager) {
		start, rate = 2, 5e3
	}
	return start + float64(bytes)*float64(c.nranks-1)/rate/float64(c.nranks), nil
}
