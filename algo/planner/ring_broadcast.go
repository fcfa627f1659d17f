package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// ringBroadcast: parts go down the chain of ranks that begins at the root.
func ringBroadcast(e ends) *plan.Plan {
	parts := e.chainParts()
	p := e.start(plan.Broadcast, Ring, parts, parts)
	w := e.chainLinks(p, e.root)
	src, dst := e.mine(plan.Send, span(0)), []plan.Ref{e.mine(plan.Recv, span(0))}
	if e.rank != e.root {
		src = w.get(0, false)
	}
	if next := pattern.Next(e.rank, e.n); next != e.root {
		dst = append(dst, w.put(next, 0, false))
	}
	p.Ops = join(e.open(p), loop(parts, through(span(0), spread(src, dst...))...))
	return p
}
