package comm

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

// ShrinkAbort is NCCL_SHRINK_ABORT: end the parent's work first.
const ShrinkAbort = 1

// nextChild numbers the children of a communicator. All ranks make children in the same order, so the numbers agree.
func (c *Comm) nextChild() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children++
	return c.children
}

// childRoom is the room in which the members (ranks of c, in the order of the child) meet. It follows from what every
// member knows already: nobody has to be asked, so it also works when c has lost ranks.
func (c *Comm) childRoom(kind string, number uint64, members []int) bootstrap.Room {
	label := []byte(kind)
	label = binary.BigEndian.AppendUint64(label, number)
	for _, r := range members {
		label = binary.BigEndian.AppendUint32(label, uint32(r))
	}
	return c.group.Derive(label).At(c.group.ServiceAddrs(members[0]))
}

// buildChild makes child from members of c.
func (c *Comm) buildChild(child *Comm, kind string, number uint64, members []int, cfg Config) error {
	set, err := c.e.settings()
	if err != nil {
		return child.failed(err)
	}
	s := spec{rank: slices.Index(members, c.rank), nranks: len(members), cfg: cfg, set: set}
	if c.group != nil && len(members) > 1 {
		room := c.childRoom(kind, number, members)
		s.material = room.Secret[:]
		s.join = func(j *bootstrap.JoinConfig) { j.Room = &room }
	}
	return child.build(s)
}

// Split makes one child per colour (ncclCommSplit). All ranks of c call it, in the same order as other children; child is
// nil for a rank without colour.
func (c *Comm) Split(child *Comm, color, key int, cfg Config) error {
	const op, noColor = "split", -1
	fail := func(err error) error {
		if child != nil {
			return child.failed(err)
		}
		return err
	}
	// A revoked communicator can still have children: only its own operations have ended.
	if err := c.usable(op); err != nil && c.ctl.State() != control.Revoked {
		return fail(err)
	}
	if (child == nil) != (color == noColor) {
		return fail(xerr.New(xerr.Internal, op, "colour %d does not fit the place for the child", color))
	}
	number := c.nextChild()
	members := []int{0}
	if c.group != nil {
		var err error
		if members, err = c.exchangeColors(number, color, key); err != nil {
			return fail(err)
		}
	}
	if child == nil {
		return nil
	}
	return c.buildChild(child, fmt.Sprintf("split %d", color), number, members, cfg)
}

// exchangeColors returns the ranks with this rank's colour, by key and then by rank.
func (c *Comm) exchangeColors(number uint64, color, key int) ([]int, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.e.joinTimeout(c.set))
	defer cancel()
	mine := binary.BigEndian.AppendUint64(nil, number)
	mine = binary.BigEndian.AppendUint32(mine, uint32(int32(color)))
	mine = binary.BigEndian.AppendUint32(mine, uint32(int32(key)))
	all, err := c.group.AllGatherTag(ctx, "split", mine)
	if err != nil {
		return nil, err
	}
	keys := make([]int, len(all))
	var members []int
	for r, b := range all {
		if len(b) != 16 {
			return nil, xerr.New(xerr.Remote, "split", "%s sent a malformed colour", c.who(r)).WithRank(r)
		}
		if n := binary.BigEndian.Uint64(b); n != number {
			return nil, xerr.New(xerr.InvalidUsage, "split", "%s makes child %d of the communicator, this rank child %d", c.who(r), n, number).WithRank(r).
				WithHint("all ranks must call split, shrink and grow in the same order")
		}
		keys[r] = int(int32(binary.BigEndian.Uint32(b[12:])))
		if int(int32(binary.BigEndian.Uint32(b[8:]))) == color {
			members = append(members, r)
		}
	}
	sort.SliceStable(members, func(i, j int) bool { return keys[members[i]] < keys[members[j]] })
	return members, nil
}

