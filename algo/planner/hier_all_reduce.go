package planner

import (
	"fmt"
	"slices"

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

	own := func(_ int, part plan.Affine) plan.Ref { return e.mine(plan.Send, part) }
	recv := func(part plan.Affine) plan.Ref { return e.mine(plan.Recv, part) }
	in := func(partial bool) plan.Ref { return h.w.get(tagInside, partial) }
	out := func(partial bool) plan.Ref { return h.w.put(h.nextInside(), tagInside, partial) }
	last := func(k int, part plan.Affine) []plan.Ref { return []plan.Ref{in(true), own(k, part)} }
	var order []int
	p.Ops = slices.Grow(e.open(p), 16*h.size+64) // about as many as there will be: growing is most of planning
	switch {
	case h.size == 1:
		t.own = own
	case h.ncliques == 1:
		p.Ops = h.reduceInside(p.Ops, in, out)
		p.Ops = h.ring(p.Ops, h.index, nil, func(k int, part plan.Affine) plan.Op {
			return finish(last(k, part), recv(part), out(false))
		})
	default:
		t.own = func(k int, _ plan.Affine) plan.Ref { return h.w.get(tagKept-k, true) }
		t.also = func(plan.Affine) []plan.Ref { return []plan.Ref{out(false)} }
		if last := t.leavesLast(); last[0] != 0 { // the same for all members: their rails have equal trees
			order = last
		}
		p.Ops = h.reduceInside(p.Ops, in, out)
		p.Ops = h.ring(p.Ops, h.index, []int{0, 1}, func(k int, part plan.Affine) plan.Op {
			return fold(last(k, part), h.w.put(e.rank, tagKept-k, true))
		})
	}
	if h.ncliques > 1 || h.size == 1 {
		p.Ops = join(p.Ops, t.reduceUp(), t.passDown(plan.Recv))
	}
	if h.size > 1 {
		for s := 1; s < h.size-1; s++ {
			p.Ops = h.ring(p.Ops, h.index-s, order, func(_ int, part plan.Affine) plan.Op { return spread(in(false), recv(part), out(false)) })
		}
		p.Ops = h.ring(p.Ops, h.index+1, order, func(_ int, part plan.Affine) plan.Op { return spread(in(false), recv(part)) })
	}
	return p
}

// tagKept and the tag below it are the queues to oneself of the parts of either tree.
const tagKept = -5

// maxInside is the largest clique: a plan has a loop for each member.
const maxInside = 128

func hierAllReduceLimit(e *ends) string {
	if size, _ := e.cliques.Equal(); size > maxInside {
		return fmt.Sprintf("cliques of %d ranks, at most %d", size, maxInside)
	}
	return ""
}

// reduceInside adds the ring's way up to the last step, in which this rank's own parts arrive.
func (h *hier) reduceInside(ops []plan.Op, in, out func(partial bool) plan.Ref) []plan.Op {
	ops = h.ring(ops, h.index-1, nil, func(_ int, part plan.Affine) plan.Op {
		return fold([]plan.Ref{h.mine(plan.Send, part)}, out(true))
	})
	for s := 2; s < h.size; s++ {
		ops = h.ring(ops, h.index-s, nil, func(_ int, part plan.Affine) plan.Op {
			return fold([]plan.Ref{in(true), h.mine(plan.Send, part)}, out(true))
		})
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
			for k := range pattern.Trees {
				ins = append(ins, link{from: r, to: r, tag: tagKept - k, slots: treeDepth})
			}
		}
		return ins
	}
	outs := t.outs()
	if h.size > 1 {
		outs = append(outs, link{from: h.rank, to: h.nextInside(), tag: tagInside})
	}
	if h.size > 1 && h.ncliques > 1 {
		for k := range pattern.Trees {
			outs = append(outs, link{from: h.rank, to: h.rank, tag: tagKept - k})
		}
	}
	h.w = h.wire(p, t.places()+insideSlots+treeParts, ins, outs)
	t.w = h.w
}
