package planner

import "github.com/gccl/gccl/algo/plan"

// patReduceScatter is the all-gather backwards: the shortest way first. In level k a rank has partial sums of the chunks whose
// owners are multiples of 2^k behind it; it sends those with odd multiples to the rank 2^k behind, and adds what comes to the
// others. Partial sums wait in its queue to itself, farthest owner first: so the chunk to send comes before the one to keep.
func patReduceScatter(e ends) *plan.Plan {
	p := e.start(plan.ReduceScatter, PAT, e.n, 1)
	levels := patLevels(e.n)
	recv := e.mine(plan.Recv, plan.Const(0))
	if e.n == 1 {
		p.Ops = join(e.open(p), do(finish([]plan.Ref{e.mine(plan.Send, plan.Const(0))}, recv)))
		return p
	}
	outs := []link{{from: e.rank, to: e.rank, tag: tagKeep}}
	for k := range levels {
		outs = append(outs, link{from: e.rank, to: mod(e.rank-1<<k, e.n), tag: k})
	}
	queue := patHeld(e.n, 1) + 1 // one more than waits at once, as an op reads one and fills another
	w := e.wire(p, e.most(ringSlots, farSlots)*levels+queue, func(r int) []link {
		ins := []link{{from: r, to: r, tag: tagKeep, slots: queue}}
		for k := range levels {
			ins = append(ins, e.ringLink(mod(r+1<<k, e.n), r, k))
		}
		return ins
	}, outs)
	p.Ops = e.open(p)
	for k := range levels {
		held, moves := patHeld(e.n, k), patMoves(e.n, k)
		have := func(chunk plan.Affine) plan.Ref {
			if k == 0 {
				return e.mine(plan.Send, chunk)
			}
			return w.get(tagKeep, true)
		}
		if held%2 != 0 {
			// The farthest has no odd neighbour.
			far := plan.Const(mod(e.rank-(held-1)<<k, e.n))
			p.Ops = join(p.Ops, through(far, fold([]plan.Ref{have(far)}, w.put(e.rank, tagKeep, true))))
		}
		send := plan.Affine{Base: mod(e.rank-(2*moves-1)<<k, e.n), I: 2 << k, Mod: e.n}
		keep := plan.Affine{Base: mod(e.rank-(2*moves-2)<<k, e.n), I: 2 << k, Mod: e.n}
		sum := fold([]plan.Ref{have(keep), w.get(k, true)}, w.put(e.rank, tagKeep, true))
		if k == levels-1 {
			sum = finish([]plan.Ref{have(keep), w.get(k, true)}, recv)
		}
		p.Ops = join(p.Ops, loop(moves, join(
			through(send, fold([]plan.Ref{have(send)}, w.put(mod(e.rank-1<<k, e.n), k, true))),
			through(keep, sum))...))
	}
	return p
}
