package planner

import "github.com/gccl/gccl/algo/plan"

// binomialGather: a rank sends its own chunk up, then those of its subtree in the order of labels.
func binomialGather(e ends) *plan.Plan {
	p := e.start(plan.Gather, Binomial, 1, e.n)
	b := newBinomial(e)
	b.wireUp(p)
	own := e.mine(plan.Send, plan.Const(0))
	to, tag := b.parent()
	p.Ops = e.open(p)
	if e.rank == e.root {
		p.Ops = join(p.Ops, do(move(own, e.mine(plan.Recv, plan.Const(e.rank)))))
	} else {
		p.Ops = join(p.Ops, through(plan.Const(e.rank), spread(own, b.w.put(to, tag, false))))
	}
	for k, c := range b.children {
		part := e.from(b.rankOf(c.Top))
		dst := e.mine(plan.Recv, part)
		if e.rank != e.root {
			dst = b.w.put(to, tag, false)
		}
		p.Ops = join(p.Ops, loop(c.Size, through(part, spread(b.w.get(k, false), dst))...))
	}
	return p
}
