package planner

import "github.com/gccl/gccl/algo/plan"

// directAllReduce is two-shot: rank r reduces part r of everybody, in rank order, and stores it at everybody.
func directAllReduce(e ends) *plan.Plan {
	p := e.start(plan.AllReduce, Direct, e.n, e.n)
	p.Steps = 2
	work := plan.Op{
		Kind: plan.KindReduce, Fold: true, Final: true,
		Src: []plan.Ref{e.each(plan.Send, e.rank)},
		Dst: []plan.Ref{e.each(plan.Recv, e.rank)},
	}
	p.Ops = join(e.stageOthers(), allReady(), do(work), allDone(), e.collect())
	return p
}
