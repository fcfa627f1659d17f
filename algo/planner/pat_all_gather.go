package planner

import "github.com/gccl/gccl/algo/plan"

// patAllGather: in each level a rank sends all it has and that is not yet there to the rank 2^level ahead.
func patAllGather(e ends) *plan.Plan {
	p := e.start(plan.AllGather, PAT, 1, e.n)
	levels := patLevels(e.n)
	var outs []link
	for k := range levels {
		outs = append(outs, link{from: e.rank, to: mod(e.rank+1<<k, e.n), tag: k})
	}
	w := e.wire(p, e.most(ringSlots, farSlots)*levels, func(r int) []link {
		var ins []link
		for k := range levels {
			ins = append(ins, e.ringLink(mod(r-1<<k, e.n), r, k))
		}
		return ins
	}, outs)
	p.Ops = join(e.open(p), do(move(e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(e.rank)))))
	for k := levels - 1; k >= 0; k-- {
		// Sends and reads take turns: nobody fills more slots than are read.
		here := plan.Affine{Base: e.rank, I: -2 << k, Mod: e.n}
		there := plan.Affine{Base: mod(e.rank-1<<k, e.n), I: -2 << k, Mod: e.n}
		p.Ops = join(p.Ops, loop(patMoves(e.n, k), join(
			through(here, spread(e.mine(plan.Recv, here), w.put(mod(e.rank+1<<k, e.n), k, false))),
			through(there, spread(w.get(k, false), e.mine(plan.Recv, there))))...))
	}
	return p
}
