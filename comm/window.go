package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/gin"
)

// windowAlign is what a window's place in its allocation must be a multiple of (NCCL 2.30.7, dev_runtime.cc).
const windowAlign = 4096

// window is one registered window of this rank.
type window struct {
	part []byte           // what the device offered; nil in host mode
	al   arena.Allocation // pinned, so that the memory is not used again under the window
	team *team            // nil with one rank
	seq  uint64
	buff uintptr // with size: this rank's part, in host mode
	size uint64

	contexts *gin.Device // of a device communicator whose resource window this is; nil without
}

// RegisterWindow makes memory of this process known to all ranks (ncclCommWindowRegister). All ranks call it, in the same
// order; sizes may differ. When any rank cannot, none does.
func (c *Comm) RegisterWindow(buff uintptr, size uint64, flags int) (control.Window, error) {
	return c.registerWindow(buff, size, flags, false)
}

// registerWindow is RegisterWindow. resource: it belongs to a device communicator and is none of the program's.
func (c *Comm) registerWindow(buff uintptr, size uint64, flags int, resource bool) (control.Window, error) {
	const op = "window"
	none := control.Window{}
	if err := c.usable(op); err != nil {
		return none, err
	}
	if !c.set.Bool(param.NCCLWinEnable) {
		c.noWindows()
		return none, nil
	}
	c.mu.Lock()
	c.winSeq++
	seq := c.winSeq
	c.mu.Unlock()
	if c.device() != nil {
		return c.registerDeviceWindow(buff, size, flags, resource, seq)
	}
	al, off, err := c.windowMemory(buff, size)
	if err != nil {
		// The others hear of it when they call; this rank need not wait for them to know that its argument is bad.
		if c.group != nil {
			go func() { _, _ = c.exchangeWindow(seq, off, size, err) }()
		}
		return none, err
	}
	all, gerr := c.exchangeWindow(seq, off, size, nil)
	if gerr != nil {
		return none, gerr
	}
	if err := arena.Existing().Pin(al); err != nil {
		return none, err
	}
	w := c.ctl.NewWindow(uint32(seq), buff, size, off, flags, resource)
	for r, p := range all {
		w.SetPeer(r, p.offset, p.size)
	}
	rec := &window{al: al, seq: seq, buff: buff, size: size}
	err = c.placeWindow(w, rec, buff, all)
	if err == nil {
		err = c.shareWindow(w, rec)
	}
	if err != nil {
		w.Free()
		_ = arena.Existing().Unpin(al)
		return none, err
	}
	return c.publishWindow(w, rec)
}

// publishWindow gives a window to the front, or everything back where there is no place for it.
func (c *Comm) publishWindow(w control.Window, rec *window) (control.Window, error) {
	c.mu.Lock()
	published := c.ctl.Publish(w)
	if published {
		c.windows[w] = rec
	}
	c.mu.Unlock()
	if d := c.device(); published && d != nil {
		if err := d.ShowWindow(c.ctl, w); err != nil {
			return control.Window{}, errors.Join(err, c.DeregisterWindow(w))
		}
	}
	if !published { // all ranks count alike, unless they have deregistered differently
		c.releaseWindow(w, rec)
		return control.Window{}, xerr.New(xerr.InvalidUsage, "window", "all %d windows of the communicator are in use", control.Windows).
			WithHint("deregister windows that are no longer needed")
	}
	return w, nil
}

// noWindows says once why there is no window where the user has switched windows off: the registration succeeds without
// one, as in NCCL, and programs go on with the plain buffer.
func (c *Comm) noWindows() {
	c.mu.Lock()
	first := !c.toldNoWindows
	c.toldNoWindows = true
	c.mu.Unlock()
	if first {
		c.log.Warn(xlog.Reg, "%s: buffers are not registered as windows", c.set.Describe(param.NCCLWinEnable))
	}
}

// windowMemory finds the allocation that holds the window.
func (c *Comm) windowMemory(buff uintptr, size uint64) (al arena.Allocation, off uint64, err error) {
	const op, remedy = "window", "allocate windows with ncclMemAlloc"
	bad := func(format string, args ...any) error {
		return xerr.New(xerr.InvalidArgument, op, format, args...).WithRank(c.rank).WithHint(remedy)
	}
	if buff == 0 || size == 0 {
		return al, 0, bad("a window of %d bytes at %#x is empty", size, buff)
	}
	a, ok := arena.Existing(), false
	if a != nil {
		al, ok = a.Lookup(buff)
	}
	if !ok {
		return al, 0, bad("the buffer at %#x is not memory of ncclMemAlloc", buff)
	}
	off = uint64(buff - a.Base())
	if in := off - al.Offset; in%windowAlign != 0 {
		return al, 0, bad("the buffer begins %d bytes into its allocation, which is not a multiple of %d", in, windowAlign)
	} else if size > al.Size-in {
		return al, 0, bad("the window of %d bytes ends behind its allocation of %d bytes", size, al.Size)
	}
	return al, off, nil
}

// placed is where a window is at a rank.
type placed struct{ offset, size uint64 }

