package planner

import "github.com/gccl/gccl/algo/plan"

// treeReduce: up both trees.
func treeReduce(e ends) *plan.Plan {
	p := e.start(plan.Reduce, Tree, treeParts, treeParts)
	t := newTree(e, p, e.root, true, false)
	p.Ops = join(e.open(p), t.reduceUp())
	return p
}
