package planner

import "github.com/gccl/gccl/algo/plan"

// ringAllGather: parts are passed around the ring.
func ringAllGather(e ends) *plan.Plan {
	p := e.start(plan.AllGather, Ring, 1, e.n)
	src, dst := e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(e.rank))
	if e.n == 1 {
		p.Ops = join(e.open(p), do(move(src, dst)))
		return p
	}
	in, out := e.ringLinks(p)
	p.Ops = join(e.open(p), through(plan.Const(e.rank), spread(src, dst, out(false))), e.ringPass(in, out))
	return p
}
