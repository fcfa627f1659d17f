package planner

import "github.com/gccl/gccl/algo/plan"

// directGather: the root pulls from every rank; the others wait for the root alone.
func directGather(e ends) *plan.Plan {
	p := e.start(plan.Gather, Direct, 1, e.n)
	p.Steps = 2
	if e.rank == e.root {
		peer := e.from(e.root)
		work := loop(e.n, move(at(plan.Send, peer, plan.Const(0)), e.mine(plan.Recv, peer)))
		p.Ops = join(allReady(), work, do(signal(2)))
	} else {
		p.Ops = join(e.stageWhole(), allReady(), do(signal(2), waitFor(2, e.root)))
	}
	return p
}
