package planner

import "github.com/gccl/gccl/algo/plan"

// directReduce: rank r reduces part r of everybody, in rank order, and stores it at the root.
func directReduce(e ends) *plan.Plan {
	p := e.start(plan.Reduce, Direct, e.n, e.n)
	p.Steps = 2
	part := plan.Const(e.rank)
	work := plan.Op{
		Kind: plan.KindReduce, Fold: true, Final: true,
		Src: []plan.Ref{e.each(plan.Send, e.rank)},
		Dst: []plan.Ref{at(plan.Recv, plan.Const(e.root), part)},
	}
	p.Ops = join(e.stageOthers(), allReady(), do(work), allDone())
	if e.rank == e.root {
		p.Ops = join(p.Ops, e.collect())
	}
	return p
}
