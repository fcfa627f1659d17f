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

const treeParts = pattern.Trees * treeDepth

// tree is a rank's place in both trees of some ranks, its nodes: 0 … size-1. The first treeDepth parts from first on belong to tree
// 0, the next to tree 1. A link up has the lower node in its tag, as a node has up to two of them in each tree. A link holds all
// parts of its tree, so that a node gives and takes them without regard to what it does in the other tree.
type tree struct {
	ends
	size, root, me int // nodes
	rankOf         func(node int) int
	up, down       bool
	first          int
	own            func(tree int, part plan.Affine) plan.Ref // what this rank gives
	also           func(part plan.Affine) []plan.Ref         // where results go besides; nil: nowhere
	w              *wiring
}

func upTag(tree, child int) int { return tree + pattern.Trees*(child+1) }
func downTag(tree int) int      { return tree }

// newTree wires the trees of all ranks, up, down, or both.
func newTree(e ends, p *plan.Plan, root int, up, down bool) *tree {
	t := &tree{ends: e, size: e.n, root: root, me: e.rank, rankOf: func(node int) int { return node }, up: up, down: down}
	t.own = func(_ int, part plan.Affine) plan.Ref { return e.mine(plan.Send, part) }
	t.w = e.wire(p, t.places(), t.ins, t.outs())
	return t
}

func (t *tree) node(node, tree int) pattern.Node {
	return pattern.DoubleTree(t.size, t.root, node, tree)
}

func (t *tree) places() int {
	places := 0
	if t.up {
		places += pattern.Trees * 2 * treeDepth
	}
	if t.down {
		places += pattern.Trees * treeDepth
	}
	return places
}

// link joins two nodes.
func (t *tree) link(from, to, tag int) link {
	return link{from: t.rankOf(from), to: t.rankOf(to), tag: tag, slots: treeDepth}
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
func (t *tree) part(tree int) plan.Affine { return span(t.first + tree*treeDepth) }

// leavesFirst lists the trees, first those in which this rank is a leaf: others wait for it there, and it for nobody.
func (t *tree) leavesFirst() []int {
	for k := range pattern.Trees {
		if len(t.node(t.me, k).Children) == 0 {
			return []int{k, 1 - k}
		}
	}
	return []int{0, 1}
}

// leavesLast lists the trees, last those in which nobody waits for this rank.
func (t *tree) leavesLast() []int {
	order := t.leavesFirst()
	return []int{order[1], order[0]}
}

// reduceUp reduces all parts towards the root.
func (t *tree) reduceUp() []plan.Op {
	var ops []plan.Op
	for _, k := range t.leavesFirst() {
		at, part := t.node(t.me, k), t.part(k)
		var src []plan.Ref
		for _, c := range at.Children {
			src = append(src, t.w.get(upTag(k, c), true))
		}
		src = append(src, t.own(k, part))
		op := finish(src, t.mine(plan.Recv, part))
		if at.Parent >= 0 {
			op = fold(src, t.w.put(t.rankOf(at.Parent), upTag(k, t.me), true))
		}
		ops = join(ops, loop(treeDepth, through(part, op)...))
	}
	return ops
}

// passDown sends all parts away from the root. At the root they come from space, and go to its receive buffer
// unless that is where they come from.
func (t *tree) passDown(space plan.Space) []plan.Op {
	var ops []plan.Op
	for _, k := range t.leavesLast() {
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
			ops = join(ops, loop(treeDepth, through(part, spread(src, dst...))...))
		}
	}
	return ops
}
