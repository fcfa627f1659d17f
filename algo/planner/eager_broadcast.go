package planner

import "github.com/gccl/gccl/algo/plan"

// eagerBroadcast: the root waits for nobody, the others for the root alone.
func eagerBroadcast(e ends) *plan.Plan {
	p := e.start(plan.Broadcast, Eager, 1, 1)
	p.Steps = 1
	whole := plan.Const(0)
	if e.rank == e.root {
		p.Ops = join(e.offerWhole(), do(signal(1), move(e.mine(plan.Send, whole), e.mine(plan.Recv, whole))))
	} else {
		p.Ops = do(signal(1), waitFor(1, e.root), move(at(plan.Eager, plan.Const(e.root), whole), e.mine(plan.Recv, whole)))
	}
	return p
}
