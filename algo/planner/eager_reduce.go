package planner

import "github.com/gccl/gccl/algo/plan"

// eagerReduce: the root reduces all eager slots, the others wait for nobody.
func eagerReduce(e ends) *plan.Plan {
	p := e.start(plan.Reduce, Eager, 1, 1)
	p.Steps = 1
	p.Ops = e.offerWhole()
	if e.rank == e.root {
		p.Ops = join(p.Ops, allReady(), do(e.foldEager(0)))
	} else {
		p.Ops = join(p.Ops, do(signal(1)))
	}
	return p
}
