package planner

import "github.com/gccl/gccl/algo/plan"

// eagerAllReduce: every rank reduces everything.
func eagerAllReduce(e ends) *plan.Plan {
	p := e.start(plan.AllReduce, Eager, 1, 1)
	p.Steps = 1
	p.Ops = join(e.offerWhole(), allReady(), do(e.foldEager(0)))
	return p
}
