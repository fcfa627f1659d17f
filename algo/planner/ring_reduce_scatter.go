package planner

import "github.com/gccl/gccl/algo/plan"

// ringReduceScatter: parts are reduced around the ring.
func ringReduceScatter(e ends) *plan.Plan {
	p := e.start(plan.ReduceScatter, Ring, e.n, 1)
	dst := e.mine(plan.Recv, plan.Const(0))
	if e.n == 1 {
		p.Ops = join(e.open(p), do(finish([]plan.Ref{e.mine(plan.Send, plan.Const(0))}, dst)))
		return p
	}
	in, out := e.ringLinks(p)
	p.Ops = join(e.open(p), e.ringReduce(in, out, dst))
	return p
}
