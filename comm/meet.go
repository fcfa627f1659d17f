package comm

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// proofDeadline bounds each step of the proof; all ranks are known to be alive when it begins.
const proofDeadline = 30 * time.Second

// who names a rank for people.
func (c *Comm) who(r int) string {
	if c.group == nil {
		return joinName(r, c.nranks)
	}
	m := c.group.Member(r)
	return fmt.Sprintf("rank %d of %d (host %s, pid %d)", r, c.nranks, m.Host, m.PID)
}

// allowed says whether the user lets two ranks share memory. Every rank computes the same from the same table.
func (c *Comm) allowed(a, b int) bool {
	p, q := c.hellos[a], c.hellos[b]
	return p.HostID == q.HostID && (p.Nonce == q.Nonce || !p.NoShare && !q.NoShare)
}

// meet finds this rank's clique: it maps the areas of all ranks that may share memory with it and proves that stores arrive. Every
// rank stores a pattern in every area that it has mapped, and looks for those of its peers in its own. From what any
// of them has found, all ranks compute the same cliques.
func (c *Comm) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofDeadline)
	defer cancel()
	reached, trouble := make([]byte, c.nranks), map[int]string{}
	for r := range c.nranks {
		if !c.allowed(c.rank, r) {
			continue
		}
		if err := c.reach(ctx, r); err != nil {
			trouble[r] = err.Error()
			continue
		}
		reached[r] = 1
		if r != c.rank {
			c.ctl.WriteProof(r, c.pattern(c.rank, r))
		}
	}
	all, err := c.findings(ctx, "clique map", reached)
	if err != nil {
		return err
	}
	for r := range c.nranks {
		if r == c.rank || reached[r] == 0 {
			continue
		}
		if all[r][c.rank] == 0 {
			reached[r] = 0
			trouble[r] = "it cannot reach this rank"
		} else if got, want := c.ctl.TakeProof(r), c.pattern(r, c.rank); got != want {
			reached[r] = 0
			trouble[r] = fmt.Sprintf("its store did not arrive in the shared memory: %#x instead of %#x", got, want)
		}
	}
	if all, err = c.findings(ctx, "clique proof", reached); err != nil {
		return err
	}
	if of := cliques(all); slices.Max(of) > 0 {
		c.cliques = plan.CliquesOf(of)
	}
	for r := range c.nranks {
		if r == c.rank {
			continue
		}
		if c.remote(r) && c.peers[r] != nil {
			c.peers[r].Release()
			c.peers[r] = nil
		}
		if text := trouble[r]; text != "" {
			say := c.log.Info
			if c.hellos[r].Machine == c.hellos[c.rank].Machine { // where it was to be expected
				say = c.log.Warn
			}
			say(xlog.SHM, "%s does not share memory with %s: %s", c.who(c.rank), c.who(r), text)
		}
	}
	first := c.rank
	for r := range c.nranks {
		if !c.remote(r) {
			first = min(first, r)
		}
	}
	c.ctl.SetSleepers(first)
	return nil
}

// remote says whether a rank is reached through the network.
func (c *Comm) remote(r int) bool { return c.apart(c.rank, r) }

// apart says whether two ranks are in different cliques.
func (c *Comm) apart(a, b int) bool {
	k, _ := c.cliques.Of(a)
	l, _ := c.cliques.Of(b)
	return k != l
}

// findings exchanges whom every rank reaches.
func (c *Comm) findings(ctx context.Context, tag string, mine []byte) ([][]byte, error) {
	all, err := c.group.AllGatherTag(ctx, tag, mine)
	if err != nil {
		return nil, err
	}
	for r, b := range all {
		if len(b) != c.nranks {
			return nil, xerr.New(xerr.Remote, "communicator init", "%s sent %d bytes instead of %d (%s)", c.who(r), len(b), c.nranks, tag).WithRank(r)
		}
	}
	return all, nil
}

// cliques gives every rank the lowest rank of its clique: a rank joins the first clique all of whose members it reaches and who reach it.
func cliques(reached [][]byte) []int {
	of := make([]int, len(reached))
	members := map[int][]int{}
	for r := range reached {
		of[r] = r
		for first := 0; first < r && of[r] == r; first++ {
			ok := len(members[first]) > 0
			for _, m := range members[first] {
				ok = ok && reached[r][m] != 0 && reached[m][r] != 0
			}
			if ok {
				of[r] = first
			}
		}
		members[of[r]] = append(members[of[r]], r)
	}
	return of
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
