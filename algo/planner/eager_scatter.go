package planner

import "github.com/gccl/gccl/algo/plan"

// eagerScatter: the root waits for nobody, the others for the root alone.
func eagerScatter(e ends) *plan.Plan {
	p := e.start(plan.Scatter, Eager, e.n, 1)
	p.Steps = 1
	part, whole := plan.Const(e.rank), plan.Const(0)
	if e.rank == e.root {
		p.Ops = join(e.offerOthers(), do(signal(1), move(e.mine(plan.Send, part), e.mine(plan.Recv, whole))))
	} else {
		p.Ops = do(signal(1), waitFor(1, e.root), move(at(plan.Eager, plan.Const(e.root), part), e.mine(plan.Recv, whole)))
	}
	return p
}
