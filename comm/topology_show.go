package comm

import (
	"fmt"
	"os"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/topo"
)

// logMachine says at level INFO what was found: rank 0 the channels, every rank its own place.
func (c *Comm) logMachine(m *machine) {
	if !c.log.Enabled(xlog.Info, xlog.Graph) {
		return
	}
	s := m.found.System
	if c.rank == 0 {
		for _, note := range c.e.local.Facts().Notes {
			c.log.Info(xlog.Graph, "unknown: %s", note)
		}
		where := "GPUs"
		if m.onCPUs {
			where = "CPUs: channels are shown, the host executor does not need them"
		}
		c.log.Info(xlog.Graph, "machine: NUMA nodes %d, devices %d, network devices %d; ranks stand on %s", s.Count(topo.CPUNode), s.Count(topo.DEVNode), s.Count(topo.NETNode), where)
		for _, line := range strings.Split(strings.TrimSpace(m.channels), "\n") {
			c.log.Info(xlog.Graph, "%s", line)
		}
	}
	r := s.RankByNumber(c.rank)
	if r == nil {
		return
	}
	at := r.Device.Dev.BusID
	if m.onCPUs {
		at = fmt.Sprintf("NUMA node %d", m.views[c.rank].Node)
		if m.views[c.rank].Node < 0 {
			at = "an unknown NUMA node"
		}
	}
	c.log.Info(xlog.Graph, "rank %d is on %s; %s", c.rank, at, neighbours(m.found.Ring, c.rank))
}

// neighbours writes a rank's place in the first ring.
func neighbours(ring *topo.Graph, rank int) string {
	if ring == nil || ring.N() == 0 {
		return "no ring"
	}
	ranks := ring.Channels[0].Ranks
	for i, r := range ranks {
		if r.Rank == rank {
			n := len(ranks)
			return fmt.Sprintf("ring 00: %d -> %d -> %d", ranks[(i+n-1)%n].Rank, rank, ranks[(i+1)%n].Rank)
		}
	}
	return "not in ring 00"
}

// dumpMachine writes the files that the user has asked for. That one cannot be written is said, and no reason to fail.
func (c *Comm) dumpMachine(m *machine) {
	c.dump(param.NCCLTopoDumpFile, param.NCCLTopoDumpFileRank, func() (string, error) { return m.text, nil })
	c.dump(param.NCCLGraphDumpFile, param.NCCLGraphDumpFileRank, func() (string, error) { return graphText(m.found) })
}

func (c *Comm) dump(file, rank param.ID, make func() (string, error)) {
	name := c.set.Str(file)
	if name == "" || int64(c.rank) != c.set.Int(rank) {
		return
	}
	text, err := make()
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		c.log.Warn(xlog.Graph, "%s: %v", c.set.Describe(file), err)
	}
}
