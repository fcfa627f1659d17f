package planner

import "github.com/gccl/gccl/algo/plan"

// treeReduce: up both trees.
func treeReduce(e ends) *plan.Plan {
	p := e.start(plan.Reduce, Tree, treeParts, treeParts)
	p.Steps = 1
	t := newTree(e, p, e.root, true, false)
	p.Ops = join(allReady(), t.reduceUp())
	return p
}
