package planner

import "github.com/gccl/gccl/algo/plan"

// Eager is the family of one-shot methods for small messages: a rank puts what others read into its eager slot
// and goes on; it waits only for those whose data it needs, and nobody waits for the end. User buffers are
// touched by their owner alone, so every reach of memory gives the same plan.
const Eager = "eager"

// offerWhole copies a send buffer of one part into this rank's eager slot.
func (e ends) offerWhole() []plan.Op {
	whole := plan.Const(0)
	return do(move(e.mine(plan.Send, whole), e.mine(plan.Eager, whole)))
}

// offerAll copies all parts of the send buffer into this rank's eager slot.
func (e ends) offerAll() []plan.Op {
	part := e.from(e.rank)
	return loop(e.n, move(e.mine(plan.Send, part), e.mine(plan.Eager, part)))
}

// offerOthers copies all parts but this rank's own into its eager slot.
func (e ends) offerOthers() []plan.Op {
	part := e.from(e.rank + 1)
	return loop(e.n-1, move(e.mine(plan.Send, part), e.mine(plan.Eager, part)))
}

// foldEager reduces one part of all eager slots, in rank order.
func (e ends) foldEager(part int) plan.Op {
	return plan.Op{
		Kind: plan.KindReduce, Fold: true, Final: true,
		Src: []plan.Ref{e.each(plan.Eager, part)},
		Dst: []plan.Ref{e.mine(plan.Recv, plan.Const(0))},
	}
}
