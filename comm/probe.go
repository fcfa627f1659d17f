package comm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/plugin/profiler"
)

// hash names the communicator, the same on all its ranks (NCCL's commHash). It says nothing of the secret that it follows from.
func (c *Comm) hash() uint64 {
	sum := sha256.Sum256(append([]byte("gccl communicator hash"), c.secret...))
	return binary.BigEndian.Uint64(sum[:])
}

// clock is by how much this rank's clock is ahead of rank 0's, and how wrong that may be. Unknown where both are the same.
type clock struct {
	known          bool
	offset, within int64 // ns
}

// between finds the offset of a clock from moments on two clocks: something happened at both after `from` and before `to`.
func between(from, to, from0, to0 uint64) clock {
	lo, hi := int64(from-to0), int64(to-from0)
	return clock{known: true, offset: lo + (hi-lo)/2, within: (hi - lo + 1) / 2}
}

// compareClocks exchanges the time of ranks of several machines, if any rank writes a trace. All ranks call it. What a gather
// of all ranks gives exists only when all have sent, so it comes into being between a rank's sending and its receiving, on
// every rank.
func (c *Comm) compareClocks(ctx context.Context) error {
	wanted, several := false, false
	for _, h := range c.hellos {
		wanted = wanted || h.Trace
		several = several || bootOf(h.Machine) != bootOf(c.hellos[0].Machine)
	}
	if !wanted || !several {
		return nil
	}
	if _, err := c.group.AllGatherTag(ctx, "clock together", nil); err != nil { // so that the next one takes as little as it can
		return err
	}
	from := control.Now()
	if _, err := c.group.AllGatherTag(ctx, "clock", nil); err != nil {
		return err
	}
	to := control.Now()
	all, err := c.group.AllGatherTag(ctx, "clock times", binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, from), to))
	if err != nil {
		return err
	}
	if len(all[0]) != 16 {
		return xerr.New(xerr.Remote, "trace", "%s sent a time that is not one", c.who(0)).WithRank(0)
	}
	if c.rank != 0 && bootOf(c.hellos[0].Machine) != bootOf(c.hellos[c.rank].Machine) {
		c.clock = between(from, to, binary.BigEndian.Uint64(all[0]), binary.BigEndian.Uint64(all[0][8:]))
	} else {
		c.clock = clock{known: true}
	}
	return nil
}

// wantsTrace says whether this rank writes a trace.
func (c *Comm) wantsTrace() bool { return c.set.Str(param.GCCLTrace) != "" }

// attachProbe gives the communicator a probe if anybody looks at what it does. All ranks call it.
func (c *Comm) attachProbe(ctx context.Context) error {
	if c.group != nil {
		if err := c.compareClocks(ctx); err != nil {
			return err
		}
	}
	if !c.wantsTrace() && c.profilers.Empty() {
		return nil
	}
	if !c.e.front.Trace.OK() {
		return xerr.New(xerr.InvalidUsage, "trace", "%s and %s: this program has no front that can be watched",
			c.set.Describe(param.GCCLTrace), c.set.Describe(param.NCCLProfilerPlugin))
	}
	var tracer control.Tracer
	var err error
	if c.wantsTrace() {
		if tracer, c.traced, err = c.e.trace.add(c); err != nil {
			return err
		}
	}
	if c.probe, err = c.e.front.Trace.NewProbe(tracer, c.traced, c.rank); err != nil {
		return err
	}
	if !c.profilers.Empty() {
		c.watchers = c.profilers.Attach(profiler.Comm{Name: c.cfg.CommName, Hash: c.hash(), Nodes: c.nodes(), Ranks: c.nranks, Rank: c.rank,
			Probe: c.probe.Pointer()}, c.log)
	}
	c.ctl.SetProbe(c.probe)
	return nil
}

// detachProbe ends what attachProbe began. idle: nothing of the communicator is in flight; otherwise an operation may still
// look at the probe.
func (c *Comm) detachProbe(idle bool) {
	if c.traced != 0 {
		c.e.trace.remove(c.traced)
		c.traced = 0
	}
	if !idle || c.probe.Nil() {
		return
	}
	p := c.probe
	c.ctl.SetProbe(control.Probe{})
	c.probe = control.Probe{}
	// An aborted operation has ended, and its call in another thread is about to return.
	for end := time.Now().Add(probeWait); p.Busy(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			c.log.Warn(xlog.Destroy, "%s: a group with calls of the communicator is open: what watches it stays", c.who(c.rank))
			return
		}
	}
	c.watchers.Detach()
	p.Free()
}

// probeWait is for a call to return whose operation has ended; a group that is open may never end.
const probeWait = 500 * time.Millisecond

// AtExit is what the engine does when the process ends in order.
func (e *Engine) AtExit() {
	e.trace.atExit()
	endEnvPlugin()
}
