package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// ringReduce: parts are reduced down the chain of ranks that ends at the root.
func ringReduce(e ends) *plan.Plan {
	parts := e.chainParts()
	p := e.start(plan.Reduce, Ring, parts, parts)
	first := pattern.Next(e.root, e.n)
	w := e.chainLinks(p, first)
	var src []plan.Ref
	if e.rank != first {
		src = append(src, w.get(0, true))
	}
	src = append(src, e.mine(plan.Send, span(0)))
	op := finish(src, e.mine(plan.Recv, span(0)))
	if e.rank != e.root {
		op = fold(src, w.put(pattern.Next(e.rank, e.n), 0, true))
	}
	p.Ops = join(e.open(p), loop(parts, through(span(0), op)...))
	return p
}
