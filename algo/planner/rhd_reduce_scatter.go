package planner

import "github.com/gccl/gccl/algo/plan"

// rhdReduceScatter: chunks are reduced by halving; a core rank ends with its own chunk and that of its extra rank.
func rhdReduceScatter(e ends) *plan.Plan {
	p := e.start(plan.ReduceScatter, RHD, e.n, 1)
	h := newHalving(e, e.n)
	h.connect(p, true, false, true, true)
	recv := e.mine(plan.Recv, plan.Const(0))
	if e.rank >= h.core {
		p.Ops = join(e.open(p), h.feed(), through(plan.Const(e.rank), spread(h.w.get(tagPost, false), recv)))
		return p
	}
	p.Ops = join(e.open(p), h.reduceDown(func(c plan.Affine) plan.Ref {
		if c.Base >= h.core {
			return h.w.put(e.rank+h.core, tagPost, false)
		}
		return recv
	}))
	return p
}
