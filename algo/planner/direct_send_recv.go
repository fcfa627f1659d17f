package planner

import "github.com/gccl/gccl/algo/plan"

// directSendRecv: the receiver pulls. The two ends are ranks of a world of their own.
func directSendRecv(e ends) *plan.Plan {
	p := e.start(plan.SendRecv, Direct, 1, 1)
	p.Steps = 2
	whole := plan.Const(0)
	work := do(move(at(plan.Send, plan.Const(e.root), whole), e.mine(plan.Recv, whole)))
	switch {
	case e.n == 1:
		p.Ops = join(allReady(), work, allDone())
	case e.rank == e.root:
		p.Ops = join(e.stageWhole(), allReady(), allDone())
	default:
		p.Ops = join(allReady(), work, do(signal(2)))
	}
	return p
}
