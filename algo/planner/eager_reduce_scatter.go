package planner

import "github.com/gccl/gccl/algo/plan"

// eagerReduceScatter: every rank reduces its part of all eager slots; its own part goes through the slot too, so
// that one set of sources is in rank order.
func eagerReduceScatter(e ends) *plan.Plan {
	p := e.start(plan.ReduceScatter, Eager, e.n, 1)
	p.Steps = 1
	p.Ops = join(e.offerAll(), allReady(), do(e.foldEager(e.rank)))
	return p
}
