package comm

import (
	"sync"
	"time"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// Bounds of local waits. Operations look at the abort word at least every 50 ms (device/host/exec), so these are ample.
const (
	abortWait = 5 * time.Second
	jobWait   = 10 * time.Second
)

// Finalize waits for all work of this rank. Local.
func (c *Comm) Finalize() error {
	const op = "communicator finalize"
	if err := c.usable(op); err != nil {
		return err
	}
	if code := c.e.front.Quiesce(c.ctl, 0); code != xerr.Success && c.ctl.Error() == xerr.Success {
		return xerr.New(code, op, "work in flight did not end").WithHint("call ncclCommAbort")
	}
	if c.ctl.Error() != xerr.Success {
		return c.latched(op)
	}
	if !c.ctl.SwapState(control.Ready, control.Finalized) {
		return c.usable(op)
	}
	return nil
}

// Destroy waits for all work of this rank and gives everything back. Local; peers may go on for as long as they like. A
// communicator whose failure is latched is left as it is, for Abort.
func (c *Comm) Destroy() error {
	const op = "communicator destroy"
	if !c.awaitRelease(jobWait) {
		return xerr.New(xerr.InvalidUsage, op, "another call on the communicator is still at work").
			WithHint("wait until ncclCommGetAsyncError is no longer ncclInProgress, or call ncclCommAbort")
	}
	switch c.ctl.State() {
	case control.Ready:
		if err := c.Finalize(); err != nil {
			return err
		}
	case control.Finalized, control.Revoked, control.Failed:
	default:
		return c.usable(op)
	}
	c.teardown(true, nil)
	return nil
}

// Abort ends all work and gives everything back, whatever state the communicator is in. Local and bounded.
func (c *Comm) Abort() error {
	c.cancel(xerr.New(xerr.InvalidUsage, "communicator abort", "this rank called ncclCommAbort"))
	c.aborting = true
	wasReady, healthy := c.ctl.State() == control.Ready, c.ctl.Error() == xerr.Success
	c.ctl.SetAborted(true)
	idle := c.awaitRelease(jobWait)
	idle = c.e.front.Quiesce(c.ctl, abortWait) != xerr.Timeout && idle
	var cause error
	if wasReady && healthy && (!idle || c.ctl.Unfinished()) { // peers may be waiting for this rank
		cause = xerr.New(xerr.Remote, "communicator abort", "%s called ncclCommAbort while operations were in flight", c.who(c.rank)).WithRank(c.rank)
	}
	if own := c.ownFailure(); own != nil { // the watchdog may not have come round since
		cause = own
	}
	c.teardown(idle, cause)
	return nil
}

// Interrupt makes a communicator fail because its own process does not want to wait any longer. Any goroutine; local.
func (c *Comm) Interrupt() {
	const text = "a wait was interrupted by its own process (gcclSetInterrupt)"
	c.cancel(xerr.New(xerr.System, "wait", text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone && c.ctl.State() == control.Ready {
		c.ctl.Latch(xerr.System, c.who(c.rank)+": "+text)
	}
}

// Revoke ends all work of this rank and makes the communicator refuse new work; it can still be shrunk. Local.
func (c *Comm) Revoke(flags int) error {
	const op = "communicator revoke"
	if flags != 0 {
		return xerr.New(xerr.InvalidArgument, op, "flags are %#x: none are defined, pass 0", flags)
	}
	switch c.ctl.State() {
	case control.Revoked:
		return xerr.New(xerr.InvalidArgument, op, "the communicator has been revoked before")
	case control.Ready:
	default:
		return c.usable(op)
	}
	if !c.ctl.SwapState(control.Ready, control.Revoked) {
		return xerr.New(xerr.InvalidArgument, op, "the communicator is being revoked or finalized by another call")
	}
	if err := c.stopWork(op); err != nil {
		return err
	}
	c.ctl.Unlatch()
	return nil
}

// stopWork ends what is in flight in this process and lowers the abort word again.
func (c *Comm) stopWork(op string) error {
	c.ctl.SetAborted(true)
	if code := c.e.front.Quiesce(c.ctl, abortWait); code == xerr.Timeout {
		return xerr.New(xerr.Timeout, op, "operations in flight did not end within %v of being aborted", abortWait).WithHint("call ncclCommAbort")
	}
	c.ctl.SetAborted(false)
	return nil
}

// teardown gives everything back once. idle says that nothing of this rank is in flight; otherwise what an operation may
// still touch is left mapped, because a leak is better than a crash of the host program. cause, if not nil, is told to
// the peers as this rank's failure.
func (c *Comm) teardown(idle bool, cause error) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return
	}
	c.gone = true
	c.mu.Unlock()
	c.cancel(xerr.New(xerr.InvalidUsage, "communicator", "the communicator has been destroyed"))
	c.ctl.SetState(control.Dead)
	if idle { // a call of another thread that began before that sees the abort word, or is waited for
		c.ctl.SetAborted(true)
		idle = c.e.front.Quiesce(c.ctl, abortWait) != xerr.Timeout
	}
	c.withdraw()
	c.e.live.remove(c)
	c.e.watch.remove(c)
	c.e.ends.remove(c)
	var bye sync.WaitGroup
	if c.group != nil {
		bye.Add(1)
		go func() { // tells the peers while the memory goes
			defer bye.Done()
			if cause != nil {
				c.group.Abort(cause)
			} else {
				_ = c.group.Close()
			}
		}()
	}
	if idle {
		c.dropWindows()
		if c.leaveDevice() {
			for r := range c.peers {
				if r != c.rank && !c.remote(r) {
					c.ctl.MarkLeft(r)
				}
			}
			c.disconnect()
			c.detachProbe(true)
			c.unmapPeers()
			c.leaveArea()
		} else {
			c.log.Warn(xlog.Destroy, "%s: graphs with operations of the aborted communicator are alive: %d bytes of shared memory stay allocated", c.who(c.rank), c.area.Size)
		}
		c.ctl.Release()
	} else {
		c.log.Warn(xlog.Destroy, "%s: operations did not end after an abort: %d bytes of shared memory stay allocated", c.who(c.rank), c.area.Size)
	}
	c.detachProbe(false)
	bye.Wait()
	c.e.front.Retire(c.ctl, idle)
}

func (c *Comm) unmapPeers() {
	for r, p := range c.peers {
		if p != nil {
			p.Release()
			c.peers[r] = nil
		}
	}
}

// freeArea gives the area back at once: for a communicator that never became ready.
func (c *Comm) freeArea() {
	if c.area.Size != 0 {
		_ = c.arena.Free(c.area)
		c.area = arena.Allocation{}
	}
	c.peers = nil
}

// pending is an area whose rank has left while peers may still read the last operations in it. Each peer marks in the
// area itself that it has left; areas of peers that died unseen stay until the process ends.
type pending struct {
	arena   *arena.Arena
	area    arena.Allocation
	signals uint64
	waiting []int // ranks that have not left
}

var leftovers struct {
	mu   sync.Mutex
	list []*pending
}

// leaveArea frees the area, or leaves that to reapAreas if peers have not left it yet.
func (c *Comm) leaveArea() {
	if c.area.Size == 0 {
		reapAreas()
		return
	}
	p := &pending{arena: c.arena, area: c.area, signals: c.ctl.SignalsOffset()}
	c.mu.Lock()
	for r := range c.peers {
		if r != c.rank && !c.dead[r] && !c.remote(r) {
			p.waiting = append(p.waiting, r)
		}
	}
	c.mu.Unlock()
	c.area = arena.Allocation{}
	leftovers.mu.Lock()
	leftovers.list = append(leftovers.list, p)
	leftovers.mu.Unlock()
	reapAreas()
}

// reapAreas frees the areas that all peers have left.
func reapAreas() {
	leftovers.mu.Lock()
	defer leftovers.mu.Unlock()
	keep := leftovers.list[:0]
	for _, p := range leftovers.list {
		if !p.free() {
			keep = append(keep, p)
		}
	}
	clear(leftovers.list[len(keep):])
	leftovers.list = keep
}

func (p *pending) free() bool {
	at := p.arena.Base() + uintptr(p.area.Offset)
	still := p.waiting[:0]
	for _, r := range p.waiting {
		if !control.HasLeft(at, p.signals, r) {
			still = append(still, r)
		}
	}
	p.waiting = still
	if len(still) > 0 {
		return false
	}
	_ = p.arena.Free(p.area)
	return true
}

// Leftovers returns how many areas wait for peers, and how many peer processes are mapped: for leak checks.
func Leftovers() (areas, peers int) {
	reapAreas()
	leftovers.mu.Lock()
	defer leftovers.mu.Unlock()
	return len(leftovers.list), clique.Mapped()
}
