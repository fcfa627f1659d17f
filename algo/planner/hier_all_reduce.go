package planner

import (
	"fmt"

	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// hierAllReduce: a ring inside each clique reduces every rail's parts to the rail's rank, the double tree of the rail reduces
// them over the cliques and brings the results back, and the ring inside passes them on. A link of the ring holds the parts
// of a rail, so that a member sends them all before it waits.
func hierAllReduce(e ends) *plan.Plan {
	h := newHier(e)
	parts := h.size * treeParts
	p := e.start(plan.AllReduce, Hier, parts, parts)
	t := h.railTree(h.clique, h.index)
	h.wireAllReduce(p, t)

	own := func(part plan.Affine) plan.Ref { return e.mine(plan.Send, part) }
	recv := func(part plan.Affine) plan.Ref { return e.mine(plan.Recv, part) }
	in := func(partial bool) plan.Ref { return h.w.get(tagInside, partial) }
	out := func(partial bool) plan.Ref { return h.w.put(h.nextInside(), tagInside, partial) }
	p.Ops = e.open(p)
	switch {
	case h.size == 1:
		t.own = own
	case h.ncliques == 1:
		p.Ops = join(p.Ops, h.reduceInside(in, out), h.ring(h.index, func(part plan.Affine) plan.Op {
			return finish([]plan.Ref{in(true), own(part)}, recv(part), out(false))
		}))
	default:
		t.own = func(plan.Affine) plan.Ref { return h.w.get(tagKeep, true) }
		t.also = func(plan.Affine) []plan.Ref { return []plan.Ref{out(false)} }
		p.Ops = join(p.Ops, h.reduceInside(in, out), h.ring(h.index, func(part plan.Affine) plan.Op {
			return fold([]plan.Ref{in(true), own(part)}, h.w.put(e.rank, tagKeep, true))
		}))
	}
	if h.ncliques > 1 || h.size == 1 {
		p.Ops = join(p.Ops, t.reduceUp(), t.passDown(plan.Recv))
	}
	if h.size > 1 {
		for s := 1; s < h.size-1; s++ {
			p.Ops = join(p.Ops, h.ring(h.index-s, func(part plan.Affine) plan.Op { return spread(in(false), recv(part), out(false)) }))
		}
		p.Ops = join(p.Ops, h.ring(h.index+1, func(part plan.Affine) plan.Op { return spread(in(false), recv(part)) }))
	}
	return p
}

// maxInside is the largest clique: a plan has a loop for each member.
const maxInside = 128

func hierAllReduceLimit(e *ends) string {
	if size, _ := e.cliques.Equal(); size > maxInside {
		return fmt.Sprintf("cliques of %d ranks, at most %d", size, maxInside)
	}
	return ""
}

// reduceInside is the ring's way up to the last step, in which this rank's own parts arrive.
func (h *hier) reduceInside(in, out func(partial bool) plan.Ref) []plan.Op {
	ops := h.ring(h.index-1, func(part plan.Affine) plan.Op { return fold([]plan.Ref{h.mine(plan.Send, part)}, out(true)) })
	for s := 2; s < h.size; s++ {
		ops = join(ops, h.ring(h.index-s, func(part plan.Affine) plan.Op {
			return fold([]plan.Ref{in(true), h.mine(plan.Send, part)}, out(true))
		}))
	}
	return ops
}

func (h *hier) wireAllReduce(p *plan.Plan, t *tree) {
	all := h.ends.cliques
	ins := func(r int) []link {
		clique, index := all.Of(r)
		ins := h.railTree(clique, index).ins(clique)
		if h.size > 1 {
			ins = append(ins, link{from: all.Member(clique, pattern.Prev(index, h.size)), to: r, tag: tagInside, slots: insideSlots})
		}
		if h.size > 1 && h.ncliques > 1 {
			ins = append(ins, link{from: r, to: r, tag: tagKeep, slots: treeParts})
		}
		return ins
	}
	outs := t.outs()
	if h.size > 1 {
		outs = append(outs, link{from: h.rank, to: h.nextInside(), tag: tagInside})
	}
	if h.size > 1 && h.ncliques > 1 {
		outs = append(outs, link{from: h.rank, to: h.rank, tag: tagKeep})
	}
	h.w = h.wire(p, t.places()+insideSlots+treeParts, ins, outs)
	t.w = h.w
}
