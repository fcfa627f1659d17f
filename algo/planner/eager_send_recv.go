package planner

import "github.com/gccl/gccl/algo/plan"

// eagerSendRecv: the sender does not wait for the receiver.
func eagerSendRecv(e ends) *plan.Plan {
	p := e.start(plan.SendRecv, Eager, 1, 1)
	p.Steps = 1
	whole := plan.Const(0)
	switch {
	case e.n == 1:
		p.Ops = do(signal(1), move(e.mine(plan.Send, whole), e.mine(plan.Recv, whole)))
	case e.rank == e.root:
		p.Ops = join(e.offerWhole(), do(signal(1)))
	default:
		p.Ops = do(signal(1), waitFor(1, e.root), move(at(plan.Eager, plan.Const(e.root), whole), e.mine(plan.Recv, whole)))
	}
	return p
}
