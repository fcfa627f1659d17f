package comm

import (
	"context"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/bootstrap"
)

// Defaults of what "auto" leaves to the library.
const (
	autoEagerBytes = 8 << 10
	pairEagerBytes = 64 << 10 // of two ranks: see autoEager
	autoStageBytes = 2 << 20
)

// spec is what a communicator is to become.
type spec struct {
	rank, nranks int
	cfg          Config
	material     []byte                        // known to all ranks before they meet
	join         func(j *bootstrap.JoinConfig) // says which room; nil for the only member of a child
	set          *param.Settings
}

// Init creates a communicator by ids (ncclCommInitRank). All ranks call it.
func (c *Comm) Init(nranks, rank int, ids [][bootstrap.IDBytes]byte, cfg Config) error {
	const op = "communicator init"
	if nranks < 1 || rank < 0 || rank >= nranks {
		return c.failed(xerr.New(xerr.InvalidArgument, op, "rank %d of %d ranks: the rank must be from 0 to nranks-1", rank, nranks))
	}
	if len(ids) < 1 || len(ids) > nranks {
		return c.failed(xerr.New(xerr.InvalidArgument, op, "%d ids for %d ranks: there must be 1 to nranks", len(ids), nranks))
	}
	set, err := c.e.settings()
	if err != nil {
		return c.failed(err)
	}
	// The first id alone serves: its room takes as many ranks as there are (all ranks have the same list).
	id := bootstrap.ID(ids[0])
	if text := set.Str(param.NCCLCommID); text != "" {
		if id, err = bootstrap.StaticID(text); err != nil {
			return c.failed(err)
		}
	}
	return c.build(spec{rank: rank, nranks: nranks, cfg: cfg, set: set, material: id[:],
		join: func(j *bootstrap.JoinConfig) { j.ID = id }})
}

// build takes a communicator from nothing to ready. On failure everything is given back and the state is Failed.
func (c *Comm) build(s spec) error {
	c.Hold()
	defer c.Release()
	c.rank, c.nranks, c.cfg, c.set = s.rank, s.nranks, s.cfg, s.set
	if c.log != nil {
		c.log = c.log.WithRank(s.rank)
	}
	c.secret = secretFor(s.material)
	c.eager = uint64(s.set.IntOr(param.GCCLEagerBytes, autoEager(s.nranks)))
	c.stage = uint64(s.set.IntOr(param.GCCLStageBytes, autoStageBytes))
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.e.joinTimeout(s.set))
	defer cancel()
	err := c.establish(ctx, s)
	if err == nil {
		err = c.learnMachine(ctx)
	}
	if err == nil {
		err = c.attachProbe(ctx)
	}
	if err == nil {
		err = context.Cause(c.ctx)
	}
	if err != nil {
		return c.failed(err)
	}
	if !c.ctl.SwapState(control.Init, control.Ready) {
		return c.failed(xerr.New(xerr.InvalidUsage, "communicator init", "the communicator was aborted meanwhile"))
	}
	c.e.live.add(c)
	if c.group != nil {
		c.group.OnFailure(c.peerFailed)
		c.e.watch.add(c)
		c.e.ends.add(c)
	}
	c.log.Info(xlog.Init, "communicator ready: rank %d of %d", c.rank, c.nranks)
	if c.device() != nil {
		c.log.Info(xlog.Init, "%s", c.executor())
	}
	if c.cfg.SplitShare != 0 || c.cfg.ShrinkShare != 0 {
		c.log.Info(xlog.Init, "splitShare %d and shrinkShare %d have no effect in host mode: a child has an abort word and scratch of its own", c.cfg.SplitShare, c.cfg.ShrinkShare)
	}
	return nil
}

// failed gives back what creation has taken.
func (c *Comm) failed(err error) error {
	c.withdraw()
	c.leaveDevice()
	if c.group != nil {
		c.group.Abort(err)
		c.group = nil
	}
	c.disconnect()
	c.detachProbe(true)
	c.unmapPeers()
	c.freeArea()
	c.ctl.Release()
	c.ctl.SetState(control.Failed)
	return err
}

