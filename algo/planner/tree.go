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

// tree is a rank's place in both trees. A link up has the sender in its tag, as a parent has two of them.
type tree struct {
	ends
	nodes [pattern.Trees]pattern.Node
	w     *wiring
}

func upTag(tree, child int) int { return tree + pattern.Trees*(child+1) }
func downTag(tree int) int      { return tree }

// newTree wires the trees, up, down, or both.
func newTree(e ends, p *plan.Plan, root int, up, down bool) *tree {
	t := &tree{ends: e}
	var outs []link
	for k := range t.nodes {
		node := pattern.DoubleTree(e.n, root, e.rank, k)
		t.nodes[k] = node
		if up && node.Parent >= 0 {
			outs = append(outs, link{from: e.rank, to: node.Parent, tag: upTag(k, e.rank)})
		}
		for _, c := range node.Children {
			if down {
				outs = append(outs, link{from: e.rank, to: c, tag: downTag(k)})
			}
		}
	}
	places := 0
	if up {
		places += pattern.Trees * 2 * treeSlots
	}
	if down {
		places += pattern.Trees * treeSlots
	}
	t.w = e.wire(p, places, func(r int) []link {
		var ins []link
		for k := range pattern.Trees {
			node := pattern.DoubleTree(e.n, root, r, k)
			for _, c := range node.Children {
				if up {
					ins = append(ins, link{from: c, to: r, tag: upTag(k, c), slots: treeSlots})
				}
			}
			if down && node.Parent >= 0 {
				ins = append(ins, link{from: node.Parent, to: r, tag: downTag(k), slots: treeSlots})
			}
		}
		return ins
	}, outs)
	return t
}

// reduceUp reduces all parts towards the root. The trees take turns, so that both are busy.
func (t *tree) reduceUp() []plan.Op {
	var body []plan.Op
	for k, node := range t.nodes {
		part := span(k * treeDepth)
		var src []plan.Ref
		for _, c := range node.Children {
			src = append(src, t.w.get(upTag(k, c), true))
		}
		src = append(src, t.mine(plan.Send, part))
		if node.Parent >= 0 {
			body = join(body, through(part, fold(src, t.w.put(node.Parent, upTag(k, t.rank), true))))
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
	for k, node := range t.nodes {
		part := span(k * treeDepth)
		src, dst := t.mine(space, part), []plan.Ref(nil)
		if node.Parent >= 0 {
			src = t.w.get(downTag(k), false)
		}
		if node.Parent >= 0 || space != plan.Recv {
			dst = append(dst, t.mine(plan.Recv, part))
		}
		for _, c := range node.Children {
			dst = append(dst, t.w.put(c, downTag(k), false))
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
