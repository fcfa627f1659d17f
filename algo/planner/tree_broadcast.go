package planner

import "github.com/gccl/gccl/algo/plan"

// treeBroadcast: down both trees.
func treeBroadcast(e ends) *plan.Plan {
	p := e.start(plan.Broadcast, Tree, treeParts, treeParts)
	t := newTree(e, p, e.root, false, true)
	p.Ops = join(e.open(p), t.passDown(plan.Send))
	return p
}
