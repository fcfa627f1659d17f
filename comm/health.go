package comm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gccl/gccl/device/host/control"
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
	// After finalize or revoke nothing waits for a peer any more, and the communicator must stay destroyable.
	if gone || rank == c.rank || c.ctl.State() != control.Ready {
		return
	}
	text := c.who(rank) + " " + c.fate(rank, err)
	if c.ctl.Latch(xerr.Remote, text) {
		c.log.Error(xlog.Init, "%s", text)
	}
}

// fate is what happened to a rank, as the end of a sentence that begins with its name.
func (c *Comm) fate(rank int, err error) string {
	var told *xerr.Error
	if !errors.As(err, &told) || told.Text == "" {
		return fmt.Sprintf("has failed: %v", err)
	}
	m := c.group.Member(rank)
	if rest, ok := strings.CutPrefix(told.Text, fmt.Sprintf("rank %d (%s, pid %d) ", rank, m.Host, m.PID)); ok {
		return rest
	}
	return "has failed: " + told.Text
}
