package topo

import "slices"

// How many steps a search may take: with equal channels there is little to try.
const (
	stepsSame  = 1 << 8
	stepsTry   = 1 << 14
	stepsOrder = 1 << 10 // for the first try in index order
	stepsAll   = 1 << 19
)

// complete, in place of the steps that are left, says that nothing better can come.
const complete = -1

// order says how a walk finds the next GPU.
type order int

const (
	byScore  order = iota
	byIndex        // GPUs in order of the file
	asBefore       // as the channel before
	turned         // as the channel before, from its last GPU to its first: that takes the other direction of links
)

// limits are what a walk must keep to.
type limits struct {
	pattern              Pattern
	crossNic             int
	same                 bool // all channels have one order
	typeIntra, typeInter PathType
	bwIntra, bwInter     float64
	minCh, maxCh         int
	anyNext              bool // try all GPUs, also beside a switch
	coll                 bool // only network devices that reduce themselves
}

// walk looks for channels one after the other, each from GPU to GPU, depth first with a budget of steps, and keeps the best
// set of channels that it meets.
type walk struct {
	sys   *System
	inter bool
	limits
	*ledger
	gpus, nets []*Node

	chans []found // those of this moment; the last one may be unfinished
	done  int     // finished channels
	hops  int
	steps int
	best  *best

	sh       *shape
	heads    []int               // the first rank of each GPU
	switched bool                // there is an NVLink switch
	stack    []int               // candidates of all steps of this moment
	sorted   [][]score           // by GPU and network device
	choices  map[choiceKey][]int // network devices
	reached  []int               // from how many others a GPU can be entered, for anyNext
}

// found is a channel as indices of GPU and NET nodes.
type found struct {
	gpus    []int
	in, out int
	used    []bool
}

// best is the best graph so far, over all walks of one search.
type best struct {
	limits
	chans   []found
	hops    int
	latency float64
	fallen  bool // nothing was found: one slow channel in order of the file, over ways that may not exist
}

func (b *best) n() int { return len(b.chans) }

func newWalk(s *System, between bool, b *best) *walk {
	w := &walk{sys: s, inter: between, ledger: newLedger(s), gpus: s.Nodes[GPUNode], nets: s.Nodes[NETNode], best: b,
		choices: map[choiceKey][]int{}, switched: s.Count(NVSNode) > 0, heads: firstRanks(s)}
	w.sorted = make([][]score, len(w.gpus)*(len(w.nets)+1))
	return w
}

// run searches once under the limits. It returns the steps left, or complete.
func (w *walk) run(l limits, steps int) int {
	w.limits, w.steps, w.done, w.hops, w.sh = l, steps, 0, 0, shapes[l.pattern]
	for len(w.chans) < l.maxCh {
		w.chans = append(w.chans, found{gpus: make([]int, len(w.gpus)), used: make([]bool, len(w.gpus)), in: -1, out: -1})
	}
	w.speeds(l.bwIntra, l.bwInter)
	if l.anyNext {
		w.countReach()
	}
	w.next()
	return w.steps
}

// leg is what a walk has still to do in this channel.
type leg struct {
	out   int // step at which it leaves to the network; -1: no more
	close int // step at which it goes back to the first GPU; -1
	order order
}

func (w *walk) firstLeg(o order) leg {
	if w.inter {
		return leg{out: w.sh.leaveAt(len(w.gpus)), close: -1, order: o}
	}
	if w.sh.closes {
		return leg{out: -1, close: len(w.gpus) - 1, order: o}
	}
	return leg{out: -1, close: -1, order: o}
}

// next begins one more channel.
func (w *walk) next() {
	switch {
	case w.inter:
		w.fromNets()
		return
	case w.sh.heads:
		if w.done < len(w.heads) {
			w.enter(nil, w.heads[w.done], 0, w.firstLeg(byScore))
		}
		return
	case w.done == 0:
		w.enter(nil, 0, 0, w.firstLeg(byIndex))
	default:
		before := w.chans[w.done-1].gpus
		w.enter(nil, before[0], 0, w.firstLeg(asBefore))
		if w.anyNext {
			w.enter(nil, before[len(before)-1], 0, w.firstLeg(turned))
		}
	}
	if !w.same || w.done == 0 {
		for g := range w.gpus {
			w.enter(nil, g, 0, w.firstLeg(byScore))
		}
	}
}