func (c *Comm) establish(ctx context.Context, s spec) error {
	c.findCard()
	c.identify(s, s.nranks == 1, true)
	if err := c.ctl.AllocArrays(s.nranks); err != nil {
		return err
	}
	err := c.possible()
	if err == nil {
		err = c.findPlugins()
	}
	if err == nil {
		err = c.chooseMethods(false)
	}
	if s.join == nil { // the only member of a child
		c.setLimits()
		if err == nil {
			err = c.meetDevice()
		}
		return err
	}
	wishErr := err
	svc, err := c.e.service(s.set)
	if err != nil {
		return err
	}
	h := &hello{Version: APIVersion, Build: c.e.build, HostID: s.set.Str(param.NCCLHostid),
		NoShare: s.set.Bool(param.NCCLShmDisable), CPUs: ownCPUs(), Machine: ownMachine(), Topology: c.wantsTopology(), Trace: c.wantsTrace(), NoCard: c.noCard, Agree: append(agreeing(s.set), c.tuningPair(), c.tunerPair(), pair{"the device kind", c.deviceName()})}
	if d := c.device(); d != nil && err == nil {
		h.Device = d.Hello(c.ctl)
	}
	err = wishErr
	if err == nil && s.nranks > 1 {
		if err = enoughFiles(); err != nil {
			c.e.spare.release() // to tell the others
			defer c.e.spare.fill()
		} else {
			err = c.prepareArea(h)
		}
	}
	if err != nil { // told to all ranks instead of leaving them waiting
		h.Trouble, h.TroubleCode = err.Error(), xerr.CodeOf(err)
	}
	jc := bootstrap.JoinConfig{Rank: s.rank, NRanks: s.nranks, Hello: h.encode(), Timeout: c.e.joinTimeout(s.set)}
	s.join(&jc)
	g, err := svc.Join(ctx, jc)
	if err != nil {
		return err
	}
	if s.nranks == 1 {
		_ = g.Close() // it only used up the id
		if wishErr != nil {
			return wishErr
		}
		c.setLimits()
		return c.meetDevice()
	}
	c.group = g
	g.OnMessage(lateTag, c.hear)
	if err := c.readHellos(); err != nil {
		return err
	}
	if err := disagreement(c.hellos); err != nil {
		return err
	}
	c.learnCards()
	if err := c.meet(ctx); err != nil {
		return err
	}
	if err := c.meetDevices(ctx); err != nil {
		return err
	}
	if c.device() == nil { // a GPU's memory is asked for later, one allocation at a time
		c.withdraw()
	}
	shared := c.crowded()
	if err := c.connect(ctx, shared); err != nil {
		return err
	}
	if err := c.chooseMethods(shared); err != nil {
		return err
	}
	if err := c.askTuner(ctx); err != nil {
		return err
	}
	c.identify(s, c.allHere(), shared)
	c.setLimits()
	return nil
}

// identify stores what the front reads of a communicator's identity.
func (c *Comm) identify(s spec, oneProcess, crowded bool) {
	spin, yield := waitPolicy(s.set, crowded)
	if choice, err := c.ginChoice(true); err == nil { // otherwise there is no GIN, and who asks for it hears why
		c.ctl.SetGinType(choice.Type())
	}
	copies, _ := c.byCopies()
	c.ctl.SetIdentity(control.Identity{
		Core: c.ctl.Core(), Rank: s.rank, NRanks: s.nranks, Blocking: s.cfg.Blocking != 0,
		Check: checksBuffers(s.set), NoOneSided: s.cfg.NumRmaCtx == 0, OneProcess: oneProcess, Crowded: crowded,
		DeviceAPI: c.deviceAPI() == nil, Copies: copies, Spin: c.wantsSpin(), LSASize: c.lsaSize(s.nranks),
		SpinNs: spin, YieldNs: yield, LateNs: uint64(s.set.Duration(param.GCCLLate)),
	})
}

// waitPolicy: where every rank has a CPU a wait spins, else it yields at once (numbers are guesses to be measured).
func waitPolicy(s *param.Settings, crowded bool) (spinNs, yieldNs uint32) {
	spin, yield := int64(50), int64(2000)
	if crowded {
		spin, yield = 0, 2000
	}
	return uint32(min(s.IntOr(param.GCCLSpinUs, spin)*1000, 1<<32-1)), uint32(min(s.IntOr(param.GCCLYieldUs, yield)*1000, 1<<32-1))
}

// prepareArea allocates this rank's area and makes this process serve its arena.
func (c *Comm) prepareArea(h *hello) error {
	a, err := arena.Process()
	if err != nil {
		return err
	}
	c.arena = a
	reapAreas()
	section := uint64(0)
	if d := c.device(); d != nil {
		section = d.Section(c.nranks)
	}
	c.ctl.SetGeometry(c.eager, c.stage, section)
	size := control.AreaSize(c.nranks, c.eager, c.stage, section)
	if c.area, err = a.Alloc(size); err != nil {
		return err
	}
	at, err := clique.Offer(c.secret)
	if err != nil {
		return err
	}
	c.offer = true
	h.Nonce, h.Socket = at.Nonce, at.Socket
	h.AreaOffset, h.AreaSize = c.area.Offset, size
	c.ctl.SetSelf(a.Base()+uintptr(c.area.Offset), a.Base(), a.Size())
	c.ctl.InitArea()
	return nil
}

func (c *Comm) withdraw() {
	if c.offer {
		clique.Withdraw(c.secret)
		c.offer = false
	}
}

func (c *Comm) readHellos() error {
	for r, b := range c.group.Hellos() {
		h, err := decodeHello(b)
		if err != nil {
			return xerr.Wrap(xerr.InvalidUsage, "communicator init", err, "the hello of %s is not understood", c.who(r)).WithRank(r).
				WithHint("load the same library on all ranks")
		}
		c.hellos = append(c.hellos, h)
	}
	for r, h := range c.hellos {
		if h.Trouble != "" {
			code := h.TroubleCode
			if code <= xerr.Success || code > xerr.Timeout {
				code = xerr.System
			}
			return xerr.New(code, "communicator init", "%s: %s", c.who(r), h.Trouble).WithRank(r)
		}
	}
	return nil
}

// allHere says whether all ranks are threads of this process.
func (c *Comm) allHere() bool {
	for _, h := range c.hellos {
		if h.Nonce != c.arena.Nonce() {
			return false
		}
	}
	return true
}
