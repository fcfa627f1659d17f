package comm

import (
	"context"

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
	return nil
}

// leaveDevice ends what meetDevice began.
func (c *Comm) leaveDevice() {
	if c.met {
		c.met = false
		c.device().Leave(c.ctl)
	}
}
