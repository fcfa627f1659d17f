package planner

import "github.com/gccl/gccl/algo/plan"

// ringAllReduce: parts are reduced around the ring, then passed around it.
func ringAllReduce(e ends) *plan.Plan {
	p := e.start(plan.AllReduce, Ring, e.n, e.n)
	part := plan.Const(e.rank)
	if e.n == 1 {
		p.Ops = join(e.open(p), do(finish([]plan.Ref{e.mine(plan.Send, part)}, e.mine(plan.Recv, part))))
		return p
	}
	in, out := e.ringLinks(p)
	p.Ops = join(e.open(p), e.ringReduce(in, out, e.mine(plan.Recv, part), out(false)), e.ringPass(in, out))
	return p
}
