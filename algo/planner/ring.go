package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// Ring is the family of methods over one ring of edges: least data per rank, a latency that grows with the number
// of ranks. Only slots and a rank's own buffers are touched.
const Ring = "ring"

// ringSlots lets a rank work on one slot while its neighbour fills the other.
const ringSlots = 2

// maxChainParts bounds how finely a chain cuts a buffer so that all its ranks work at once; a guess.
const maxChainParts = 64

// ringLink is a link through which chunks stream.
func (e ends) ringLink(from, to, tag int) link {
	return link{from: from, to: to, tag: tag, slots: e.slots(from, to, ringSlots, farSlots)}
}

// ringLinks wires a full ring.
func (e ends) ringLinks(p *plan.Plan) (in, out func(partial bool) plan.Ref) {
	next := pattern.Next(e.rank, e.n)
	w := e.wire(p, e.most(ringSlots, farSlots), func(r int) []link {
		return []link{e.ringLink(pattern.Prev(r, e.n), r, 0)}
	}, []link{{from: e.rank, to: next}})
	return func(partial bool) plan.Ref { return w.get(0, partial) },
		func(partial bool) plan.Ref { return w.put(next, 0, partial) }
}

// ringReduce reduces parts around the ring; part rank ends here, at dst.
func (e ends) ringReduce(in, out func(bool) plan.Ref, dst ...plan.Ref) []plan.Op {
	own := func(c plan.Affine) plan.Ref { return e.mine(plan.Send, c) }
	first, next, last := plan.Const(pattern.Prev(e.rank, e.n)), e.down(e.rank-2), plan.Const(e.rank)
	return join(
		through(first, fold([]plan.Ref{own(first)}, out(true))),
		loop(e.n-2, through(next, fold([]plan.Ref{in(true), own(next)}, out(true)))...),
		through(last, finish([]plan.Ref{in(true), own(last)}, dst...)),
	)
}

// ringPass receives the other ranks' parts and passes on all but the last.
func (e ends) ringPass(in, out func(bool) plan.Ref) []plan.Op {
	part, last := e.down(e.rank-1), plan.Const(pattern.Next(e.rank, e.n))
	return join(
		loop(e.n-2, through(part, spread(in(false), e.mine(plan.Recv, part), out(false)))...),
		through(last, spread(in(false), e.mine(plan.Recv, last))),
	)
}

// chainParts is how many parts a chain of ranks works on.
func (e ends) chainParts() int { return min(max(2*e.n, 4), maxChainParts) }

// chainLinks wires the chain of ranks first, first+1, … around to the rank before first. The first rank has no
// edge in, the last none out.
func (e ends) chainLinks(p *plan.Plan, first int) *wiring {
	next := pattern.Next(e.rank, e.n)
	var outs []link
	if next != first {
		outs = []link{{from: e.rank, to: next}}
	}
	return e.wire(p, e.most(ringSlots, farSlots), func(r int) []link {
		if r == first {
			return nil
		}
		return []link{e.ringLink(pattern.Prev(r, e.n), r, 0)}
	}, outs)
}
