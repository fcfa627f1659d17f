package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// rhdAllReduce: one chunk per core rank is reduced by halving, then passed on by doubling. Extra ranks get all
// chunks at the end.
func rhdAllReduce(e ends) *plan.Plan {
	core, _ := pattern.Core(e.n)
	p := e.start(plan.AllReduce, RHD, core, core)
	h := newHalving(e, core)
	h.connect(p, true, true, true, true)
	all := []interval{{0, core}}
	if e.rank >= core {
		p.Ops = join(e.open(p), h.feed(), over(all, func(c plan.Affine) plan.Op {
			return spread(h.w.get(tagPost, false), e.mine(plan.Recv, c))
		}))
		return p
	}
	result := func(c plan.Affine) plan.Ref { return e.mine(plan.Recv, c) }
	p.Ops = join(e.open(p), h.reduceDown(result), h.passUp())
	if h.hasExtra(e.rank) {
		p.Ops = join(p.Ops, over(all, func(c plan.Affine) plan.Op {
			return spread(e.mine(plan.Recv, c), h.w.put(e.rank+core, tagPost, false))
		}))
	}
	return p
}
