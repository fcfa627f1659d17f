package planner

import "github.com/gccl/gccl/algo/plan"

// eagerAllToAll: every rank copies its part from all other eager slots; its own part does not pass through one.
func eagerAllToAll(e ends) *plan.Plan {
	p := e.start(plan.AllToAll, Eager, e.n, e.n)
	p.Steps = 1
	own, peer := plan.Const(e.rank), e.from(e.rank+1)
	work := loop(e.n-1, move(at(plan.Eager, peer, own), e.mine(plan.Recv, peer)))
	p.Ops = join(e.offerOthers(), do(signal(1), move(e.mine(plan.Send, own), e.mine(plan.Recv, own)), waitAll(1)), work)
	return p
}
