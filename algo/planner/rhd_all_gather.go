package planner

import "github.com/gccl/gccl/algo/plan"

// rhdAllGather: recursive doubling over the core; an extra rank gives its chunk first and gets the others last.
func rhdAllGather(e ends) *plan.Plan {
	p := e.start(plan.AllGather, RHD, 1, e.n)
	h := newHalving(e, e.n)
	h.connect(p, false, true, true, true)
	own := spread(e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(e.rank)))
	if e.rank >= h.core {
		own.Dst = append(own.Dst, h.w.put(e.rank-h.core, tagPre, false))
		p.Ops = join(e.open(p), through(plan.Const(e.rank), own), over(allBut(e.rank, e.n), func(c plan.Affine) plan.Op {
			return spread(h.w.get(tagPost, false), e.mine(plan.Recv, c))
		}))
		return p
	}
	p.Ops = join(e.open(p), do(own))
	if extra := e.rank + h.core; h.hasExtra(e.rank) {
		p.Ops = join(p.Ops, through(plan.Const(extra), spread(h.w.get(tagPre, false), e.mine(plan.Recv, plan.Const(extra)))))
	}
	p.Ops = join(p.Ops, h.passUp())
	if extra := e.rank + h.core; h.hasExtra(e.rank) {
		p.Ops = join(p.Ops, over(allBut(extra, e.n), func(c plan.Affine) plan.Op {
			return spread(e.mine(plan.Recv, c), h.w.put(extra, tagPost, false))
		}))
	}
	return p
}

// allBut is every chunk but one.
func allBut(c, n int) []interval { return []interval{{0, c}, {c + 1, n - c - 1}} }
