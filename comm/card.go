package comm

import (
	"fmt"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/ib"
)

// findCard opens a card whose queues kernels can write, if the user's wishes lead to one. What is in the way is no error: it goes into the choice
// of kernels' backends, on all ranks (learnCards).
func (c *Comm) findCard() {
	if !c.wishes().WantsCard() {
		return
	}
	if c.device() != nil {
		c.noCard = "kernels on GPUs cannot use a card's queues in this version"
		return
	}
	ring := ib.RingAuto
	if c.set.Str(param.GCCLGinNIC) == gin.CardRelayed {
		ring = ib.RingCPU
	}
	verbs, err := ib.FromSettings(c.set)
	if err == nil {
		c.card, err = verbs.OpenCard(ring)
	}
	if err != nil {
		c.noCard = err.Error()
	}
}

// learnCards knows of all ranks what findCard came to: a card is used by all or none.
func (c *Comm) learnCards() {
	for r, h := range c.hellos {
		if h.NoCard != "" {
			c.noCard = fmt.Sprintf("%s: %s", c.who(r), h.NoCard)
			c.closeCard()
			return
		}
	}
}

// relayed says whether the CPU rings the card's doorbells, and why.
func (c *Comm) relayed() (why string, yes bool) {
	if c.card == nil {
		return "", false
	}
	if why, yes = c.card.Relayed(); why != "" {
		why = ": " + why
	}
	return why, yes
}

// closeCard ends it. Preconditions: no queue and no window of it is left; those of aborted kernels stay for ever, and the card with them.
func (c *Comm) closeCard() {
	if c.card != nil && !c.cardInUse {
		c.card.Close()
	}
	c.card = nil
}

// agreeOnContexts tells all ranks what they need to know of this one's queues, or why it has none, and connects them. Nobody's kernels may use
// them before all are connected.
func (c *Comm) agreeOnContexts(w control.Window, dev *gin.Device, err error) error {
	tag := fmt.Sprintf("device contexts %d", c.ctl.NumberOf(w))
	var addresses []byte
	if err == nil {
		addresses = dev.Addresses()
	}
	all, err := c.tellAll(tag, addresses, err)
	if err != nil || addresses == nil {
		return err
	}
	for r := 0; err == nil && r < len(all); r++ {
		err = dev.Join(r, all[r][1:])
	}
	return c.agreeOn(tag+" connected", err)
}

// tellAll is an all-gather of what each rank has, or of what kept it: an error of one is an error of all.
func (c *Comm) tellAll(tag string, payload []byte, err error) ([][]byte, error) {
	msg := append([]byte{0}, payload...)
	if err != nil {
		msg = append([]byte{1}, err.Error()...)
	}
	all, gerr := c.gatherAll(c.ctx, tag, msg)
	if err == nil {
		err = gerr
	}
	for r := 0; err == nil && r < len(all); r++ {
		if len(all[r]) == 0 || all[r][0] != 0 {
			err = xerr.New(xerr.System, "device communicator", "%s: %s", c.who(r), all[r][min(1, len(all[r])):])
		}
	}
	return all, err
}

func (c *Comm) agreeOn(tag string, err error) error {
	_, err = c.tellAll(tag, nil, err)
	return err
}
