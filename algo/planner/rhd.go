package planner

import (
	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// RHD is recursive halving and doubling: a logarithmic number of exchanges that carry as little as a ring.
//
// Only the core, a power of two of ranks, exchanges; extra ranks hand their data to a core rank first and get
// the result last. Chunk c belongs to column c mod core. Before level k a rank works for the columns that share
// its upper k bits; in level k it sends the half that is its partner's and keeps the other, so that column c ends
// at core rank c. Doubling goes the same way back.
//
// Partial results wait in the rank's queue to itself. Edges are queues too, so all ranks go through chunks in one
// order: first those below core, then the others, each ascending.
const RHD = "rhd"

// maxHalvingRanks keeps the slots of an edge, half of all chunks, within the 16 bits of the lowered format, and the
// edges that end at a rank, two for each of 15 levels and two more, within what executors hold.
const maxHalvingRanks = 1<<16 - 1

// upTo is the tag offset of the doubling phase.
const upTo = 64

// halving is a rank's part in recursive halving and doubling over chunks 0 … chunks-1.
type halving struct {
	ends
	core, levels, chunks int
	w                    *wiring
}

func newHalving(e ends, chunks int) *halving {
	h := &halving{ends: e, chunks: chunks}
	h.core, h.levels = pattern.Core(e.n)
	return h
}

// interval is a run of chunks.
type interval struct{ first, n int }

// chunksOf lists the chunks in a block of columns, in the common order.
func (h *halving) chunksOf(first, n int) []interval {
	runs := []interval{{first, n}}
	if more := min(h.chunks, h.core+first+n) - (h.core + first); more > 0 {
		runs = append(runs, interval{h.core + first, more})
	}
	return runs
}

func total(runs []interval) int {
	sum := 0
	for _, r := range runs {
		sum += r.n
	}
	return sum
}

// kept is what a rank keeps in level k, given what it has before: the half of its block that holds it.
func (h *halving) kept(rank, level int) []interval {
	return h.chunksOf(pattern.Block(rank, h.levels-1-level))
}

// partner is whom a rank meets in level k.
func (h *halving) partner(rank, level int) int { return pattern.Partner(rank, h.levels-1-level) }

// hasExtra says whether a core rank works for an extra one too.
func (h *halving) hasExtra(rank int) bool { return rank+h.core < h.n }

// links lists the links that end at a rank, for the phases that the method has.
func (h *halving) links(rank int, down, up, pre, post bool) []link {
	var ins []link
	if rank >= h.core {
		if post {
			ins = append(ins, link{from: rank - h.core, to: rank, tag: tagPost, slots: ringSlots})
		}
		return ins
	}
	for k := range h.levels {
		peer := h.partner(rank, k)
		if down {
			ins = append(ins, link{from: peer, to: rank, tag: k, slots: total(h.kept(rank, k))})
		}
		if up {
			ins = append(ins, link{from: peer, to: rank, tag: upTo + k, slots: total(h.kept(peer, k))})
		}
	}
	if down && h.levels > 1 {
		// One more than waits there at once, as an op reads one and fills another.
		ins = append(ins, link{from: rank, to: rank, tag: tagKeep, slots: total(h.kept(rank, 1)) + 1})
	}
	if pre && h.hasExtra(rank) {
		ins = append(ins, link{from: rank + h.core, to: rank, tag: tagPre, slots: ringSlots})
	}
	return ins
}

// places bounds the slots of any rank: what it keeps in all levels is at most twice the core's columns, in each direction,
// and its queue to itself holds one level more.
func (h *halving) places(down, up bool) int {
	n := ringSlots
	if down {
		n += 3*h.core + 1
	}
	if up {
		n += 2 * h.core
	}
	return n
}

// connect wires the phases that the method has.
func (h *halving) connect(p *plan.Plan, down, up, pre, post bool) {
	ins := func(r int) []link { return h.links(r, down, up, pre, post) }
	var outs []link
	reach := func(to int) {
		for _, l := range ins(to) {
			if l.from == h.rank {
				outs = append(outs, l)
			}
		}
	}
	if h.rank >= h.core {
		reach(h.rank - h.core)
	} else {
		for k := range h.levels {
			reach(h.partner(h.rank, k))
		}
		reach(h.rank)
		if h.hasExtra(h.rank) {
			reach(h.rank + h.core)
		}
	}
	h.w = h.wire(p, h.places(down, up), ins, outs)
}

// over repeats an op that is a function of the chunk over runs of chunks.
func over(runs []interval, op func(chunk plan.Affine) plan.Op) []plan.Op {
	var ops []plan.Op
	for _, r := range runs {
		ops = join(ops, loop(r.n, through(span(r.first), op(span(r.first)))...))
	}
	return ops
}

// own lists what a core rank has of a chunk at first: its part, and that of its extra rank.
func (h *halving) own(chunk plan.Affine) []plan.Ref {
	src := []plan.Ref{h.mine(plan.Send, chunk)}
	if h.hasExtra(h.rank) {
		src = append(src, h.w.get(tagPre, true))
	}
	return src
}

// reduceDown is recursive halving at a core rank. Results go where result says.
func (h *halving) reduceDown(result func(chunk plan.Affine) plan.Ref) []plan.Op {
	if h.levels == 0 {
		return over(h.chunksOf(0, 1), func(c plan.Affine) plan.Op { return finish(h.own(c), result(c)) })
	}
	first := h.partner(h.rank, 0)
	ops := over(h.kept(first, 0), func(c plan.Affine) plan.Op {
		return fold(h.own(c), h.w.put(first, 0, true))
	})
	for k := range h.levels {
		have := func(c plan.Affine) []plan.Ref {
			src := []plan.Ref{h.w.get(tagKeep, true)}
			if k == 0 {
				src = h.own(c)
			}
			return append(src, h.w.get(k, true))
		}
		if k == h.levels-1 {
			ops = join(ops, over(h.kept(h.rank, k), func(c plan.Affine) plan.Op { return finish(have(c), result(c)) }))
			break
		}
		next := h.partner(h.rank, k+1)
		halves := [2]int{h.rank, next}
		if next < h.rank {
			halves = [2]int{next, h.rank}
		}
		stay, leave := h.kept(h.rank, k+1), h.kept(next, k+1)
		for pass := range max(len(stay), len(leave)) {
			for _, owner := range halves {
				runs, dst := stay, h.rank
				if owner == next {
					runs, dst = leave, next
				}
				if pass >= len(runs) {
					continue
				}
				ops = join(ops, over(runs[pass:pass+1], func(c plan.Affine) plan.Op {
					if dst == next {
						return fold(have(c), h.w.put(next, k+1, true))
					}
					return fold(have(c), h.w.put(h.rank, tagKeep, true))
				}))
			}
		}
	}
	return ops
}

// feed is what an extra rank sends to be reduced, in the order in which its core rank folds it.
func (h *halving) feed() []plan.Op {
	proxy := h.rank - h.core
	give := func(c plan.Affine) plan.Op {
		return fold([]plan.Ref{h.mine(plan.Send, c)}, h.w.put(proxy, tagPre, true))
	}
	if h.levels == 0 {
		return over(h.chunksOf(0, 1), give)
	}
	return join(over(h.kept(h.partner(proxy, 0), 0), give), over(h.kept(proxy, 0), give))
}

// passUp is recursive doubling at a core rank: what it has in its receive buffer goes to everybody.
func (h *halving) passUp() []plan.Op {
	var ops []plan.Op
	for k := h.levels - 1; k >= 0; k-- {
		peer := h.partner(h.rank, k)
		ops = join(ops,
			over(h.kept(h.rank, k), func(c plan.Affine) plan.Op {
				return spread(h.mine(plan.Recv, c), h.w.put(peer, upTo+k, false))
			}),
			over(h.kept(peer, k), func(c plan.Affine) plan.Op {
				return spread(h.w.get(upTo+k, false), h.mine(plan.Recv, c))
			}))
	}
	return ops
}
