package planner

import "github.com/gccl/gccl/algo/plan"

// directAllGather: every rank pulls from every rank, beginning with itself so that readers spread out.
func directAllGather(e ends) *plan.Plan {
	p := e.start(plan.AllGather, Direct, 1, e.n)
	p.Steps = 2
	peer := e.from(e.rank)
	work := loop(e.n, move(at(plan.Send, peer, plan.Const(0)), e.mine(plan.Recv, peer)))
	p.Ops = join(e.stageWhole(), allReady(), work, allDone())
	return p
}
