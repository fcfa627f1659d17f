package planner

import "github.com/gccl/gccl/algo/plan"

// eagerAllGather: every rank copies from all eager slots, its own first.
func eagerAllGather(e ends) *plan.Plan {
	p := e.start(plan.AllGather, Eager, 1, e.n)
	p.Steps = 1
	peer := e.from(e.rank)
	work := loop(e.n, move(at(plan.Eager, peer, plan.Const(0)), e.mine(plan.Recv, peer)))
	p.Ops = join(e.offerWhole(), allReady(), work)
	return p
}
