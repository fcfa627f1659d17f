package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// RD is recursive doubling: a logarithmic number of exchanges of the whole vector, for small ones.
const RD = "rd"

// Tags of the links: level k has tag k; these are others. An extra rank sends on tagPre and receives on tagPost.
// tagKeep is a link to oneself, a queue of partial results.
const (
	tagPre  = -1
	tagPost = -2
	tagKeep = -3
)

// rdFarSlots is how many slots an exchange between cliques has: with one the next round would wait for a credit to come back.
const rdFarSlots = 2

// rdAllReduce: in level k, ranks that differ in bit k exchange what their blocks of 2^k ranks have. Both fold
// the lower block's result first, so all ranks compute the same bits.
func rdAllReduce(e ends) *plan.Plan {
	p := e.start(plan.AllReduce, RD, 1, 1)
	core, levels := pattern.Core(e.n)
	send, recv := e.mine(plan.Send, plan.Const(0)), e.mine(plan.Recv, plan.Const(0))
	places := levels*e.most(1, rdFarSlots) + 4
	if e.n == 2 {
		places = e.most(1, rdFarSlots) + 1 // larger slots, as nothing is kept; without the one more they fill a second cache of a MiB
	}
	w := e.wire(p, places, func(r int) []link { return e.rdIns(r) }, rdOuts(e.rank, e.n))
	if e.rank >= core {
		p.Ops = join(e.open(p),
			through(plan.Const(0), fold([]plan.Ref{send}, w.put(e.rank-core, tagPre, true))),
			through(plan.Const(0), spread(w.get(tagPost, false), recv)))
		return p
	}
	src := []plan.Ref{send}
	results := []plan.Ref{recv}
	if e.rank+core < e.n {
		src = append(src, w.get(tagPre, true))
		results = append(results, w.put(e.rank+core, tagPost, false))
	}
	p.Ops = e.open(p)
	for k := range levels {
		peer := pattern.Partner(e.rank, k)
		mine, out := send, []plan.Ref{w.put(peer, k, true)}
		if len(src) > 1 { // otherwise the send buffer itself is read again
			mine, out = w.get(tagKeep, true), append(out, w.put(e.rank, tagKeep, true))
		}
		p.Ops = join(p.Ops, through(plan.Const(0), fold(src, out...)))
		src = []plan.Ref{mine, w.get(k, true)}
		if peer < e.rank {
			src[0], src[1] = src[1], src[0]
		}
	}
	p.Ops = join(p.Ops, through(plan.Const(0), finish(src, results...)))
	return p
}

// rdKeeps says whether a rank has partial results to keep: what it sends in some level is more than its own buffer.
func rdKeeps(rank, n int) bool {
	core, levels := pattern.Core(n)
	return levels > 1 || levels == 1 && rank+core < n
}

// rdOuts lists where a rank's links go.
func rdOuts(rank, n int) []link {
	core, levels := pattern.Core(n)
	if rank >= core {
		return []link{{from: rank, to: rank - core, tag: tagPre}}
	}
	var outs []link
	for k := range levels {
		outs = append(outs, link{from: rank, to: pattern.Partner(rank, k), tag: k})
	}
	if rdKeeps(rank, n) {
		outs = append(outs, link{from: rank, to: rank, tag: tagKeep})
	}
	if rank+core < n {
		outs = append(outs, link{from: rank, to: rank + core, tag: tagPost})
	}
	return outs
}

// rdIns lists the links that end at a rank. The queue to oneself has two slots: an op reads one and fills the
// other.
func (e ends) rdIns(rank int) []link {
	n := e.n
	core, levels := pattern.Core(n)
	if rank >= core {
		return []link{{from: rank - core, to: rank, tag: tagPost, slots: 1}}
	}
	var ins []link
	for k := range levels {
		ins = append(ins, link{from: pattern.Partner(rank, k), to: rank, tag: k, slots: e.slots(pattern.Partner(rank, k), rank, 1, rdFarSlots)})
	}
	if rdKeeps(rank, n) {
		ins = append(ins, link{from: rank, to: rank, tag: tagKeep, slots: 2})
	}
	if rank+core < n {
		ins = append(ins, link{from: rank + core, to: rank, tag: tagPre, slots: 1})
	}
	return ins
}
