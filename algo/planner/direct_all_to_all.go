package planner

import "github.com/gccl/gccl/algo/plan"

// directAllToAll: every rank pulls its part from every rank, beginning with itself so that readers spread out.
func directAllToAll(e ends) *plan.Plan {
	p := e.start(plan.AllToAll, Direct, e.n, e.n)
	p.Steps = 2
	peer := e.from(e.rank)
	work := loop(e.n, move(at(plan.Send, peer, plan.Const(e.rank)), e.mine(plan.Recv, peer)))
	p.Ops = join(e.stageOthers(), allReady(), work, allDone())
	return p
}
