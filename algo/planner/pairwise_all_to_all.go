package planner

import "github.com/gccl/gccl/algo/plan"

// Pairwise has an edge between any two ranks.
const Pairwise = "pairwise"

// pairwiseAllToAll: a rank sends a chunk to every other rank, then reads theirs, beginning with its neighbours so that
// traffic spreads out.
func pairwiseAllToAll(e ends) *plan.Plan {
	p := e.start(plan.AllToAll, Pairwise, e.n, e.n)
	var outs []link
	for k := 1; k < e.n; k++ {
		outs = append(outs, link{from: e.rank, to: (e.rank + k) % e.n, tag: k})
	}
	w := e.wire(p, ringSlots*(e.n-1), func(r int) []link {
		var ins []link
		for k := 1; k < e.n; k++ {
			ins = append(ins, link{from: mod(r-k, e.n), to: r, tag: k, slots: ringSlots})
		}
		return ins
	}, outs)
	own := plan.Const(e.rank)
	p.Ops = e.open(p)
	for k := 1; k < e.n; k++ {
		to := mod(e.rank+k, e.n)
		p.Ops = join(p.Ops, through(plan.Const(to), spread(e.mine(plan.Send, plan.Const(to)), w.put(to, k, false))))
	}
	p.Ops = join(p.Ops, do(move(e.mine(plan.Send, own), e.mine(plan.Recv, own))))
	for k := 1; k < e.n; k++ {
		from := plan.Const(mod(e.rank-k, e.n))
		p.Ops = join(p.Ops, through(from, spread(w.get(k, false), e.mine(plan.Recv, from))))
	}
	return p
}
