package planner

import (
	"slices"

	"github.com/gccl/gccl/algo/plan"
)

// binomialScatter: the chunks of a subtree come in the reverse order of labels, so that the largest subtrees, which have
// most to pass on, are served first and a rank's own chunk comes last.
func binomialScatter(e ends) *plan.Plan {
	p := e.start(plan.Scatter, Binomial, e.n, 1)
	b := newBinomial(e)
	b.wireDown(p)
	p.Ops = e.open(p)
	src := func(part plan.Affine) plan.Ref {
		if e.rank == e.root {
			return e.mine(plan.Send, part)
		}
		return b.w.get(0, false)
	}
	for _, c := range slices.Backward(b.children) {
		part := e.down(b.rankOf(c.Top + c.Size - 1))
		p.Ops = join(p.Ops, loop(c.Size, through(part, spread(src(part), b.w.put(b.rankOf(c.Top), 0, false)))...))
	}
	own := plan.Const(e.rank)
	p.Ops = join(p.Ops, through(own, spread(src(own), e.mine(plan.Recv, plan.Const(0)))))
	return p
}
