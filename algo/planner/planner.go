// Package planner owns the methods: for each collective and method a pure function from (number of ranks,
// rank, root) to a plan.
//
// A planner costs what its rank does, never the number of ranks: repetition is a loop of the plan. It must not
// know buffers, counts, types or devices. Which ranks load and store each other it is told as cliques.
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

// Job is one collective of a world: what all its ranks know alike.
type Job struct {
	Coll    plan.Coll
	Method  string
	Ranks   int
	Root    int           // of a rooted collective; others ignore it
	Cliques *plan.Cliques // who loads and stores whom; nil: everybody
}

// method is one way to do one collective.
type method struct {
	coll  plan.Coll
	name  string
	make  func(ends) *plan.Plan
	max   int                  // largest number of ranks; 0 is MaxRanks
	reach bool                 // loads or stores peers: for one clique only
	equal bool                 // for cliques of one size only
	limit func(w *ends) string // what else there is against it; "" nothing
}

var methods = []method{
	{coll: plan.AllReduce, name: Direct, make: directAllReduce, reach: true},
	{coll: plan.ReduceScatter, name: Direct, make: directReduceScatter, reach: true},
	{coll: plan.AllGather, name: Direct, make: directAllGather, reach: true},
	{coll: plan.Broadcast, name: Direct, make: directBroadcast, reach: true},
	{coll: plan.Reduce, name: Direct, make: directReduce, reach: true},
	{coll: plan.AllToAll, name: Direct, make: directAllToAll, reach: true},
	{coll: plan.Gather, name: Direct, make: directGather, reach: true},
	{coll: plan.Scatter, name: Direct, make: directScatter, reach: true},
	{coll: plan.SendRecv, name: Direct, make: directSendRecv, max: 2, reach: true},
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
	{coll: plan.AllReduce, name: Hier, make: hierAllReduce, equal: true, limit: hierAllReduceLimit},
	{coll: plan.AllToAll, name: Hier, make: hierAllToAll, equal: true, limit: hierAllToAllLimit},
	{coll: plan.ReduceScatter, name: PAT, make: patReduceScatter, max: maxHalvingRanks},
	{coll: plan.AllGather, name: PAT, make: patAllGather},
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

// ends are the job as planners see it, or the reason why it has no plan.
func (j Job) ends() (*method, *ends, string) {
	m := find(j.Coll, j.Method)
	switch {
	case j.Coll >= plan.NumColls:
		return nil, nil, "there is no such collective"
	case m == nil:
		return nil, nil, fmt.Sprintf("there is no such method; %s has %v", j.Coll, Methods(j.Coll))
	case j.Ranks < 1 || j.Ranks > m.most():
		return nil, nil, fmt.Sprintf("the number of ranks is not in 1 … %d", m.most())
	case j.Cliques != nil && j.Cliques.Ranks() != j.Ranks:
		return nil, nil, fmt.Sprintf("the cliques have %d ranks", j.Cliques.Ranks())
	case m.reach && j.Cliques.Count() > 1:
		return nil, nil, fmt.Sprintf("it is for one clique, and there are %d", j.Cliques.Count())
	}
	e := &ends{n: j.Ranks, root: j.Root, cliques: j.Cliques}
	if e.cliques == nil {
		e.cliques = plan.EqualCliques(j.Ranks, j.Ranks)
	}
	if _, ok := e.cliques.Equal(); m.equal && !ok {
		return nil, nil, "it is for cliques of one size"
	}
	if !j.Coll.Rooted() && j.Coll != plan.SendRecv {
		e.root = 0
	}
	if e.root < 0 || e.root >= e.n {
		return nil, nil, fmt.Sprintf("root %d is not in 0 … %d", e.root, e.n-1)
	}
	if m.limit != nil {
		if reason := m.limit(e); reason != "" {
			return nil, nil, reason
		}
	}
	return m, e, ""
}

// Against says what is against the job; "" if it can be planned.
func (j Job) Against() string {
	_, _, reason := j.ends()
	return reason
}

// Plan plans one rank's part.
func (j Job) Plan(rank int) (*plan.Plan, error) {
	m, e, reason := j.ends()
	if reason == "" && (rank < 0 || rank >= j.Ranks) {
		reason = fmt.Sprintf("the rank is not in 0 … %d", j.Ranks-1)
	}
	if reason != "" {
		return nil, &Error{Coll: j.Coll, Method: j.Method, NRanks: j.Ranks, Rank: rank, Reason: reason}
	}
	e.rank = rank
	return m.make(*e), nil
}

// Fits says whether there is such a method for that many ranks of one clique.
func Fits(coll plan.Coll, name string, nranks int) bool {
	return Job{Coll: coll, Method: name, Ranks: nranks}.Against() == ""
}

// Make plans one rank's part of a collective of one clique.
func Make(coll plan.Coll, name string, nranks, rank, root int) (*plan.Plan, error) {
	return Job{Coll: coll, Method: name, Ranks: nranks, Root: root}.Plan(rank)
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

// Source is a rank iterator for the verifier and the simulator, for one clique.
func Source(coll plan.Coll, name string, nranks, root int) plan.Source {
	return Job{Coll: coll, Method: name, Ranks: nranks, Root: root}.Plan
}
