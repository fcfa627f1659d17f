package comm

import (
	"math"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

// Count classes of the launch table.
const (
	classEager  = 0
	classDirect = 1
)

// methodOf is the method of each count class.
var methodOf = [...]string{classEager: planner.Eager, classDirect: planner.Direct}

// setLimits stores up to how many bytes each class is used. An eager slot takes a rank's whole send buffer, so where that
// has a part for every rank the limit, which counts one part, is smaller.
func (c *Comm) setLimits() {
	for coll := range control.NumColls {
		limit := c.eager
		switch plan.Coll(coll) {
		case plan.ReduceScatter, plan.AllToAll, plan.Scatter:
			limit /= uint64(c.nranks)
		}
		c.ctl.SetLimit(coll, classEager, limit)
		for k := classDirect; k < control.Classes; k++ {
			c.ctl.SetLimit(coll, k, math.MaxUint64)
		}
	}
}

// Plan answers a miss of the launch table: plans, lowers and publishes. Local: what it makes depends only on what all
// ranks know alike.
func (c *Comm) Plan(coll, class, root uint32) error {
	const op = "plan"
	if class >= uint32(len(methodOf)) || coll >= uint32(control.NumColls) || root >= uint32(c.nranks) {
		return xerr.New(xerr.Internal, op, "collective %d, class %d, root %d: no such plan", coll, class, root)
	}
	c.planMu.Lock()
	defer c.planMu.Unlock()
	if c.ctl.HasPlan(coll, class, root) {
		return nil
	}
	p, err := planner.Make(plan.Coll(coll), methodOf[class], c.nranks, c.rank, int(root))
	if err != nil {
		return xerr.Wrap(xerr.Internal, op, err, "no plan")
	}
	block, err := lowerPlan(p)
	if err != nil {
		return xerr.Wrap(xerr.Internal, op, err, "the plan cannot be lowered")
	}
	kept, err := c.ctl.AddPlan(coll, class, root, block)
	if err != nil {
		return err
	}
	c.planBytes += kept
	return nil
}
