package comm

import (
	"context"
	"sync"
	"time"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/tune"
	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/bootstrap"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/ib"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/plugin/profiler"
	"github.com/gccl/gccl/plugin/tuner"
)

// Comm is one rank's communicator. Its methods may be called from any goroutine; those that all ranks must call say so.
type Comm struct {
	e   *Engine
	ctl control.Comm
	log *xlog.Logger

	// Fixed once the communicator is ready.
	rank, nranks int
	cfg          Config
	set          *param.Settings
	group        *bootstrap.Group // nil with one rank
	secret       []byte
	hellos       []*hello
	eager, stage uint64
	tuned        tuning
	base         tune.Table    // what tuned follows from, before a tuner plugin
	tuneSettings tune.Settings // and what base follows from
	tuner        *tuner.Plugin // nil: none
	profilers    *profiler.Set
	cliques      *plan.Cliques // who loads and stores whom, the same on all ranks; nil: all do
	net          *gin.Gin      // nil where memory joins all ranks
	dev          *gin.Gin      // of kernels; nil until a device communicator needs it
	card         *ib.Card      // whose queues kernels get; nil: none is wanted, or not all ranks have one
	noCard       string        // why not
	cardInUse    bool          // aborted kernels may still use its queues

	// What teardown gives back; guarded by the order of life: set during creation, released by teardown.
	arena *arena.Arena
	area  arena.Allocation
	peers []*clique.Peer // by rank; nil for ranks of this process, and for remote ones
	offer bool
	met   bool // the device has met its peers, and must leave them

	spins   bool   // kernels of all ranks wait for each other: the same on all ranks
	spinWhy string // for what they do, or why not

	clock    clock
	probe    control.Probe // none: nobody looks
	traced   uint32        // number in the trace; 0: not in it
	watchers *profiler.Attached

	ctx    context.Context // ends with abort or destroy
	cancel context.CancelCauseFunc

	asked questions // of this rank to others, about a late operation; guarded by mu

	told bool // this rank's own failure has been passed on; the watchdog's

	planMu    sync.Mutex
	planBytes uint64

	mu            sync.Mutex
	machine       *machine                  // nil: unknown, or nobody has a use for it
	carried       map[string]transport.Link // by devices of the network, at the last look
	weighed       uint64                    // number of the decision that machine is
	children      uint64                    // split, shrink and grow issued: part of the children's names
	growID        []byte                    // made by GrowID here
	windows       map[control.Window]*window
	winSeq        uint64
	devSeq        uint64 // device communicators
	toldNoWindows bool
	suspended     bool
	aborting      bool          // Abort has been called
	gone          bool          // teardown has begun
	holds         int           // jobs under way that end with the structure still in use
	released      chan struct{} // closed when holds becomes 0; nil while it is
	dead          map[int]bool  // ranks known to have failed
}

// New makes the object of a communicator whose structure the caller owns. It does nothing yet.
func (e *Engine) New(ctl control.Comm) *Comm {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Comm{e: e, ctl: ctl, ctx: ctx, cancel: cancel, log: e.Log(), windows: map[control.Window]*window{}, dead: map[int]bool{}}
}

// Rank, NRanks and Config describe a ready communicator.
func (c *Comm) Rank() int             { return c.rank }
func (c *Comm) NRanks() int           { return c.nranks }
func (c *Comm) Config() Config        { return c.cfg }
func (c *Comm) Control() control.Comm { return c.ctl }

// Hold keeps Abort and Destroy from giving the structure back until Release: for whoever works on the communicator in the
// background and looks at the structure afterwards.
func (c *Comm) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 {
		c.released = make(chan struct{})
	}
}

// Release ends a Hold.
func (c *Comm) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds == 0 {
		close(c.released)
		c.released = nil
	}
}

// awaitRelease waits until nobody holds the communicator, and says whether that came in time.
func (c *Comm) awaitRelease(limit time.Duration) bool {
	c.mu.Lock()
	released := c.released
	c.mu.Unlock()
	if released == nil {
		return true
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-released:
		return true
	case <-t.C:
		return false
	}
}

// usable says why no new work may start on the communicator, with the code that the table of states asks for.
func (c *Comm) usable(op string) error {
	switch c.ctl.State() {
	case control.Ready:
		if code := c.ctl.Error(); code != xerr.Success {
			return c.latched(op)
		}
		return nil
	case control.Init:
		return xerr.New(xerr.InvalidArgument, op, "the communicator is still being created").
			WithHint("poll ncclCommGetAsyncError until it is no longer ncclInProgress")
	case control.Failed:
		return xerr.New(xerr.InvalidArgument, op, "the creation of the communicator has failed").WithHint("call ncclCommAbort")
	case control.Revoked:
		return xerr.New(xerr.InvalidUsage, op, "the communicator has been revoked").
			WithHint("shrink it, or destroy it and make a new one")
	case control.Finalized:
		return xerr.New(xerr.InvalidArgument, op, "the communicator has been finalized").WithHint("destroy it")
	}
	return xerr.New(xerr.InvalidArgument, op, "the communicator has been destroyed")
}

// latched is the error of a communicator that has failed.
func (c *Comm) latched(op string) error {
	code := c.ctl.Error()
	if code < 0 || code == xerr.Success { // a latch half written by the front
		code = xerr.Remote
	}
	return xerr.New(code, op, "the communicator has failed: %s", c.ctl.Cause()).
		WithHint("call ncclCommAbort, or ncclCommShrink without the failed ranks")
}