// exchangeWindow tells all ranks where the window is at each, or what kept any of them.
func (c *Comm) exchangeWindow(seq, off, size uint64, err error) ([]placed, error) {
	if c.group == nil {
		return []placed{{off, size}}, err
	}
	msg := []byte{byte(xerr.CodeOf(err)), flag(c.hasNews())}
	msg = binary.BigEndian.AppendUint64(msg, off)
	msg = binary.BigEndian.AppendUint64(msg, size)
	if err != nil {
		msg = appendText(msg, err.Error())
	}
	parts, gerr := c.group.AllGatherTag(c.ctx, fmt.Sprintf("window %d", seq), msg)
	if gerr != nil {
		return nil, gerr
	}
	if err != nil {
		return nil, err
	}
	all := make([]placed, c.nranks)
	news := false
	for r, b := range parts {
		rd := reader{b: b}
		code := xerr.Code(rd.u8())
		news = rd.u8() != 0 || news
		all[r] = placed{rd.u64(), rd.u64()}
		if code != xerr.Success {
			return nil, xerr.New(code, "window", "%s cannot register its part: %s", c.who(r), rd.text())
		}
		limit := c.arena.Size()
		if c.remote(r) {
			limit = math.MaxUint64
		} else if p := c.peers[r]; p != nil {
			limit = p.Size
		}
		if p := all[r]; rd.bad || p.offset%windowAlign != 0 || p.size == 0 || p.offset > limit || p.size > limit-p.offset {
			return nil, xerr.New(xerr.Remote, "window", "%s sent a window outside its arena", c.who(r)).WithRank(r)
		}
	}
	if news { // all ranks are here, and know of it alike
		if _, err := c.reweigh(c.ctx, seq); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// placeWindow maps the window of all ranks into the team's flat range. All ranks succeed or none.
func (c *Comm) placeWindow(w control.Window, rec *window, buff uintptr, all []placed) error {
	if c.group == nil {
		w.SetFlat(buff, uint64(c.set.Size(param.GCCLLsaStride)))
		return nil
	}
	t, err := c.e.joinTeam(c)
	var flat uintptr
	if err == nil {
		if flat, err = t.place(c, rec.seq, all); err != nil {
			c.e.leaveTeam(t)
		}
	}
	if err == nil {
		rec.team = t
		w.SetFlat(flat, t.stride)
	}
	trouble := []byte{}
	if err != nil {
		trouble = []byte(fmt.Sprintf("%s: %v", c.who(c.rank), err))
	}
	parts, gerr := c.group.AllGatherTag(c.ctx, fmt.Sprintf("window flat %d", rec.seq), trouble)
	for r := 0; gerr == nil && r < len(parts); r++ {
		if len(parts[r]) > 0 {
			gerr = xerr.New(xerr.System, "window", "%s", parts[r])
		}
	}
	if err != nil {
		gerr = err // with its own code and remedy
	}
	if gerr != nil && rec.team != nil {
		rec.team.remove(rec.seq)
		c.e.leaveTeam(rec.team)
	}
	return gerr
}

// DeregisterWindow ends a window (ncclCommWindowDeregister). Local; the caller makes sure that nobody uses it any more.
func (c *Comm) DeregisterWindow(w control.Window) error {
	if w == (control.Window{}) {
		return nil
	}
	c.mu.Lock()
	rec := c.windows[w]
	if rec != nil {
		delete(c.windows, w)
		c.drop(w)
	}
	c.mu.Unlock()
	if rec == nil {
		return xerr.New(xerr.InvalidArgument, "window", "%p is not a window of this communicator", w.Pointer()).WithRank(c.rank).
			WithHint("windows belong to the communicator that registered them; each is deregistered once")
	}
	c.releaseWindow(w, rec)
	return nil
}

// drop takes a window from the program and from kernels.
func (c *Comm) drop(w control.Window) {
	if d := c.device(); d != nil {
		d.HideWindow(c.ctl, w) // before another window may take the slot
	}
	c.ctl.Drop(w)
}

func (c *Comm) releaseWindow(w control.Window, rec *window) {
	if rec.contexts != nil {
		rec.contexts.Close(c.aborting)
		c.cardInUse = c.cardInUse || c.aborting
	}
	for _, g := range []*gin.Gin{c.net, c.dev} {
		if g != nil {
			g.DropWindow(uint32(rec.seq))
		}
	}
	if rec.team != nil {
		rec.team.remove(rec.seq)
		c.e.leaveTeam(rec.team)
	}
	if rec.part != nil {
		c.device().ReleaseWindow(c.ctl, w, rec.part)
	} else {
		_ = arena.Existing().Unpin(rec.al)
	}
	w.Free()
}

// dropWindows ends the windows that are left at destroy.
func (c *Comm) dropWindows() {
	c.mu.Lock()
	left := c.windows
	c.windows = map[control.Window]*window{}
	for w := range left {
		c.drop(w)
	}
	c.mu.Unlock()
	for w, rec := range left {
		c.releaseWindow(w, rec)
	}
}
