package planner

import "github.com/gccl/gccl/algo/plan"

// directReduceScatter: rank r reduces part r of everybody, in rank order, for itself.
func directReduceScatter(e ends) *plan.Plan {
	p := e.start(plan.ReduceScatter, Direct, e.n, 1)
	p.Steps = 2
	work := plan.Op{
		Kind: plan.KindReduce, Fold: true, Final: true,
		Src: []plan.Ref{e.each(plan.Send, e.rank)},
		Dst: []plan.Ref{e.mine(plan.Recv, plan.Const(0))},
	}
	p.Ops = join(e.stageOthers(), allReady(), do(work), allDone())
	return p
}
