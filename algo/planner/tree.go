package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// Tree is the family of methods over the double binary tree: logarithmic latency, and each tree carries half of
// the parts. Only slots and a rank's own buffers are touched.
const Tree = "tree"

// treeDepth is how many parts each tree works on at once, so that its levels overlap; a guess.
const treeDepth = 4

// treeSlots lets a rank work on one slot while its neighbour fills the other.
const treeSlots = 2

const treeParts = pattern.Trees * treeDepth

// tree is a rank's place in both trees of some ranks, its nodes: 0 … size-1. Parts first, first+1, … belong to the trees in
// turn. A link up has the lower node in its tag, as a node has up to two of them in each tree.
type tree struct {
	ends
	size, root, me int // nodes
	rankOf         func(node int) int
	up, down       bool
	first          int
	own            func(part plan.Affine) plan.Ref   // what this rank gives
	also           func(part plan.Affine) []plan.Ref // where results go besides; nil: nowhere
	w              *wiring
}

func upTag(tree, child int) int { return tree + pattern.Trees*(child+1) }
func downTag(tree int) int      { return tree }

// newTree wires the trees of all ranks, up, down, or both.
func newTree(e ends, p *plan.Plan, root int, up, down bool) *tree {
	t := &tree{ends: e, size: e.n, root: root, me: e.rank, rankOf: func(node int) int { return node }, up: up, down: down}
	t.own = func(part plan.Affine) plan.Ref { return e.mine(plan.Send, part) }
	t.w = e.wire(p, t.places(), t.ins, t.outs())
	return t
}

func (t *tree) node(node, tree int) pattern.Node {
	return pattern.DoubleTree(t.size, t.root, node, tree)
}

func (t *tree) places() int {
	places := 0
	if t.up {
		places += pattern.Trees * 2 * t.most(treeSlots, treeDepth)
	}
	if t.down {
		places += pattern.Trees * t.most(treeSlots, treeDepth)
	}
	return places
}

// link joins two nodes. Between cliques it holds all parts of a round, so that nobody waits for a slot.
func (t *tree) link(from, to, tag int) link {
	a, b := t.rankOf(from), t.rankOf(to)
	return link{from: a, to: b, tag: tag, slots: t.slots(a, b, treeSlots, treeDepth)}
}

// ins lists the links that end at a node.
func (t *tree) ins(node int) []link {
	var ins []link
	for k := range pattern.Trees {
		at := t.node(node, k)
		for _, c := range at.Children {
			if t.up {
				ins = append(ins, t.link(c, node, upTag(k, c)))
			}
		}
		if t.down && at.Parent >= 0 {
			ins = append(ins, t.link(at.Parent, node, downTag(k)))
		}
	}
	return ins
}

// outs lists where this rank's links go.
func (t *tree) outs() []link {
	var outs []link
	for k := range pattern.Trees {
		at := t.node(t.me, k)
		if t.up && at.Parent >= 0 {
			outs = append(outs, link{from: t.rank, to: t.rankOf(at.Parent), tag: upTag(k, t.me)})
		}
		for _, c := range at.Children {
			if t.down {
				outs = append(outs, link{from: t.rank, to: t.rankOf(c), tag: downTag(k)})
			}
		}
	}
	return outs
}

// part is what a tree works on, as the loop variable grows.
func (t *tree) part(tree int) plan.Affine { return plan.Affine{Base: t.first + tree, I: pattern.Trees} }

// reduceUp reduces all parts towards the root. The trees take turns, so that both are busy.
func (t *tree) reduceUp() []plan.Op {
	var body []plan.Op
	for k := range pattern.Trees {
		at, part := t.node(t.me, k), t.part(k)
		var src []plan.Ref
		for _, c := range at.Children {
			src = append(src, t.w.get(upTag(k, c), true))
		}
		src = append(src, t.own(part))
		if at.Parent >= 0 {
			body = join(body, through(part, fold(src, t.w.put(t.rankOf(at.Parent), upTag(k, t.me), true))))
		} else {
			body = join(body, through(part, finish(src, t.mine(plan.Recv, part))))
		}
	}
	return loop(treeDepth, body...)
}

// passDown sends all parts away from the root. At the root they come from space, and go to its receive buffer
// unless that is where they come from.
func (t *tree) passDown(space plan.Space) []plan.Op {
	var body []plan.Op
	for k := range pattern.Trees {
		at, part := t.node(t.me, k), t.part(k)
		src, dst := t.mine(space, part), []plan.Ref(nil)
		if at.Parent >= 0 {
			src = t.w.get(downTag(k), false)
		}
		if at.Parent >= 0 || space != plan.Recv {
			dst = append(dst, t.mine(plan.Recv, part))
		}
		for _, c := range at.Children {
			dst = append(dst, t.w.put(t.rankOf(c), downTag(k), false))
		}
		if t.also != nil {
			dst = append(dst, t.also(part)...)
		}
		if len(dst) > 0 {
			body = join(body, through(part, spread(src, dst...)))
		}
	}
	if body == nil {
		return nil
	}
	return loop(treeDepth, body...)
}
