package comm

import (
	"cmp"
	"context"
	"slices"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/gin"
)

// GinWant is what a device communicator asks of GIN; the same on all ranks.
type GinWant struct {
	Contexts, Signals, Counters, Depth int
	OwnHeader                          bool   // its kernels know the backends direct and gdaki
	Format, ContextBytes               int    // of their descriptors (gin.Format), and of a context as their header has it
	Told                               uint64 // where in the resource window ranks tell their signals (gin.Want); 0: nowhere
}

// GinGot is what it has.
type GinGot struct {
	Type     int         // 0: all peers are direct
	Direct   bool        // peers of the LSA team are
	Contexts *gin.Device // nil without a type
}

// OpenGin makes the contexts of a device communicator, whose resource window is w. Collective. An error leaves the window as it is.
func (c *Comm) OpenGin(w control.Window, want GinWant) (GinGot, error) {
	choice, err := c.ginChoice(want.OwnHeader)
	if err != nil {
		return GinGot{}, err
	}
	got := GinGot{Direct: choice.Direct}
	if choice.Direct && c.lsaSize(c.nranks) == c.nranks {
		return got, nil
	}
	if choice.Net == "" {
		return got, xerr.New(xerr.InvalidUsage, "device communicator", "GIN between LSA teams needs proxy or gdaki, and %s allows neither", choice.Why).
			WithHint("unset GCCL_GIN, or let it name one of them")
	}
	g, err := c.deviceNet()
	if err != nil {
		return got, err
	}
	dev, err := g.OpenDevice(gin.Want{NIC: choice.Net == "gdaki", Format: gin.Format(want.Format), ContextBytes: want.ContextBytes,
		Contexts: want.Contexts, Signals: want.Signals, Counters: want.Counters, Depth: want.Depth, Window: c.ctl.NumberOf(w), Told: want.Told})
	// All ranks have opened theirs before any kernel may use them, and all or none keep them.
	err = c.agreeOnContexts(w, dev, err)
	if err != nil {
		if dev != nil {
			dev.Close(false)
		}
		return got, err
	}
	c.mu.Lock()
	c.windows[w].contexts = dev
	c.mu.Unlock()
	got.Type, got.Contexts = choice.Type(), dev
	return got, nil
}

// ginChoice picks the backends of kernels. ownHeader: they know all of them.
func (c *Comm) ginChoice(ownHeader bool) (gin.Choice, error) {
	return gin.ForKernels(c.wishes(), ownHeader)
}

func (c *Comm) wishes() gin.Wishes {
	return gin.Wishes{List: c.set.Str(param.GCCLGin), Type: int(c.set.Int(param.NCCLGinType)), Off: !c.set.Bool(param.NCCLGinEnable),
		SoftNIC: c.set.Bool(param.GCCLSoftNIC), NIC: c.set.Str(param.GCCLGinNIC), NoCard: c.noCard}
}

// gatherAll is an all-gather that a communicator of one rank can do too.
func (c *Comm) gatherAll(ctx context.Context, tag string, mine []byte) ([][]byte, error) {
	if c.group == nil {
		return [][]byte{mine}, nil
	}
	return c.group.AllGatherTag(ctx, tag, mine)
}

// deviceNet is the network of this communicator's kernels: connections between all pairs of ranks, whatever memory joins, because kernels
// that were compiled with another header know no other way. It is made when the first device communicator needs it. Collective.
func (c *Comm) deviceNet() (*gin.Gin, error) {
	if c.dev != nil {
		return c.dev, nil
	}
	candidates, err := c.candidates()
	if err != nil {
		return nil, err
	}
	g, err := gin.Establish(c.ctx, gin.Need{
		Rank: c.rank, NRanks: c.nranks, Remote: func(a, b int) bool { return a != b },
		Candidates: candidates, Secret: c.netSecret(),
		Gather: func(ctx context.Context, tag string, mine []byte) ([][]byte, error) {
			return c.gatherAll(ctx, "device "+tag, mine)
		},
		Who: c.who,
		Say: func(line string) {
			if c.rank == 0 {
				c.log.Info(xlog.Net, "kernels: %s", line)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if d := c.device(); d != nil {
		err = g.UseMover(d.Mover, c.ctl.Pointer(), c.set.Bool(param.GCCLGinSMCopy))
	}
	if err = c.agreeOn("device mover", err); err == nil && c.device() != nil && c.cliques != nil {
		err = c.agreeOn("device bounce", g.Bounce(c.ctx, c.remote, c.who, c.group.AllGatherTag))
		if err == nil && c.rank == 0 {
			c.log.Info(xlog.Net, "kernels: windows of other hosts are reached through bounce memory in host memory: the network does not register memory of a GPU")
		}
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	if err := g.Start(c.ginThread(c.crowded())); err != nil {
		g.Close()
		return nil, err
	}
	choice, _ := c.ginChoice(true)
	if choice.NIC == gin.Card || choice.NIC == gin.CardRelayed {
		g.UseCard(c.card.C())
	}
	if c.rank == 0 {
		c.log.Info(xlog.Net, "kernels: %s", choice)
	}
	if why, yes := c.relayed(); yes {
		c.log.Info(xlog.Net, "kernels: the CPU rings the doorbells of %s%s", c.card.Name, why)
	}
	type entry struct {
		w   control.Window
		rec *window
	}
	var known []entry
	c.mu.Lock()
	c.dev = g
	for w, rec := range c.windows {
		known = append(known, entry{w, rec})
	}
	c.mu.Unlock()
	slices.SortFunc(known, func(a, b entry) int { return cmp.Compare(a.rec.seq, b.rec.seq) })
	for _, k := range known {
		err := c.shareWith(g, "device", k.w, k.rec)
		if d := c.device(); err == nil && d != nil {
			err = d.ShowWindow(c.ctl, k.w) // again, now with what shareWith has added
		}
		if err != nil {
			c.mu.Lock()
			c.dev = nil
			c.mu.Unlock()
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// deviceFaults latches what the network of kernels has found out: a connection that has failed, or something of this rank that cannot be
// obeyed.
func (c *Comm) deviceFaults() {
	c.mu.Lock()
	g := c.dev
	c.mu.Unlock()
	if g == nil {
		return
	}
	for _, f := range g.Faults(faultDelay) {
		c.peerFailed(f.Rank, xerr.New(xerr.Remote, "network", "kernels cannot reach it any more: %s", f.Text))
	}
	if err := g.Err(); err != nil && c.ctl.Latch(xerr.CodeOf(err), err.Error()) {
		c.log.Error(xlog.Net, "%v", err)
	}
}
