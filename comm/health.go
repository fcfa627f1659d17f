package comm

import (
	"fmt"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// peerFailed is called from the bootstrap for every rank that has failed. The first cause is latched, which ends every
// wait of this rank.
func (c *Comm) peerFailed(rank int, err error) {
	c.mu.Lock()
	gone := c.gone
	c.dead[rank] = true
	c.mu.Unlock()
	if gone || rank == c.rank {
		return
	}
	text := fmt.Sprintf("%s has failed: %v", c.who(rank), err)
	if c.ctl.Latch(xerr.Remote, text) {
		c.log.Error(xlog.Init, "%s", text)
	}
}