// enter goes from a node (nil: the channel begins here) to a GPU, if the links allow it, and on from there.
func (w *walk) enter(from *Node, g, step int, l leg) {
	to := w.gpus[g]
	v := intra
	if from != nil {
		if from.Kind == NETNode {
			v = inter
		}
		if w.anyNext { // there are many to try: those that fail count too
			if w.steps <= 0 {
				return
			}
			w.steps--
		}
		if !w.follow(from, to, v) {
			return
		}
	}
	ch := &w.chans[w.done]
	ch.used[g] = true
	w.visit(g, step, l)
	ch.used[g] = false
	if from != nil {
		w.unfollow(from, to, v)
	}
}

// follow books the way from a to b if its type is allowed and the links have enough left.
func (w *walk) follow(a, b *Node, v level) bool {
	p := w.sys.path(a, b)
	if len(p.links) == 0 && p.typ == LOC {
		return true
	}
	limit := w.typeIntra
	if a.Kind == NETNode || b.Kind == NETNode {
		limit = w.typeInter
	}
	if p.typ >= DIS || p.typ > limit {
		return false
	}
	if w.sh.bothWays && w.sys.path(b, a).typ > limit {
		return false
	}
	if !w.take(a, b, v) {
		return false
	}
	w.hops += len(p.links)
	return true
}

func (w *walk) unfollow(a, b *Node, v level) {
	w.give(a, b, v)
	w.hops -= len(w.sys.path(a, b).links)
}

// visit goes on from GPU g, which is number step of its channel.
func (w *walk) visit(g, step int, l leg) {
	if w.steps <= 0 {
		return
	}
	w.steps--
	if step == len(w.gpus) {
		w.finished()
		return
	}
	ch := &w.chans[w.done]
	if g >= 0 {
		ch.gpus[step] = g
	}
	switch {
	case step == l.out:
		w.leave(g, step, l)
	case w.sh.heads:
		w.head(g)
	case step < len(w.gpus)-1:
		from := w.candidates(g, step, l)
		for i, end := from, len(w.stack); i < end; i++ {
			w.enter(w.gpus[g], w.stack[i], step+1, l)
		}
		w.stack = w.stack[:from]
	case step == l.close:
		first := w.gpus[ch.gpus[0]]
		if w.follow(w.gpus[g], first, intra) {
			w.visit(ch.gpus[0], step+1, leg{out: l.out, close: -1, order: l.order})
			w.unfollow(w.gpus[g], first, intra)
		}
	default:
		w.visit(g, len(w.gpus), leg{out: -1, close: -1, order: l.order})
	}
}

// finished has one more channel: is it the best set so far? Then it looks for another one.
func (w *walk) finished() {
	w.done++
	if w.better() {
		w.keep()
		if w.done == w.maxCh {
			w.steps = complete
		}
	}
	if w.done < w.maxCh {
		w.next()
	}
	w.done--
}

func (w *walk) better() bool {
	b := w.best
	n, old := float64(w.done), float64(b.n())
	switch {
	case w.done < w.minCh:
		return false
	case w.sh.heads: // heads pull data by themselves: the more the better
		return (w.done > b.n() && w.done <= len(w.heads)) || n*w.bwInter > old*b.bwInter
	case n*w.bwIntra != old*b.bwIntra:
		return n*w.bwIntra > old*b.bwIntra
	}
	return w.pattern == b.pattern && w.crossNic == b.crossNic && w.hops < b.hops
}

func (w *walk) keep() {
	b := w.best
	b.limits, b.hops, b.chans = w.limits, w.hops, b.chans[:0]
	b.latency, b.fallen = 0, false
	for _, c := range w.chans[:w.done] {
		b.chans = append(b.chans, found{gpus: slices.Clone(c.gpus), in: c.in, out: c.out})
		if c.in >= 0 {
			b.latency = w.nets[c.in].Net.Latency
		}
	}
}
