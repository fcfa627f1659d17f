package topo

import (
	"cmp"
	"slices"
)

// How many steps a search may take: with equal channels there is little to try.
const (
	stepsSame  = 1 << 8
	stepsTry   = 1 << 14
	stepsOrder = 1 << 10 // for the first try in index order
	stepsAll   = 1 << 19
)

// exhausted: nothing better can come.
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
}

func (b *best) n() int { return len(b.chans) }

func newWalk(s *System, between bool, b *best) *walk {
	w := &walk{sys: s, inter: between, ledger: newLedger(s), gpus: s.Nodes[GPUNode], nets: s.Nodes[NETNode], best: b,
		choices: map[choiceKey][]int{}, switched: s.Count(NVSNode) > 0}
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

func (w *walk) countReach() {
	w.reached = make([]int, len(w.gpus))
	for h, b := range w.gpus {
		for _, a := range w.gpus {
			if p := w.sys.path(a, b); a != b && p.typ <= w.typeIntra && p.typ < DIS && p.bw >= w.bwIntra {
				w.reached[h]++
			}
		}
	}
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
		w.enter(nil, w.done, 0, w.firstLeg(byScore))
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
		return (w.done > b.n() && w.done <= len(w.gpus)) || n*w.bwInter > old*b.bwInter
	case n*w.bwIntra != old*b.bwIntra:
		return n*w.bwIntra > old*b.bwIntra
	}
	return w.pattern == b.pattern && w.crossNic == b.crossNic && w.hops < b.hops
}

func (w *walk) keep() {
	b := w.best
	b.limits, b.hops, b.chans = w.limits, w.hops, b.chans[:0]
	b.latency = 0
	for _, c := range w.chans[:w.done] {
		b.chans = append(b.chans, found{gpus: slices.Clone(c.gpus), in: c.in, out: c.out})
		if c.in >= 0 {
			b.latency = w.nets[c.in].Net.Latency
		}
	}
}

// fromNets begins a channel at each network device in turn.
func (w *walk) fromNets() {
	nets := w.choice(nil)
	begun := false
	for i := range nets {
		if w.sh.heads && begun {
			return
		}
		n := nets[(w.done+i)%len(nets)]
		net := w.nets[n]
		amount := w.amounts[inter][whole]
		if w.ports[n] < amount {
			continue
		}
		if w.sh.closes && w.crossNic == 2 && w.done%2 == 1 && n != w.chans[w.done-1].out {
			continue
		}
		w.chans[w.done].in = n
		w.port(net, amount)
		switch {
		case w.sh.heads:
			begun = w.headAt(net, len(nets))
		case w.done > 0 && w.same:
			w.enter(net, w.chans[w.done-1].gpus[0], 0, w.firstLeg(asBefore))
		default:
			w.fromNet(net)
		}
		w.port(net, -amount)
	}
}

// fromNet begins a channel at a network device: in index order first, then at the GPUs close to the device.
func (w *walk) fromNet(net *Node) {
	if w.done == 0 && !w.switched {
		mine := w.steps
		w.steps = stepsOrder
		w.enter(net, 0, 0, w.firstLeg(byIndex))
		if w.steps != complete {
			w.steps = mine
		}
	}
	if w.anyNext {
		if w.steps <= 0 {
			return
		}
		from := len(w.stack)
		for g := range w.gpus {
			w.stack = append(w.stack, g)
		}
		w.mostRoom(net, w.stack[from:], inter)
		for i, end := from, len(w.stack); i < end; i++ {
			w.enter(net, w.stack[i], 0, w.firstLeg(byScore))
		}
		w.stack = w.stack[:from]
		return
	}
	first := net.Net.localGPU
	if first != nil {
		w.enter(net, first.Index, 0, w.firstLeg(byScore))
	}
	close, _ := w.sys.local(net, GPUNode)
	for _, g := range close {
		if g != first {
			w.enter(net, g.Index, 0, w.firstLeg(byScore))
		}
	}
}

// leave goes from GPU g to the network.
func (w *walk) leave(g, step int, l leg) {
	ch := &w.chans[w.done]
	start := w.nets[ch.in]
	for _, n := range w.choice(w.gpus[g]) {
		net := w.nets[n]
		if !w.mayLeave(n, net, start) {
			continue
		}
		v, then := inter, -1
		if w.pattern == BalancedTree {
			v = interHalf
			if step == 0 {
				then = 1
			} else if n != ch.out {
				continue
			}
		}
		if w.follow(w.gpus[g], net, v) {
			ch.out = n
			w.visit(g, step, leg{out: then, close: l.close, order: l.order})
			w.unfollow(w.gpus[g], net, v)
		}
	}
}

func (w *walk) mayLeave(n int, net, start *Node) bool {
	if a, b := net.Net.Plane, start.Net.Plane; a != Unknown && b != Unknown && a != b {
		return false
	}
	switch {
	case w.pattern == Tree:
		return net == start
	case w.sh.closes && w.crossNic == 2:
		return w.done%2 == 0 || n == w.chans[w.done-1].in
	case w.crossNic == 0:
		return sameAdapter(net, start) || (net.Net.Rail != Unknown && net.Net.Rail == start.Net.Rail)
	}
	return true
}

