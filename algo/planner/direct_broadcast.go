package planner

import "github.com/gccl/gccl/algo/plan"

// directBroadcast: every rank pulls from the root. Only the root has readers to wait for.
func directBroadcast(e ends) *plan.Plan {
	p := e.start(plan.Broadcast, Direct, 1, 1)
	p.Steps = 2
	whole := plan.Const(0)
	work := do(move(at(plan.Send, plan.Const(e.root), whole), e.mine(plan.Recv, whole)))
	if e.rank == e.root {
		p.Ops = join(e.stageWhole(), allReady(), work, allDone())
	} else {
		p.Ops = join(allReady(), work, do(signal(2)))
	}
	return p
}
