package planner

import "github.com/gccl/gccl/algo/plan"

// Eager is the family of one-shot methods for small messages: a rank puts what others read into its eager slot
// and goes on; it waits only for those whose data it needs, and nobody waits for the end. User buffers are
// touched by their owner alone, so every reach of memory gives the same plan.
const Eager = "eager"

// offer copies count parts of the send buffer, beginning with part first, into this rank's eager slot.
func (e ends) offer(first, count, parts int) []plan.Op {
	if count == 1 {
		part := plan.Const(first)
		return do(move(e.mine(plan.Send, part), e.mine(plan.Eager, part)))
	}
	part := plan.Affine{Base: mod(first, parts), I: 1, Mod: parts}
	return loop(count, move(e.mine(plan.Send, part), e.mine(plan.Eager, part)))
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
