package planner

import (
	"fmt"

	"github.com/gccl/gccl/algo/plan"
)

// hierAllToAll: what a rank has for another clique goes through the member of its own clique that is on the receiver's rail,
// so that a rank talks to one rank of every other clique. Nothing is kept on the way: for each clique in turn a rank gives
// one chunk to every member, and then sends what it got for its rail while it reads what comes on it.
func hierAllToAll(e ends) *plan.Plan {
	p := e.start(plan.AllToAll, Hier, e.n, e.n)
	h := newHier(e)
	h.wireAllToAll(p)
	p.Ops = e.open(p)
	for d := range h.ncliques {
		to, from := mod(h.clique+d, h.ncliques), mod(h.clique-d, h.ncliques)
		for k := 1; k < h.size; k++ {
			part := plan.Const(e.cliques.Member(to, mod(h.index+k, h.size)))
			p.Ops = join(p.Ops, through(part, spread(e.mine(plan.Send, part), h.w.put(h.inside(h.index+k), tagInside-k, false))))
		}
		own := plan.Const(e.rank)
		for k := range h.size {
			// What the member k places behind gave for this rail, and what its rail mate in the other clique did.
			src := e.mine(plan.Send, plan.Const(h.onRail(to)))
			if k > 0 {
				src = h.w.get(tagInside-k, false)
			}
			part := plan.Const(e.cliques.Member(from, mod(h.index-k, h.size)))
			if d == 0 {
				p.Ops = join(p.Ops, through(part, spread(src, e.mine(plan.Recv, part))))
				continue
			}
			p.Ops = join(p.Ops,
				through(own, spread(src, h.w.put(h.onRail(to), d, false))),
				through(part, spread(h.w.get(d, false), e.mine(plan.Recv, part))))
		}
	}
	return p
}

// wireAllToAll: from the member k places behind with tag tagInside-k, from the rail d cliques behind with tag d.
func (h *hier) wireAllToAll(p *plan.Plan) {
	all := h.ends.cliques
	ins := func(r int) []link {
		clique, index := all.Of(r)
		var ins []link
		for k := 1; k < h.size; k++ {
			ins = append(ins, link{from: all.Member(clique, mod(index-k, h.size)), to: r, tag: tagInside - k, slots: ringSlots})
		}
		for d := 1; d < h.ncliques; d++ {
			ins = append(ins, link{from: all.Member(mod(clique-d, h.ncliques), index), to: r, tag: d, slots: ringSlots})
		}
		return ins
	}
	var outs []link
	for k := 1; k < h.size; k++ {
		outs = append(outs, link{from: h.rank, to: h.inside(h.index + k), tag: tagInside - k})
	}
	for d := 1; d < h.ncliques; d++ {
		outs = append(outs, link{from: h.rank, to: h.onRail(h.clique + d), tag: d})
	}
	h.w = h.wire(p, ringSlots*(h.size+h.ncliques-2), ins, outs)
}

// hierAllToAllLimit: an edge from every other member and from every other clique.
func hierAllToAllLimit(e *ends) string {
	size, _ := e.cliques.Equal()
	if need := size + e.cliques.Count() - 2; need > MaxEdges {
		return fmt.Sprintf("%d edges end at a rank, at most %d may", need, MaxEdges)
	}
	return ""
}
