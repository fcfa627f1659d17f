package planner

import (
	"math/bits"

	"github.com/gccl/gccl/algo/plan"
)

// Depth is the longest chain of a method in one round: how many signals inside a clique and between cliques follow each other,
// and how many ops of other ranks a result passes besides a rank's own.
type Depth struct{ Inside, Between, Ops int }

// levels is the logarithm of a number of ranks, rounded up.
func levels(n int) int { return bits.Len(uint(n - 1)) }

// across splits a chain of distances 1, 2, 4 … into those that stay in a clique and those that leave it.
func (e *ends) across(hops, times int) Depth {
	if e.cliques.Count() == 1 {
		return Depth{Inside: times * hops}
	}
	size, equal := e.cliques.Equal()
	inside := levels(size)
	if !equal {
		inside = 0
	}
	inside = min(inside, hops)
	return Depth{Inside: times * inside, Between: times * (hops - inside)}
}

// around is a chain along a ring.
func (e *ends) around(hops int) Depth {
	far := (hops*e.cliques.Borders() + e.n - 1) / e.n
	return Depth{Inside: hops - far, Between: far}
}

// Depth estimates the chain of a job that can be planned; it is zero for others.
func (j Job) Depth() Depth {
	_, e, reason := j.ends()
	if reason != "" {
		return Depth{}
	}
	n, twice := e.n, 1
	if j.Coll == plan.AllReduce {
		twice = 2
	}
	extra := 0
	if n&(n-1) != 0 {
		extra = 2
	}
	switch j.Method {
	case Eager:
		return Depth{Inside: 1}
	case Direct:
		return Depth{Inside: 2}
	case Ring:
		d := e.around(twice * (n - 1))
		switch j.Coll {
		case plan.Broadcast, plan.Reduce:
			d.Ops = n - 1
		case plan.SendRecv:
			d = e.around(1)
		}
		return d
	case Tree:
		d := e.across(levels(n), twice)
		d.Ops = twice * levels(n)
		return d
	case Binomial:
		d := e.across(levels(n), 1)
		d.Ops = levels(n)
		return d
	case RD:
		return e.across(levels(n)-extra/2+extra, 1)
	case RHD:
		return e.across(levels(n)-extra/2+extra/twice, twice)
	case PAT:
		return e.across(levels(n), 1)
	case Pairwise:
		return e.around(1)
	case Relay:
		return e.around(n * (n - 1) / 2)
	case Hier:
		size, _ := e.cliques.Equal()
		count := e.cliques.Count()
		if j.Coll == plan.AllToAll {
			return Depth{Inside: count, Between: count - 1}
		}
		return Depth{Inside: 2 * (size - 1), Between: 2 * levels(count), Ops: 2 * levels(count)}
	}
	return Depth{}
}
