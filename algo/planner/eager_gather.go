package planner

import "github.com/gccl/gccl/algo/plan"

// eagerGather: the root copies from all other eager slots, the others wait for nobody.
func eagerGather(e ends) *plan.Plan {
	p := e.start(plan.Gather, Eager, 1, e.n)
	p.Steps = 1
	if e.rank != e.root {
		p.Ops = join(e.offerWhole(), do(signal(1)))
		return p
	}
	peer := e.from(e.root + 1)
	own := move(e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(e.root)))
	work := loop(e.n-1, move(at(plan.Eager, peer, plan.Const(0)), e.mine(plan.Recv, peer)))
	p.Ops = join(do(signal(1), own, waitAll(1)), work)
	return p
}
