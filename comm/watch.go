package comm

import (
	"fmt"
	"sync"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// watchEvery is how often the watchdog looks. Two looks at the same operation are needed, so a hang ends after at most
// two of them.
const watchEvery = time.Second

// watchdog finds collectives that can never end because a rank has left the communicator without taking part: no failure,
// so the bootstrap says nothing, and the rank's memory stays readable. It also tells the peers about failures that this
// rank's executor has found. One goroutine serves all communicators of an engine; it exists while there are any.
type watchdog struct {
	mu    sync.Mutex
	comms map[*Comm]uint64 // the collective in flight at the last look, 0 for none
	stop  chan struct{}
	every time.Duration // 0: watchEvery; tests shorten it
}

func (w *watchdog) add(c *Comm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.comms == nil {
		w.comms = map[*Comm]uint64{}
	}
	w.comms[c] = 0
	if w.stop == nil {
		w.stop = make(chan struct{})
		every := w.every
		if every == 0 {
			every = watchEvery
		}
		go w.run(w.stop, every)
	}
}

// remove returns when the watchdog no longer looks at the communicator.
func (w *watchdog) remove(c *Comm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.comms, c)
	if len(w.comms) == 0 && w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
}

func (w *watchdog) run(stop chan struct{}, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		w.mu.Lock()
		for c, before := range w.comms {
			w.comms[c] = c.look(before)
		}
		w.mu.Unlock()
	}
}

// tell passes on a failure that only this rank can see, such as a call that does not fit its peers': they may wait for this
// rank, which takes part no more. A failure that came from a peer is known to all already.
func (c *Comm) tell() {
	if err := c.ownFailure(); err != nil && !c.told {
		c.told = true
		c.group.Fail(err)
	}
}

// ownFailure is the latched failure, unless it came from a peer.
func (c *Comm) ownFailure() error {
	code := c.ctl.Error()
	if code == xerr.Success || code == xerr.Remote {
		return nil
	}
	return xerr.New(code, "operation", "%s", c.ctl.Cause()).WithRank(c.rank)
}

// look returns the collective that is in flight. If it was at the last look too, it asks who has left.
func (c *Comm) look(before uint64) uint64 {
	c.tell()
	c.lostConnections()
	c.deviceFaults()
	if d := c.device(); d != nil && c.ctl.State() == control.Ready {
		d.Look(c.ctl)
	}
	seq, on := c.ctl.InFlight()
	if !on || c.ctl.State() != control.Ready {
		return 0
	}
	if seq == 0 || seq != before {
		return seq
	}
	area, signals := c.arena.Base()+uintptr(c.area.Offset), c.ctl.SignalsOffset()
	for r := range c.nranks {
		if r == c.rank || !control.HasLeft(area, signals, r) || c.ctl.TookPart(r, seq) {
			continue
		}
		text := fmt.Sprintf("%s has left the communicator without taking part in collective %d, in which this rank waits; "+
			"all ranks must make the same calls before they destroy or abort it", c.who(r), seq)
		if c.ctl.Latch(xerr.Remote, text) {
			c.log.Error(xlog.Coll, "%s", text)
		}
	}
	return seq
}
