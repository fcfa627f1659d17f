package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// Hier is the family of hierarchical methods: first inside the clique, then on rails, a rail being the ranks with the same
// place in their cliques. So every rank takes an equal share of what leaves its clique. Only slots and a rank's own buffers
// are touched. All cliques must have one size.
const Hier = "hier"

// hier is a rank's place: its clique among cliques, its place among the size ranks of its clique.
type hier struct {
	ends
	ncliques, clique int
	size, index      int
	w                *wiring
}

func newHier(e ends) *hier {
	h := &hier{ends: e, ncliques: e.cliques.Count()}
	h.size, _ = e.cliques.Equal()
	h.clique, h.index = e.cliques.Of(e.rank)
	return h
}

// insideSlots holds the parts of a rail, and one more: an op fills a slot before it gives one back.
const insideSlots = treeParts + 1

// tagInside is the link from the member before, or from each member.
const tagInside = -4

// inside is the rank of a member of this clique, by its place, counted around.
func (h *hier) inside(index int) int { return h.ends.cliques.Member(h.clique, mod(index, h.size)) }

// onRail is the rank of this rail in a clique, counted around.
func (h *hier) onRail(clique int) int { return h.ends.cliques.Member(mod(clique, h.ncliques), h.index) }

// railTree is the double tree of a rail as one of its ranks sees it.
func (h *hier) railTree(clique, index int) *tree {
	all := h.ends.cliques
	return &tree{
		ends: h.ends, size: h.ncliques, me: clique, up: true, down: true,
		rankOf: func(node int) int { return all.Member(node, index) }, first: index * treeParts,
	}
}

// ring adds loops over the parts of one rail, those of one tree after those of the other; or one loop over all of them where their
// order is that of the parts and op does not ask for the tree.
func (h *hier) ring(ops []plan.Op, index int, order []int, op func(tree int, part plan.Affine) plan.Op) []plan.Op {
	times := treeDepth
	if order == nil {
		order, times = []int{0}, treeParts
	}
	for _, k := range order {
		part := span(mod(index, h.size)*treeParts + k*treeDepth)
		ops = append(ops, plan.Op{Kind: plan.KindLoop, N: times})
		ops = append(appendThrough(ops, part, op(k, part)), plan.Op{Kind: plan.KindEnd})
	}
	return ops
}

// nextInside is the member after this one.
func (h *hier) nextInside() int { return h.inside(pattern.Next(h.index, h.size)) }