// choice lists the network devices to try, for one GPU or (nil) for all: their own ones first, then all that the type allows.
func (w *walk) choice(only *Node) []int {
	k := choiceKey{-1, w.typeInter}
	gpus := w.gpus
	if only != nil {
		k.gpu, gpus = only.Index, []*Node{only}
	}
	list, known := w.choices[k]
	if !known {
		list = w.choose(gpus)
		w.choices[k] = list
	}
	return list
}

type choiceKey struct {
	gpu int
	typ PathType
}

func (w *walk) choose(gpus []*Node) []int {
	var list []int
	add := func(n int) {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, g := range gpus {
		first := -1
		for c := 0; ; c++ {
			n := w.sys.localNet(g, c)
			if n == nil || n.Index == first {
				break
			}
			if first < 0 {
				first = n.Index
			}
			add(n.Index)
		}
	}
	for t := LOC; t <= w.typeInter; t++ {
		for _, g := range gpus {
			for _, n := range w.nets {
				if w.sys.path(g, n).typ == t {
					add(n.Index)
				}
			}
		}
	}
	return list
}

// candidates puts the GPUs to try after g on the stack and returns from where.
func (w *walk) candidates(g, step int, l leg) (from int) {
	from = len(w.stack)
	ch := &w.chans[w.done]
	switch {
	case l.order == byIndex:
		w.stack = append(w.stack, step+1)
	case l.order == asBefore:
		w.stack = append(w.stack, w.chans[w.done-1].gpus[step+1])
	case l.order == turned:
		before := w.chans[w.done-1].gpus
		w.stack = append(w.stack, before[len(before)-2-step])
	case w.anyNext:
		for h := range w.gpus {
			if h != g && !ch.used[h] {
				w.stack = append(w.stack, h)
			}
		}
		w.mostRoom(w.gpus[g], w.stack[from:], intra)
	case w.switched: // a switch likes few peers: neighbours only
		n := len(w.gpus)
		prev, next := (g+n-1)%n, (g+1)%n
		for _, h := range w.sh.neighbours(prev, next) {
			if !ch.used[h] && len(w.sys.path(w.gpus[g], w.gpus[h]).links) > 0 && !slices.Contains(w.stack[from:], h) {
				w.stack = append(w.stack, h)
			}
		}
	default:
		net := -1
		if l.out >= 0 {
			net = ch.in
		}
		equal := true
		var first score
		for _, s := range w.scores(g, net) {
			if ch.used[s.g] {
				continue
			}
			if len(w.stack) == from {
				first = s
			}
			equal = equal && s.bw == first.bw && s.hops == first.hops
			w.stack = append(w.stack, s.g)
		}
		// Away from the step that leaves to the network the last one comes first, if all are equal.
		if equal && l.out >= 0 && l.out != step+1 {
			slices.Reverse(w.stack[from:])
		}
	}
	return from
}

// mostRoom sorts GPUs: those that few others reach first, because they fit in few places; then by what the way from a node has
// left, and by how good the way is.
func (w *walk) mostRoom(from *Node, list []int, v level) {
	type key struct {
		few  int
		room int64
		typ  PathType
		hops int
	}
	var few [32]key // no allocation on ordinary machines
	keys := few[:0]
	for i, h := range list {
		p := w.sys.path(from, w.gpus[h])
		k := key{few: w.reached[h], room: -1, typ: p.typ, hops: len(p.links)}
		if p.typ < DIS {
			k.room = 1 << 62
			for _, c := range w.cost(from, w.gpus[h]) {
				k.room = min(k.room, w.left[c.link]-w.amounts[v][c.rate])
			}
		}
		j := i
		for ; j > 0; j-- {
			q := keys[j-1]
			if cmp.Or(q.few-k.few, cmp.Compare(k.room, q.room), cmp.Compare(q.typ, k.typ), q.hops-k.hops) <= 0 {
				break
			}
		}
		keys = slices.Insert(keys, j, k)
		copy(list[j+1:i+1], list[j:i])
		list[j] = h
	}
}

// score is how good a GPU is as the next one: close to the channel's NIC, then close to the GPU before.
type score struct {
	g              int
	netBW, pciBW   int
	netHops        int
	bw             int
	hops, distance int
}

func (a score) compare(b score) int {
	return cmp.Or(b.netBW-a.netBW, b.pciBW-a.pciBW, a.netHops-b.netHops, b.bw-a.bw, a.hops-b.hops, a.distance-b.distance)
}

// scores sorts the GPUs that g reaches, for a channel that began at a network device (-1: none).
func (w *walk) scores(g, net int) []score {
	at := g*(len(w.nets)+1) + net + 1
	if w.sorted[at] != nil {
		return w.sorted[at]
	}
	list := []score{}
	for i := 1; i < len(w.gpus); i++ {
		h := (g + i) % len(w.gpus)
		p := w.sys.path(w.gpus[g], w.gpus[h])
		if len(p.links) == 0 {
			continue
		}
		s := score{g: h, bw: int(p.bw), hops: len(p.links), distance: i}
		if net >= 0 {
			q := w.sys.path(w.nets[net], w.gpus[h])
			s.netBW, s.netHops, s.pciBW = int(q.bw), len(q.links), int(w.sys.pciBW(w.gpus[h]))
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, score.compare)
	w.sorted[at] = list
	return list
}

// pciBW is the bandwidth of a GPU's PCI link.
func (s *System) pciBW(g *Node) float64 {
	for _, l := range g.Rank.Device.Out {
		if l.Type == PIX {
			return l.BW
		}
	}
	return 0
}
