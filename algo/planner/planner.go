// Package planner owns the methods: for each collective and method a pure function from (number of ranks,
// rank, root) to a plan.
//
// A planner costs what its rank does, never the number of ranks: repetition is a loop of the plan. It must not
// know buffers, counts, types, devices or which ranks reach which memory.
package planner

import (
	"fmt"
	"math"
	"slices"

	"github.com/gccl/gccl/algo/plan"
)

// Error says why there is no plan.
type Error struct {
	Coll         plan.Coll
	Method       string
	NRanks, Rank int
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("plan %s method %q for rank %d of %d: %s", e.Coll, e.Method, e.Rank, e.NRanks, e.Reason)
}

// MaxRanks is the largest number of ranks a plan can speak of: expressions are 32-bit in the lowered format and
// add up to a few times the number of ranks.
const MaxRanks = math.MaxInt32 / 8

// method is one way to do one collective.
type method struct {
	coll plan.Coll
	name string
	make func(ends) *plan.Plan
	max  int // largest number of ranks; 0 is MaxRanks
}

var methods = []method{
	{coll: plan.AllReduce, name: Direct, make: directAllReduce},
	{coll: plan.ReduceScatter, name: Direct, make: directReduceScatter},
	{coll: plan.AllGather, name: Direct, make: directAllGather},
	{coll: plan.Broadcast, name: Direct, make: directBroadcast},
	{coll: plan.Reduce, name: Direct, make: directReduce},
	{coll: plan.AllToAll, name: Direct, make: directAllToAll},
	{coll: plan.Gather, name: Direct, make: directGather},
	{coll: plan.Scatter, name: Direct, make: directScatter},
	{coll: plan.SendRecv, name: Direct, make: directSendRecv, max: 2},
	{coll: plan.AllReduce, name: Eager, make: eagerAllReduce},
	{coll: plan.ReduceScatter, name: Eager, make: eagerReduceScatter},
	{coll: plan.AllGather, name: Eager, make: eagerAllGather},
	{coll: plan.Broadcast, name: Eager, make: eagerBroadcast},
	{coll: plan.Reduce, name: Eager, make: eagerReduce},
	{coll: plan.AllToAll, name: Eager, make: eagerAllToAll},
	{coll: plan.Gather, name: Eager, make: eagerGather},
	{coll: plan.Scatter, name: Eager, make: eagerScatter},
	{coll: plan.SendRecv, name: Eager, make: eagerSendRecv, max: 2},
	{coll: plan.AllReduce, name: Ring, make: ringAllReduce},
	{coll: plan.ReduceScatter, name: Ring, make: ringReduceScatter},
	{coll: plan.AllGather, name: Ring, make: ringAllGather},
	{coll: plan.Broadcast, name: Ring, make: ringBroadcast},
	{coll: plan.Reduce, name: Ring, make: ringReduce},
	{coll: plan.AllReduce, name: Tree, make: treeAllReduce},
	{coll: plan.Broadcast, name: Tree, make: treeBroadcast},
	{coll: plan.Reduce, name: Tree, make: treeReduce},
	{coll: plan.AllToAll, name: Pairwise, make: pairwiseAllToAll, max: MaxEdges + 1},
	{coll: plan.AllToAll, name: Relay, make: relayAllToAll, max: maxRelayRanks},
	{coll: plan.Gather, name: Binomial, make: binomialGather},
	{coll: plan.Scatter, name: Binomial, make: binomialScatter},
	{coll: plan.SendRecv, name: Ring, make: ringSendRecv, max: 2},
	{coll: plan.AllReduce, name: RD, make: rdAllReduce},
	{coll: plan.AllReduce, name: RHD, make: rhdAllReduce, max: maxHalvingRanks},
	{coll: plan.ReduceScatter, name: RHD, make: rhdReduceScatter, max: maxHalvingRanks},
	{coll: plan.AllGather, name: RHD, make: rhdAllGather, max: maxHalvingRanks},
}

// most is the largest number of ranks of a method.
func (m *method) most() int {
	if m.max > 0 {
		return m.max
	}
	return MaxRanks
}

// find looks a method up; nil if there is none.
func find(coll plan.Coll, name string) *method {
	for k := range methods {
		if methods[k].coll == coll && methods[k].name == name {
			return &methods[k]
		}
	}
	return nil
}

// Fits says whether there is such a method for that many ranks.
func Fits(coll plan.Coll, name string, nranks int) bool {
	m := find(coll, name)
	return m != nil && nranks >= 1 && nranks <= m.most()
}

// Make plans one rank's part of a collective. The root of a collective without root is ignored.
func Make(coll plan.Coll, name string, nranks, rank, root int) (*plan.Plan, error) {
	fail := func(format string, args ...any) (*plan.Plan, error) {
		return nil, &Error{Coll: coll, Method: name, NRanks: nranks, Rank: rank, Reason: fmt.Sprintf(format, args...)}
	}
	if coll >= plan.NumColls {
		return fail("there is no such collective")
	}
	m := find(coll, name)
	if m == nil {
		return fail("there is no such method; %s has %v", coll, Methods(coll))
	}
	if nranks < 1 || nranks > m.most() {
		return fail("the number of ranks is not in 1 … %d", m.most())
	}
	if rank < 0 || rank >= nranks {
		return fail("the rank is not in 0 … %d", nranks-1)
	}
	if !coll.Rooted() && coll != plan.SendRecv {
		root = 0
	}
	if root < 0 || root >= nranks {
		return fail("root %d is not in 0 … %d", root, nranks-1)
	}
	return m.make(ends{n: nranks, rank: rank, root: root}), nil
}

// Methods lists the methods of a collective, the preferred one first.
func Methods(coll plan.Coll) []string {
	var names []string
	for _, m := range methods {
		if m.coll == coll && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// Source is a rank iterator for the verifier and the simulator.
func Source(coll plan.Coll, name string, nranks, root int) func(rank int) (*plan.Plan, error) {
	return func(rank int) (*plan.Plan, error) { return Make(coll, name, nranks, rank, root) }
}
