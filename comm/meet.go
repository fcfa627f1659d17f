package comm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// proofDeadline bounds each step of the proof; all ranks are known to be alive when it begins.
const proofDeadline = 30 * time.Second

const noNetwork = "this version has no network path between ranks that cannot share memory: all ranks must run on one host, " +
	"in the same network namespace and as the same user"

// who names a rank for people.
func (c *Comm) who(r int) string {
	if c.group == nil {
		return joinName(r, c.nranks)
	}
	m := c.group.Member(r)
	return fmt.Sprintf("rank %d of %d (host %s, pid %d)", r, c.nranks, m.Host, m.PID)
}

// orders obeys what the user said about sharing memory. Every rank computes the same verdict from the same table.
func (c *Comm) orders() error {
	const op = "communicator init"
	if t := table(c.hellos, func(h *hello) string {
		if h.HostID == "" {
			return "unset"
		}
		return h.HostID
	}); t != "" {
		return xerr.New(xerr.InvalidUsage, op, "ranks cannot share memory because NCCL_HOSTID says that they are on different hosts: %s", t).
			WithHint("%s; unset NCCL_HOSTID", noNetwork)
	}
	for r, h := range c.hellos {
		if !h.NoShare {
			continue
		}
		for q, p := range c.hellos {
			if p.Nonce != h.Nonce {
				return xerr.New(xerr.InvalidUsage, op, "rank %d and rank %d cannot share memory because NCCL_SHM_DISABLE is 1 on rank %d", min(r, q), max(r, q), r).
					WithHint("%s; unset NCCL_SHM_DISABLE", noNetwork)
			}
		}
	}
	return nil
}

// meet maps the areas of all ranks and proves that stores arrive: every rank stores a pattern in every peer's area, and
// looks for those of its peers in its own. Then all ranks learn what any of them has found.
func (c *Comm) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofDeadline)
	defer cancel()
	trouble := map[int]string{}
	for r := range c.nranks {
		if err := c.reach(ctx, r); err != nil {
			trouble[r] = err.Error()
		} else if r != c.rank {
			c.ctl.WriteProof(r, c.pattern(c.rank, r))
		}
	}
	if err := c.verdict(ctx, "clique map", trouble); err != nil {
		return err
	}
	for r := range c.nranks {
		if r == c.rank {
			continue
		}
		if got, want := c.ctl.TakeProof(r), c.pattern(r, c.rank); got != want {
			trouble[r] = fmt.Sprintf("its store did not arrive in the shared memory: %#x instead of %#x", got, want)
		}
	}
	return c.verdict(ctx, "clique proof", trouble)
}

// reach maps the area of a rank into this process.
func (c *Comm) reach(ctx context.Context, r int) error {
	if c.peers == nil {
		c.peers = make([]*clique.Peer, c.nranks)
	}
	h := c.hellos[r]
	base, size, same := c.arena.Base(), c.arena.Size(), h.Nonce == c.arena.Nonce()
	if !same {
		p, err := clique.Acquire(ctx, clique.Endpoint{Nonce: h.Nonce, Socket: h.Socket}, c.secret)
		if err != nil {
			return err
		}
		c.peers[r] = p
		base, size = p.Base, p.Size
	}
	if h.AreaOffset%4096 != 0 || h.AreaOffset > size || h.AreaSize > size-h.AreaOffset {
		return xerr.New(xerr.Remote, "shared memory", "its area of %d bytes at %d is outside its arena of %d bytes", h.AreaSize, h.AreaOffset, size)
	}
	c.ctl.SetPeer(r, base+uintptr(h.AreaOffset), base, same)
	return c.ctl.CheckArea(r)
}

// pattern is what one rank stores in another's area; only members can compute it.
func (c *Comm) pattern(from, to int) uint64 {
	m := hmac.New(sha256.New, c.secret)
	_, _ = fmt.Fprintf(m, "proof %d %d", from, to)
	return binary.BigEndian.Uint64(m.Sum(nil)) | 1
}

// verdict gathers what every rank could not reach. All ranks return the same.
func (c *Comm) verdict(ctx context.Context, tag string, trouble map[int]string) error {
	var mine []string
	for r := range c.nranks {
		if t, ok := trouble[r]; ok {
			mine = append(mine, fmt.Sprintf("%s cannot reach %s: %s", c.who(c.rank), c.who(r), t))
		}
	}
	text := strings.Join(mine, "; ")
	if len(text) > maxHelloText {
		text = text[:maxHelloText]
	}
	all, err := c.group.AllGatherTag(ctx, tag, []byte(text))
	if err != nil {
		return err
	}
	var said []string
	for _, b := range all {
		if len(b) > 0 {
			said = append(said, string(b))
		}
	}
	if len(said) == 0 {
		return nil
	}
	c.log.Warn(xlog.SHM, "%s", strings.Join(said, "; "))
	first := said[0]
	if n := len(said) - 1; n > 0 {
		first += fmt.Sprintf(" (and %d more ranks report such trouble)", n)
	}
	return xerr.New(xerr.System, "communicator init", "ranks cannot share memory: %s", first).WithHint("%s", noNetwork)
}
