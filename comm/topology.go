package comm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/place"
)

// machine is what a communicator knows of the machine under it: the same on all its ranks. It is not changed.
type machine struct {
	text     string // topology file of what all ranks see together
	onCPUs   bool   // ranks stand on CPUs: host mode without a file that places them
	found    *topo.Decision
	channels string          // the decision as text, which ranks compare
	measured []topo.Measured // agreed bandwidths that replace nominal ones
	views    []view
}

// wantsTopology says whether this rank has a use for the topology. Where no rank has, nothing is discovered: the host executor works in
// one memory and needs no channels.
func (c *Comm) wantsTopology() bool {
	for _, id := range []param.ID{param.NCCLTopoFile, param.NCCLTopoDumpFile, param.NCCLGraphFile, param.NCCLGraphDumpFile, param.NCCLNetForceMerge} {
		if c.set.Str(id) != "" {
			return true
		}
	}
	return c.set.Str(param.NCCLNetMergeLevel) != "PORT" || c.log.Enabled(xlog.Info, xlog.Graph)
}

// learnMachine merges what all ranks see, and searches. All ranks call it. What cannot be found out leaves the communicator without a topology
// and is said in the log; the error is that of a user's order which cannot be obeyed, or of a rank that is gone.
func (c *Comm) learnMachine(ctx context.Context) error {
	wanted := c.wantsTopology()
	for _, h := range c.hellos {
		wanted = wanted || h.Topology
	}
	if !wanted {
		return nil
	}
	views, err := c.exchangeViews(ctx)
	if err != nil {
		return err
	}
	lists := make([][]topo.Measured, len(views))
	for r, v := range views {
		lists[r] = v.Measured
	}
	return c.decideMachine(ctx, 0, views, topo.MergeMeasured(lists...))
}

// decideMachine searches with the views of all ranks and agreed measurements, and makes the result the communicator's if the ranks
// agree. seq numbers the decisions of a communicator: calls from several threads may end in another order than they began.
func (c *Comm) decideMachine(ctx context.Context, seq uint64, views []view, measured []topo.Measured) error {
	o := c.searchOptions(views)
	o.Measured = measured
	f, err := c.fusion()
	var m *machine
	if err == nil {
		m, err = c.e.decisions.get(decisionKey(views, o, f), func() (*machine, error) { return search(views, o, f) })
	}
	v := verdict{}
	var unfused *topo.FusionError
	if errors.As(err, &unfused) {
		v.Order = c.fusionText(err)
	} else if err != nil {
		v.Trouble = err.Error()
	} else if m, err = c.obeyGraphFile(m); err != nil {
		v.Order = err.Error()
	} else {
		v = m.verdict()
	}
	all := []verdict{v}
	if c.group != nil {
		if all, err = c.exchangeVerdicts(ctx, fmt.Sprintf("channels %d", seq), v); err != nil {
			return err
		}
	}
	for r, v := range all {
		if v.Order != "" {
			return xerr.New(xerr.InvalidUsage, "topology", "%s: %s", c.who(r), v.Order).WithRank(r).WithHint("unset it, or give it a value that fits the machine")
		}
	}
	why := disagree(views, all)
	if why != "" {
		m = nil
	} else {
		m = m.under(views, all)
	}
	c.mu.Lock()
	if seq >= c.weighed {
		c.machine, c.weighed = m, seq
	}
	c.mu.Unlock()
	if why != "" {
		if c.rank == 0 {
			c.log.Info(xlog.Graph, "no topology: %s", why)
		}
		return nil
	}
	c.logMachine(m)
	c.dumpMachine(m)
	return nil
}

// searchOptions are the user's orders that change paths and channels, and what follows from who takes part.
func (c *Comm) searchOptions(views []view) topo.Options {
	o := topo.DefaultOptions()
	o.P2PDisable = c.set.Bool(param.NCCLP2pDisable)
	o.NVLSDisable = c.set.Int(param.NCCLNvlsEnable) == 0
	o.PXNDisable = c.set.Bool(param.NCCLPxnDisable)
	o.CrossNic = int(c.set.Int(param.NCCLCrossNic))
	o.MinChannels = int(c.set.IntOr(param.NCCLMinCtas, 0))
	o.MaxChannels = int(c.set.IntOr(param.NCCLMaxCtas, 0))
	o.P2PLevel, o.HasP2P = pathLevel(c.set.Str(param.NCCLP2pLevel))
	hosts := map[string]bool{}
	for r, v := range views {
		hosts[v.Host] = true
		if o.Self == topo.NoRank && v.Host == views[c.rank].Host {
			o.Self = r
		}
	}
	o.Nodes = len(hosts)
	return o
}

// oldLevels are the numbers that NCCL_P2P_LEVEL had before it had names (NCCL user guide, environment variables).
var oldLevels = map[string]topo.PathType{"0": topo.LOC, "1": topo.PIX, "2": topo.PXB, "3": topo.PHB, "4": topo.SYS, "5": topo.SYS}

