package comm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/topo"
)

// measurements are what the transports of this process have seen links carry: the last value of each. Links belong to the machine and not
// to a communicator.
type measurements struct {
	mu  sync.Mutex
	gbs map[string]float64
}

func (m *measurements) put(list []topo.Measured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gbs == nil {
		m.gbs = map[string]float64{}
	}
	for _, v := range list {
		m.gbs[v.Link] = v.GBs
	}
}

func (m *measurements) list() []topo.Measured {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []topo.Measured
	for _, link := range slices.Sorted(maps.Keys(m.gbs)) {
		out = append(out, topo.Measured{Link: link, GBs: m.gbs[link]})
	}
	return out
}

// Measure notes bandwidths that transports have seen under load. They count from the next decision: at the creation of a
// communicator, when its ranks meet to register a window, or when all call Reweigh. Links are named as topo.Measured says. It never blocks.
func (e *Engine) Measure(list ...topo.Measured) { e.measured.put(list) }

// loadBytes is what a device must have carried since the last look for its rate to count: a few small messages are no load. A guess.
const loadBytes = 8 << 20

// measureNet notes what the network devices of this rank's host have carried under load since the last look, from the transports'
// counters. A device that the topology does not have is nobody's. Called when a decision is near.
func (c *Comm) measureNet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machine == nil || c.net == nil {
		return
	}
	system := c.machine.found.System
	host := system.RankByNumber(c.rank).Device.ID.Host()
	if c.carried == nil {
		c.carried = map[string]transport.Link{}
	}
	for _, now := range c.net.Links() {
		key := fmt.Sprintf("%s:%d", now.Device, now.Port)
		was := c.carried[key]
		bytes, busy := now.Bytes-was.Bytes, now.Busy-was.Busy
		if bytes < loadBytes || busy <= 0 {
			continue
		}
		c.carried[key] = now
		if link := system.NetLink(host, now.Device, now.Port); link != "" {
			c.e.Measure(topo.Measured{Link: link, GBs: float64(bytes) / float64(busy)})
		}
	}
}

// hasNews says whether this process has measured what the decision does not know.
func (c *Comm) hasNews() bool {
	c.measureNet()
	c.mu.Lock()
	m := c.machine
	c.mu.Unlock()
	return m != nil && isNews(m.measured, c.e.measured.list())
}

// noticed is how far a measured bandwidth must be from the one in use to be news: below that every load would move channels. A guess.
const noticed = 0.1

// Reweigh decides anew about channels with what the transports of all ranks have measured. All ranks call it, in the same order with
// their other calls on the communicator; it says whether the channels have changed, the same on all ranks. A communicator
// without a topology has nothing to decide.
func (c *Comm) Reweigh(ctx context.Context) (changed bool, err error) {
	if err := c.usable("reweigh"); err != nil {
		return false, err
	}
	c.mu.Lock()
	c.winSeq++
	seq := c.winSeq
	c.mu.Unlock()
	return c.reweigh(ctx, seq)
}

// reweigh is Reweigh as the call with a number that all ranks count alike.
func (c *Comm) reweigh(ctx context.Context, seq uint64) (changed bool, err error) {
	c.mu.Lock()
	had := c.machine
	c.mu.Unlock()
	if had == nil {
		return false, nil
	}
	c.measureNet()
	list := c.e.measured.list()
	if len(list) > maxMeasured {
		list = list[:maxMeasured]
	}
	mine := view{Measured: list}
	all := [][]byte{mine.encode()}
	if c.group != nil {
		if all, err = c.group.AllGatherTag(ctx, fmt.Sprintf("measured %d", seq), all[0]); err != nil {
			return false, err
		}
	}
	lists := make([][]topo.Measured, len(all))
	for r, b := range all {
		v, err := decodeView(b)
		if err != nil {
			return false, xerr.Wrap(xerr.Remote, "reweigh", err, "the measurements of %s are not understood", c.who(r)).WithRank(r)
		}
		lists[r] = v.Measured
	}
	measured := topo.MergeMeasured(lists...)
	if !isNews(had.measured, measured) {
		return false, nil
	}
	if err := c.decideMachine(ctx, seq, had.views, measured); err != nil {
		return false, err
	}
	c.mu.Lock()
	now := c.machine
	c.mu.Unlock()
	changed = now == nil || now.channels != had.channels
	if c.rank == 0 {
		c.log.Info(xlog.Graph, "measured bandwidths: %s: channels %s", listMeasured(measured), map[bool]string{true: "have moved", false: "stay"}[changed])
	}
	return changed, nil
}

// isNews says whether a decision could be another with the new values.
func isNews(old, now []topo.Measured) bool {
	had := map[string]float64{}
	for _, m := range old {
		had[m.Link] = m.GBs
	}
	for _, m := range now {
		was, ok := had[m.Link]
		if !ok || m.GBs < was*(1-noticed) || m.GBs > was*(1+noticed) {
			return true
		}
	}
	return false
}

func listMeasured(list []topo.Measured) string {
	const most = 8
	var out []string
	for _, m := range list[:min(len(list), most)] {
		out = append(out, m.String())
	}
	if n := len(list) - most; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}
