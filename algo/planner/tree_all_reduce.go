package planner

import "github.com/gccl/gccl/algo/plan"

// treeAllReduce: up both trees, then down. The root keeps the results in its receive buffer until all parts are
// up: a rank reads nothing from above before its own parts are up, so sending at once could fill the slots.
func treeAllReduce(e ends) *plan.Plan {
	p := e.start(plan.AllReduce, Tree, treeParts, treeParts)
	t := newTree(e, p, 0, true, true)
	p.Ops = join(e.open(p), t.reduceUp(), t.passDown(plan.Recv))
	return p
}