// pathLevel reads the value of NCCL_P2P_LEVEL; other texts are as if it were not set.
func pathLevel(text string) (topo.PathType, bool) {
	if t, ok := oldLevels[text]; ok {
		return t, true
	}
	return topo.ParsePathType(strings.ToUpper(text))
}

// decisionKey names what a decision follows from.
func decisionKey(views []view, o topo.Options, f topo.Fusion) string {
	h := sha256.New()
	for _, v := range views {
		h.Write(v.encode())
	}
	_, _ = fmt.Fprintf(h, "%+v %+v", o, f)
	return string(h.Sum(nil))
}

// fusion is what the user wants of network devices that act as one.
func (c *Comm) fusion() (topo.Fusion, error) {
	level, err := topo.ParseMergeLevel(c.set.Str(param.NCCLNetMergeLevel))
	return topo.Fusion{Level: level, Force: c.set.Str(param.NCCLNetForceMerge), Rails: c.set.Str(param.NCCLNetMergePolicy) == "RAIL",
		Off: !c.set.Bool(param.NCCLIbMergeNics)}, err
}

// fusionText names the settings that cannot be obeyed.
func (c *Comm) fusionText(err error) string {
	text := c.set.Describe(param.NCCLNetMergeLevel)
	if c.set.Str(param.NCCLNetForceMerge) != "" {
		text = c.set.Describe(param.NCCLNetForceMerge) + ", " + text
	}
	return fmt.Sprintf("%s: %v", text, err)
}

// search puts the ranks on the merged machine and finds channels. The text of the machine is that before devices are fused, as NCCL
// dumps it.
func search(views []view, o topo.Options, f topo.Fusion) (*machine, error) {
	merged, err := mergeViews(views)
	if err != nil {
		return nil, err
	}
	var refused [][2]string
	for _, v := range views {
		refused = append(refused, v.Refused...)
	}
	o.P2PVeto = place.Veto(refused)
	onGPUs := placesOnGPUs(views)
	if onGPUs != nil {
		if err := place.PutOnGPUs(merged, onGPUs); err != nil {
			return nil, err
		}
	}
	var text strings.Builder
	if err := merged.WriteXML(&text); err != nil {
		return nil, err
	}
	m := &machine{text: text.String(), views: views, measured: o.Measured}
	if err := merged.Fuse(f); err != nil {
		return nil, err
	}
	if onGPUs != nil || hasRanks(merged, len(views)) {
		sys, err := topo.Build(merged, o)
		if err != nil {
			return nil, err
		}
		m.found, err = topo.Search(sys, o)
		if err != nil {
			return nil, err
		}
	} else {
		m.onCPUs = true
		places := make([]place.OnCPUs, len(views))
		for r, v := range views {
			places[r] = place.OnCPUs{Rank: r, Host: v.Host, Node: v.Node}
		}
		read := func() (*topo.Machine, error) { return place.Copy(merged) }
		if m.found, err = place.Search(read, places, o); err != nil {
			return nil, err
		}
	}
	m.channels = channelsText(m.found)
	return m, nil
}

// channelsText writes a decision: a line for each graph and each channel.
func channelsText(d *topo.Decision) string {
	var b strings.Builder
	for _, g := range []*topo.Graph{d.Ring, d.Tree, d.NVLS} {
		if g == nil {
			continue
		}
		fmt.Fprintf(&b, "pattern %d: %d x %.4g GB/s inside (up to %s)", g.Pattern, g.N(), g.BWIntra, g.TypeIntra)
		if g.N() > 0 && g.Channels[0].In != nil {
			fmt.Fprintf(&b, ", %.4g GB/s between nodes (up to %s), crossNic %d", g.BWInter, g.TypeInter, g.CrossNic)
		}
		fmt.Fprintf(&b, ", sameChannels %v\n", g.SameChannels)
		for i, c := range g.Channels {
			fmt.Fprintf(&b, "pattern %d channel %02d:", g.Pattern, i)
			if c.In != nil {
				fmt.Fprintf(&b, " %s", c.In)
			}
			for _, r := range c.Ranks {
				fmt.Fprintf(&b, " %d", r.Rank)
			}
			if c.Out != nil {
				fmt.Fprintf(&b, " %s", c.Out)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// placesOnGPUs are the ranks' GPUs if all have one.
func placesOnGPUs(views []view) []place.OnGPU {
	out := make([]place.OnGPU, len(views))
	for r, v := range views {
		if v.Bus == "" {
			return nil
		}
		out[r] = place.OnGPU{Rank: r, Host: v.Host, BusID: v.Bus}
	}
	return out
}

// hasRanks says whether a description places exactly ranks 0 … n-1.
func hasRanks(m *topo.Machine, n int) bool {
	seen := make([]bool, n)
	count := 0
	for _, g := range m.GPUs() {
		if g.Rank == topo.NoRank {
			continue
		}
		if g.Rank >= n || seen[g.Rank] {
			return false
		}
		seen[g.Rank] = true
		count++
	}
	return count == n
}
