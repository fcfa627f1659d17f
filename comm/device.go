package comm

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

// meetDevice makes the device ready for the other ranks, whose areas are mapped.
func (c *Comm) meetDevice() error {
	d := c.device()
	if d == nil {
		return nil
	}
	hellos := make([][]byte, len(c.hellos))
	for r, h := range c.hellos {
		hellos[r] = h.Device
	}
	if len(hellos) == 0 {
		hellos = [][]byte{d.Hello(c.ctl)}
	}
	c.met = true
	return d.Meet(c.ctl, hellos)
}

// meetDevices is meetDevice on all ranks: all succeed, or all fail with what the first of them says.
func (c *Comm) meetDevices(ctx context.Context) error {
	if c.device() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, proofDeadline)
	defer cancel()
	mine := []byte{}
	err := c.meetDevice()
	if err != nil {
		mine = append([]byte{byte(xerr.CodeOf(err))}, c.who(c.rank)+": "+err.Error()...)
	}
	all, gerr := c.group.AllGatherTag(ctx, "device", mine)
	if gerr != nil {
		return gerr
	}
	for r, b := range all {
		if len(b) > 1 {
			return xerr.New(xerr.Code(b[0]), "communicator init", "%s", b[1:]).WithRank(r)
		}
	}
	return c.linkDevices(ctx)
}

// linkDevices lets kernels of all ranks wait for each other, if all can: otherwise one rank works for all, and the log says why.
func (c *Comm) linkDevices(ctx context.Context) error {
	d := c.device()
	linked, why, err := d.Link(c.ctl)
	c.spins, c.spinWhy = linked, why
	if !linked && err == nil { // the ranks agree without a word
		return nil
	}
	mine := []byte{}
	if err != nil {
		mine = []byte(c.who(c.rank) + ": " + err.Error())
	}
	all, err := c.group.AllGatherTag(ctx, "device link", mine)
	if err != nil {
		return err
	}
	for _, b := range all {
		if len(b) > 0 {
			d.Unlink(c.ctl)
			c.spins, c.spinWhy = false, string(b)
			break
		}
	}
	return nil
}

// leaveDevice ends what meetDevice began. It says whether the areas may go.
func (c *Comm) leaveDevice() bool {
	if !c.met {
		return true
	}
	c.met = false
	return c.device().Leave(c.ctl)
}

// registerDeviceWindow is RegisterWindow for memory of a GPU.
func (c *Comm) registerDeviceWindow(buff uintptr, size uint64, flags int, resource bool, seq uint64) (control.Window, error) {
	none := control.Window{}
	part, err := c.device().OfferWindow(c.ctl, buff, size)
	if err != nil {
		if c.group != nil { // the others hear of it when they call; this rank need not wait for them
			go func() { _, _, _ = c.exchangeParts(seq, nil, size, err) }()
		}
		return none, err
	}
	rec := &window{part: part, seq: seq}
	parts, sizes, err := c.exchangeParts(seq, part, size, nil)
	if err != nil {
		c.device().ReleaseWindow(c.ctl, none, part)
		return none, err
	}
	w := c.ctl.NewWindow(uint32(seq), buff, size, 0, flags, resource)
	for r, n := range sizes {
		w.SetPeer(r, 0, n)
	}
	err = c.device().MapWindow(c.ctl, w, parts)
	if c.group != nil {
		trouble := []byte{}
		if err != nil {
			trouble = []byte(fmt.Sprintf("%s: %v", c.who(c.rank), err))
		}
		all, gerr := c.group.AllGatherTag(c.ctx, fmt.Sprintf("window map %d", seq), trouble)
		for r := 0; gerr == nil && r < len(all); r++ {
			if len(all[r]) > 0 {
				gerr = xerr.New(xerr.System, "window", "%s", all[r]).WithRank(r)
			}
		}
		if err == nil {
			err = gerr
		}
	}
	if err != nil {
		c.releaseWindow(w, rec)
		return none, err
	}
	if flat, stride := w.Flat(); flat != 0 {
		w.SetFlat(flat, stride)
	}
	if err := c.shareWith(c.dev, "device", w, rec); err != nil {
		c.releaseWindow(w, rec)
		return none, err
	}
	return c.publishWindow(w, rec)
}

// exchangeParts tells all ranks of the part that each has in a window, or what kept any of them.
func (c *Comm) exchangeParts(seq uint64, part []byte, size uint64, err error) ([][]byte, []uint64, error) {
	if c.group == nil {
		return [][]byte{part}, []uint64{size}, err
	}
	msg := []byte{byte(xerr.CodeOf(err))}
	msg = binary.BigEndian.AppendUint64(msg, size)
	if err != nil {
		msg = appendText(msg, err.Error())
	} else {
		msg = append(msg, part...)
	}
	all, gerr := c.group.AllGatherTag(c.ctx, fmt.Sprintf("window %d", seq), msg)
	if gerr != nil {
		return nil, nil, gerr
	}
	if err != nil {
		return nil, nil, err
	}
	parts, sizes := make([][]byte, c.nranks), make([]uint64, c.nranks)
	for r, b := range all {
		rd := reader{b: b}
		code := xerr.Code(rd.u8())
		sizes[r] = rd.u64()
		if code != xerr.Success {
			return nil, nil, xerr.New(code, "window", "%s cannot register its part: %s", c.who(r), rd.text())
		}
		parts[r] = rd.b
		if rd.bad || len(rd.b) != len(part) || sizes[r] == 0 {
			return nil, nil, xerr.New(xerr.Remote, "window", "%s sent a window that is not one", c.who(r)).WithRank(r)
		}
	}
	return parts, sizes, nil
}

// fetchDeadline bounds how long a peer may take to hand out a descriptor; a thread of it need only run.
const fetchDeadline = 10 * time.Second

// FetchMemory asks the process of a rank for a descriptor of one of its device allocations.
func (c *Comm) FetchMemory(rank int, id uint64) (fd int, size uint64, err error) {
	const op = "memory of a peer"
	if rank < 0 || rank >= len(c.hellos) {
		return -1, 0, xerr.New(xerr.Internal, op, "rank %d is not in the communicator", rank)
	}
	ctx, cancel := context.WithTimeout(c.ctx, fetchDeadline)
	defer cancel()
	h := c.hellos[rank]
	fd, size, err = clique.Fetch(ctx, clique.Endpoint{Nonce: h.Nonce, Socket: h.Socket}, c.secret, id)
	if err != nil {
		return -1, 0, xerr.Wrap(xerr.System, op, err, "%s gives no descriptor of its allocation %d", c.who(rank), id).WithRank(rank)
	}
	return fd, size, nil
}
