package planner

import "github.com/gccl/gccl/algo/plan"

// MaxEdges is how many edges may end at a rank: what executors hold (device/layout, MaxEdges).
const MaxEdges = 32

// open begins a plan of edges alone. It has no step: a sender fills a slot only after it has seen the receiver's record, and
// the size of a slot fixes the rounds. A rank alone has no edge, and so counts rounds like the methods that have none.
func (e ends) open(p *plan.Plan) []plan.Op {
	if e.n > 1 {
		return nil
	}
	p.Steps = 1
	return allReady()
}

// farSlots is how many slots an edge between cliques has, unless the method needs no more: a message and its credit take their time
// there, and a sender with two slots would wait for both. A guess.
const farSlots = 8

// slots is how many slots a link has; near is enough inside a clique.
func (e ends) slots(from, to, near, far int) int {
	if e.cliques.Same(from, to) {
		return near
	}
	return far
}

// most is the largest number that slots gives to any rank.
func (e ends) most(near, far int) int {
	if e.cliques.Count() == 1 {
		return near
	}
	return max(near, far)
}

// link is one directed connection of a method, as anybody sees it. tag tells links of the same two ranks apart.
type link struct {
	from, to, tag, slots int
}

// wire adds a rank's edges to its plan: those that end here, then outs. ins lists the links that end at any
// rank, in the order of their places there, so that a sender knows its place at the receiver.
func (e ends) wire(p *plan.Plan, places int, ins func(rank int) []link, outs []link) *wiring {
	p.Places = places
	w := &wiring{in: map[int]int{}, out: map[[2]int]int{}}
	here := ins(e.rank)
	place := 0
	for k, l := range here {
		w.in[l.tag] = len(p.Edges)
		p.Edges = append(p.Edges, plan.Edge{Peer: l.from, Slots: l.slots, Index: k, Place: place})
		place += l.slots
	}
	for _, o := range outs {
		there := ins(o.to)
		place := 0
		for k, l := range there {
			if l.from == o.from && l.tag == o.tag {
				w.out[[2]int{o.to, o.tag}] = len(p.Edges)
				p.Edges = append(p.Edges, plan.Edge{Peer: l.to, Out: true, Slots: l.slots, Index: k, Place: place})
			}
			place += l.slots
		}
	}
	return w
}

// wiring finds edges: tags are unique among the links that end at a rank.
type wiring struct {
	in  map[int]int
	out map[[2]int]int
}

// get is the oldest unread slot of the link with this tag that ends here.
func (w *wiring) get(tag int, partial bool) plan.Ref {
	return plan.Ref{Space: plan.Slot, Count: 1, Edge: w.in[tag], Partial: partial}
}

// put is the next slot to fill of the link to a rank.
func (w *wiring) put(to, tag int, partial bool) plan.Ref {
	return plan.Ref{Space: plan.Slot, Count: 1, Edge: w.out[[2]int{to, tag}], Partial: partial}
}

// through puts the waits and signals of all slots that an op uses around it, and says which part moves through
// them. Data is signalled first: somebody waits for it.
func through(part plan.Affine, op plan.Op) []plan.Op {
	return appendThrough(make([]plan.Op, 0, 1+2*(len(op.Src)+len(op.Dst))), part, op)
}

func appendThrough(ops []plan.Op, part plan.Affine, op plan.Op) []plan.Op {
	each := func(refs []plan.Ref, kind plan.Kind, sync plan.Sync) {
		for k := range refs {
			if r := &refs[k]; r.Space == plan.Slot {
				r.Chunk = part
				ops = append(ops, plan.Op{Kind: kind, Sync: sync, Edge: r.Edge})
			}
		}
	}
	each(op.Src, plan.KindWait, plan.SyncData)
	each(op.Dst, plan.KindWait, plan.SyncCredit)
	ops = append(ops, op)
	each(op.Dst, plan.KindSignal, plan.SyncData)
	each(op.Src, plan.KindSignal, plan.SyncCredit)
	return ops
}

// fold combines sources to a partial result.
func fold(src []plan.Ref, dst ...plan.Ref) plan.Op {
	return plan.Op{Kind: plan.KindReduce, Fold: true, Src: src, Dst: dst}
}

// finish combines sources to the result.
func finish(src []plan.Ref, dst ...plan.Ref) plan.Op {
	return plan.Op{Kind: plan.KindReduce, Fold: true, Final: true, Src: src, Dst: dst}
}

// spread copies one place to several.
func spread(src plan.Ref, dst ...plan.Ref) plan.Op {
	return plan.Op{Kind: plan.KindReduce, Src: []plan.Ref{src}, Dst: dst}
}
