package comm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/ib"
	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/shm"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/plugin"
	netplugin "github.com/gccl/gccl/plugin/net"
)

// Of the network.
const (
	portDepth  = 1024                   // commands of the executor that wait; a guess
	leaveWait  = time.Second            // to tell the peers that this rank leaves
	faultDelay = 300 * time.Millisecond // how long the bootstrap has to say why a connection has ended: it knows the rank's fate
)

// connect reaches the ranks outside this rank's clique through the network. crowded says that ranks share CPUs.
func (c *Comm) connect(ctx context.Context, crowded bool) error {
	if err := gin.CheckList(c.set.Str(param.GCCLGin)); err != nil {
		return err
	}
	if c.cliques == nil {
		return nil
	}
	candidates, err := c.candidates()
	if err != nil {
		return err
	}
	g, err := gin.Establish(ctx, gin.Need{
		Rank: c.rank, NRanks: c.nranks, Comm: c.ctl,
		Area:   c.arena.Base() + uintptr(c.area.Offset),
		Remote: c.apart, Candidates: candidates, Secret: c.netSecret(),
		Gather: c.group.AllGatherTag, Who: c.who,
		Say: func(line string) {
			if c.rank == 0 {
				c.log.Info(xlog.Net, "%s", line)
			}
		},
	})
	if err != nil {
		return err
	}
	c.net = g
	if err := g.Start(c.ginThread(crowded)); err != nil {
		return err
	}
	return g.Attach(c.ctl, portDepth)
}

// ginThread: where ranks share CPUs the thread naps at once, because whoever waits for the network helps to serve it.
func (c *Comm) ginThread(crowded bool) gin.Thread {
	us := func(id param.ID, auto int64) time.Duration {
		return time.Duration(c.set.IntOr(id, auto)) * time.Microsecond
	}
	t := gin.Thread{Spin: us(param.GCCLGinSpin, 1000), Nap: us(param.GCCLGinNap, 200), CPU: int(c.set.Int(param.GCCLGinCPU))}
	switch {
	case c.set.Bool(param.GCCLGinHot):
		t.Spin = -1
	case crowded && c.set.IsAuto(param.GCCLGinSpin):
		t.Spin = 0
	}
	return t
}

// candidates lists the transports that the settings allow, best first.
func (c *Comm) candidates() ([]gin.Candidate, error) {
	// Memory between hosts is no memory, whatever the two ranks could do: unless NCCL_NET asks for shm.
	tcp, err := socket.FromSettings(c.set)
	if err != nil {
		return nil, err
	}
	verbs, err := ib.FromSettings(c.set)
	if err != nil {
		return nil, err
	}
	builtin := []gin.Candidate{
		{Transport: loop.Transport{}, Between: func(a, b int) bool { return c.hellos[a].Nonce == c.hellos[b].Nonce }},
		{Transport: shm.Transport{}, Between: func(a, b int) bool { return c.allowed(a, b) && c.hellos[a].Machine == c.hellos[b].Machine }},
		{Transport: verbs}, // without a library or a device it says so, and TCP is next
		{Transport: tcp},
	}
	want := c.set.Str(param.NCCLNet)
	if c.e.wrapNet != nil {
		for i := range builtin {
			builtin[i].Transport = c.e.wrapNet(builtin[i].Transport)
		}
	}
	var names []string
	for _, k := range builtin {
		if strings.EqualFold(k.Transport.Name(), want) {
			if want = k.Transport.Name(); want != "loop" { // which leads to no other process, whoever asks for it
				k.Between = nil
			}
			return []gin.Candidate{k}, nil
		}
		names = append(names, k.Transport.Name())
	}
	plugin.LogTo(c.e.Log())
	netplugin.Steps(c.e.front.Trace.Steps())
	plugins, err := netplugin.FromSettings(c.set, want, c.log)
	switch {
	case err != nil:
		return nil, err
	case want == "": // before the network of the library; in the list on all ranks, whatever plugins each has
		return slices.Insert(builtin, 2, gin.Candidate{Transport: plugins}), nil
	case plugins.Empty():
		return nil, xerr.New(xerr.InvalidUsage, "communicator init", "%s names no network that there is", c.set.Describe(param.NCCLNet)).
			WithHint("unset NCCL_NET, or name one of %s, or a plugin that NCCL_NET_PLUGIN loads", strings.Join(names, ", "))
	}
	return []gin.Candidate{{Transport: plugins}}, nil
}

// ownMachine tells machines, and network namespaces of one, apart. It only saves tries that cannot succeed and decides no more:
// what ranks reach they prove.
func ownMachine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, _ := os.Readlink("/proc/self/ns/net")
	return strings.TrimSpace(string(boot)) + " " + ns
}

// netSecret authenticates the connections of this communicator.
func (c *Comm) netSecret() transport.Secret {
	m := hmac.New(sha256.New, c.secret)
	m.Write([]byte("gccl network secret"))
	return transport.Secret(m.Sum(nil))
}

// disconnect tells the remote ranks that this one leaves, and ends the network. Preconditions: nothing is in flight.
func (c *Comm) disconnect() {
	if c.dev != nil {
		c.dev.Close()
		c.dev = nil
	}
	c.closeCard()
	if c.net == nil {
		return
	}
	c.net.Leave(leaveWait)
	c.net.Close() // takes the port with it
	c.net = nil
}

// lostConnections latches connections that have failed while their rank is said to live.
func (c *Comm) lostConnections() {
	if c.net == nil {
		return
	}
	for _, f := range c.net.Faults(faultDelay) {
		c.peerFailed(f.Rank, xerr.New(xerr.Remote, "network", "cannot be reached any more: %s", f.Text))
	}
}

// shareWindow makes a window known to the networks. All ranks succeed or none.
func (c *Comm) shareWindow(w control.Window, rec *window) error {
	err := c.shareWith(c.net, "net", w, rec)
	if err == nil {
		err = c.shareWith(c.dev, "device", w, rec)
	}
	return err
}

// mapForKernels is shareWith for windows of GPU memory, which all ranks of the host have mapped. One without a place for kernels is none of
// theirs. Local: the ranks have agreed on all that it needs.
func (c *Comm) mapForKernels(g *gin.Gin, w control.Window) error {
	if flat, _ := w.Flat(); flat == 0 {
		return nil
	}
	if err := g.AddMapped(w.Pointer()); err != nil {
		return err
	}
	w.SetKeys(g.Keys(c.ctl.NumberOf(w)))
	return nil
}

func (c *Comm) shareWith(g *gin.Gin, name string, w control.Window, rec *window) error {
	if g == nil {
		return nil
	}
	if d := c.device(); d != nil && g == c.dev {
		return c.mapForKernels(g, w)
	}
	number := uint32(rec.seq)
	blobs, err := g.AddWindow(number, rec.buff, rec.size)
	parts, gerr := c.gatherAll(c.ctx, fmt.Sprintf("window %s %d", name, rec.seq), gin.PackWindow(blobs, err))
	if err == nil {
		err = gerr
	}
	for r := 0; err == nil && r < len(parts); r++ {
		var list [][]byte
		if list, err = gin.UnpackWindow(parts[r]); err != nil {
			err = xerr.Wrap(xerr.System, "window", err, "%s", c.who(r))
		} else if r != c.rank && g.Transport(r) != "" {
			err = g.ImportWindow(number, r, list)
		}
	}
	if err != nil {
		g.DropWindow(number)
	} else if g == c.dev {
		w.SetKeys(g.Keys(number))
	}
	return err
}
