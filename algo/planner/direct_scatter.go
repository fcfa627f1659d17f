package planner

import "github.com/gccl/gccl/algo/plan"

// directScatter: every rank pulls its part from the root. Only the root has readers to wait for.
func directScatter(e ends) *plan.Plan {
	p := e.start(plan.Scatter, Direct, e.n, 1)
	p.Steps = 2
	work := do(move(at(plan.Send, plan.Const(e.root), plan.Const(e.rank)), e.mine(plan.Recv, plan.Const(0))))
	if e.rank == e.root {
		p.Ops = join(e.stageOthers(), allReady(), work, allDone())
	} else {
		p.Ops = join(allReady(), work, do(signal(2)))
	}
	return p
}
