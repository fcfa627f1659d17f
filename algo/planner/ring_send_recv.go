package planner

import "github.com/gccl/gccl/algo/plan"

// ringSendRecv: a chain of two.
func ringSendRecv(e ends) *plan.Plan {
	p := e.start(plan.SendRecv, Ring, 1, 1)
	w := e.chainLinks(p, e.root)
	p.Ops = e.open(p)
	src, dst := e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(0))
	if e.n > 1 && e.rank == e.root {
		dst = w.put(1-e.root, 0, false)
	} else if e.n > 1 {
		src = w.get(0, false)
	}
	p.Ops = join(p.Ops, through(plan.Const(0), spread(src, dst)))
	return p
}