// Shrink makes a child without some ranks (ncclCommShrink). Only the ranks that stay call it; it works when the others
// are dead and when that has made c fail.
func (c *Comm) Shrink(child *Comm, exclude []int, flags int, cfg Config) error {
	const op = "shrink"
	if flags&^ShrinkAbort != 0 {
		return child.failed(xerr.New(xerr.InvalidArgument, op, "flags are %#x: known is only NCCL_SHRINK_ABORT (%d)", flags, ShrinkAbort))
	}
	switch st := c.ctl.State(); st {
	case control.Ready, control.Revoked:
	default:
		return child.failed(c.usable(op))
	}
	out := map[int]bool{}
	for _, r := range exclude {
		if r == c.rank {
			return child.failed(xerr.New(xerr.InvalidArgument, op, "the list of excluded ranks holds the calling rank %d", r).
				WithHint("only the ranks that stay call ncclCommShrink"))
		}
		if r < 0 || r >= c.nranks {
			return child.failed(xerr.New(xerr.InvalidArgument, op, "excluded rank %d is not from 0 to %d", r, c.nranks-1))
		}
		out[r] = true
	}
	if len(out) == 0 {
		return child.failed(xerr.New(xerr.InvalidArgument, op, "no rank is excluded").WithHint("use ncclCommSplit to copy a communicator"))
	}
	var members []int
	for r := range c.nranks {
		if !out[r] {
			members = append(members, r)
		}
	}
	if flags&ShrinkAbort != 0 && c.ctl.State() == control.Ready {
		failed := c.ctl.Error() != xerr.Success
		if err := c.stopWork(op); err != nil {
			return child.failed(err)
		}
		if failed { // its waits must stay ended
			c.ctl.SetAborted(true)
		}
	}
	return c.buildChild(child, "shrink", c.nextChild(), members, cfg)
}

// GrowID makes the invitation for new ranks (ncclCommGetUniqueId). One rank of c calls it.
func (c *Comm) GrowID() ([bootstrap.IDBytes]byte, error) {
	const op = "grow id"
	if err := c.usable(op); err != nil {
		return bootstrap.ID{}, err
	}
	if c.set.Str(param.NCCLCommID) != "" {
		return bootstrap.ID{}, xerr.New(xerr.InvalidUsage, op, "NCCL_COMM_ID is set: a communicator with a fixed address cannot invite").
			WithHint("unset NCCL_COMM_ID")
	}
	svc, err := c.e.service(c.set)
	if err != nil {
		return bootstrap.ID{}, err
	}
	id, err := svc.NewID()
	if err != nil {
		return bootstrap.ID{}, err
	}
	c.mu.Lock()
	c.growID = id[:]
	c.mu.Unlock()
	return id, nil
}

// Grow makes a child with more ranks (ncclCommGrow). All ranks of c call it and keep their numbers; the new ranks call
// Init with the id. Ranks of c may have the id or not, one must.
func (c *Comm) Grow(child *Comm, nranks int, ids [][bootstrap.IDBytes]byte, cfg Config) error {
	const op = "grow"
	if nranks <= c.nranks {
		return child.failed(xerr.New(xerr.InvalidArgument, op, "nranks %d is not more than the %d of the communicator", nranks, c.nranks))
	}
	if err := c.usable(op); err != nil {
		return child.failed(err)
	}
	id, err := c.agreeID(ids)
	if err != nil {
		return child.failed(err)
	}
	set, err := c.e.settings()
	if err != nil {
		return child.failed(err)
	}
	return child.build(spec{rank: c.rank, nranks: nranks, cfg: cfg, set: set, material: id[:],
		join: func(j *bootstrap.JoinConfig) { j.ID = id }})
}

// agreeID gives all ranks the id that some of them have.
func (c *Comm) agreeID(ids [][bootstrap.IDBytes]byte) (bootstrap.ID, error) {
	const op = "grow"
	number := c.nextChild()
	c.mu.Lock()
	mine := c.growID
	c.growID = nil
	c.mu.Unlock()
	if len(ids) > 0 && ids[0] != (bootstrap.ID{}) {
		mine = slices.Clone(ids[0][:])
	}
	all := [][]byte{mine}
	if c.group != nil {
		ctx, cancel := context.WithTimeout(c.ctx, c.e.joinTimeout(c.set))
		defer cancel()
		var err error
		if all, err = c.group.AllGatherTag(ctx, fmt.Sprintf("grow %d", number), mine); err != nil {
			return bootstrap.ID{}, err
		}
	}
	found := -1
	for r, b := range all {
		switch {
		case len(b) == 0:
		case len(b) != bootstrap.IDBytes:
			return bootstrap.ID{}, xerr.New(xerr.Remote, op, "%s sent a malformed id", c.who(r)).WithRank(r)
		case found < 0:
			found = r
		case !slices.Equal(b, all[found]):
			return bootstrap.ID{}, xerr.New(xerr.InvalidArgument, op, "ranks %d and %d have different ids", found, r).
				WithHint("call ncclCommGetUniqueId on one rank only")
		}
	}
	if found < 0 {
		return bootstrap.ID{}, xerr.New(xerr.InvalidArgument, op, "no rank has an id").
			WithHint("call ncclCommGetUniqueId on one rank and give the id to the new ranks")
	}
	return bootstrap.ID(all[found]), nil
}
