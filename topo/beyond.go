package topo

import (
	"cmp"
	"math"
	"slices"
)

// NCCL's search tries a list of speeds, beside a switch only neighbouring GPUs, as many trees as rings, and on AMD CPUs only equal
// rings. On odd machines that leaves much unused: one GPU without NVLink drops a node to one channel of 0.1 GB/s. This file
// looks further: any next GPU, most room first, with speeds made from the machine's own links. What it finds replaces the
// first answer only if it is clearly faster, so that ordinary machines keep the orders that everybody knows.

const (
	worth      = 1.05    // how much faster another graph must be
	stepsWide  = 1 << 13 // of one walk
	stepsExtra = 1 << 16 // of all walks of one graph
	parts      = 8       // a link is cut in at most so many equal flows
)

// improve looks further and returns the better graph.
func (t *task) improve(found *best) *best {
	if t.opt.Strict || len(t.sys.Ranks) == 1 {
		return found
	}
	if !shapes[found.pattern].heads && t.sys.Count(DEVNode) > 1 {
		if further := t.wider(found); further != found {
			t.tighten(further)
			return further
		}
	}
	return found
}

// wider runs walks over all orders. What is found must be worth the change.
func (t *task) wider(first *best) *best {
	w := newWalk(t.sys, t.inter, nil)
	least := worth * first.total(t.inter)
	found, have := first, value(first.n(), first.total(t.inter)/max(1, float64(first.n())))
	left := stepsExtra
	for _, l := range t.candidates(first) {
		if reach := float64(l.maxCh) * l.bwIntra; left <= 0 || reach < least || value(l.maxCh, l.bwIntra) <= have {
			continue
		}
		b := &best{limits: l}
		w.best = b
		rest := w.run(l, min(stepsWide, left))
		left -= stepsWide - max(0, rest)
		t.bothWays(b)
		if got := value(b.n(), b.total(t.inter)/max(1, float64(b.n()))); got > have && b.total(t.inter) >= least {
			found, have = b, got
		}
	}
	return found
}

// value is the bandwidth that a collective gets, less a little for each channel: a channel keeps a part of every GPU busy.
func value(channels int, bw float64) float64 {
	return float64(channels) * bw * (1 - .015*float64(channels))
}

// total is the bandwidth without that.
func (b *best) total(inter bool) float64 {
	bw := b.bwIntra
	if inter {
		bw = min(bw, b.bwInter)
	}
	return float64(b.n()) * bw
}

// bothWays slows trees down where a link has less bandwidth one way than the other: data go up and down a tree, half of the
// speed each, while the walk, like NCCL's, books the whole speed downwards.
func (t *task) bothWays(b *best) {
	if b.n() == 0 || !shapes[b.pattern].bothWays || !t.sys.lopsided() {
		return
	}
	if room := t.room(b, true); room < 1 {
		b.bwIntra = math.Floor(b.bwIntra*room*100) / 100
		b.bwInter = math.Floor(b.bwInter*room*100) / 100
	}
}

// lopsided says whether some link is slower in one direction.
func (s *System) lopsided() bool {
	return slices.ContainsFunc(s.Links, func(l *Link) bool { return l.Rev == nil || l.Rev.BW != l.BW })
}

// tighten sets the types of a graph to the worst that it has.
func (t *task) tighten(b *best) {
	b.typeIntra, b.typeInter = t.minIntra, t.minInter
	gpus, nets := t.sys.Nodes[GPUNode], t.sys.Nodes[NETNode]
	within := func(x, y *Node) { b.typeIntra = max(b.typeIntra, t.sys.path(x, y).typ) }
	outside := func(x, y *Node) { b.typeInter = max(b.typeInter, t.sys.path(x, y).typ) }
	for _, c := range b.chans {
		n := len(c.gpus)
		for i := 1; i < n; i++ {
			x, y := gpus[c.gpus[i-1]], gpus[c.gpus[i]]
			within(x, y)
			if shapes[b.pattern].bothWays {
				within(y, x)
			}
		}
		first, second, last := gpus[c.gpus[0]], gpus[c.gpus[min(1, n-1)]], gpus[c.gpus[n-1]]
		if c.in < 0 {
			if b.pattern == Ring {
				within(last, first)
			}
			continue
		}
		in, out := nets[c.in], nets[c.out]
		outside(in, first)
		switch b.pattern {
		case Ring:
			outside(last, out)
		case Tree:
			outside(first, out)
		case BalancedTree:
			outside(first, out)
			outside(second, out)
		case SplitTree:
			outside(second, out)
		}
		if shapes[b.pattern].bothWays { // walks ask for both directions of each of these ways
			outside(first, in)
			outside(out, second)
		}
	}
}

// candidates are the walks worth trying: first those for few channels, which end soon and spare others; then those with the
// better ways.
func (t *task) candidates(first *best) []limits {
	patterns := []Pattern{first.pattern}
	if t.pattern == BalancedTree && t.inter {
		patterns = []Pattern{BalancedTree, Tree, SplitTree}
	}
	worst, types := LOC, []PathType{first.typeInter}
	for typ := LOC; typ < NET; typ++ {
		if t.present(typ) {
			worst = typ
		}
	}
	if t.inter {
		types = nil
		for typ := t.minInter; typ <= worst; typ++ {
			if t.present(typ) {
				types = append(types, typ)
			}
		}
	}
	var list []limits
	for _, p := range patterns {
		for _, cross := range []int{0, 2} {
			if cross == 2 && (t.mayCross != 2 || p != Ring) {
				continue
			}
			for _, bw := range t.linkSpeeds() {
				for _, typ := range types {
					l := limits{pattern: p, crossNic: max(cross, t.mayCross&1), typeIntra: worst, typeInter: typ, bwIntra: bw, bwInter: bw,
						minCh: 1, maxCh: maxChannels / 2, anyNext: true}
					l.maxCh = t.mostChannels(l)
					if cross == 2 {
						l.maxCh -= l.maxCh % 2 // channels come in pairs
					}
					if t.inter && p == Ring && l.crossNic == 0 && !t.ringCanReturn(l) {
						l.maxCh = 0
					}
					list = append(list, l)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b limits) int {
		return cmp.Or(a.maxCh-b.maxCh, cmp.Compare(b.bwIntra, a.bwIntra), cmp.Compare(a.typeInter, b.typeInter))
	})
	return list
}

// linkSpeeds are the speeds at which some link is used up: its bandwidth and equal parts of it.
func (t *task) linkSpeeds() []float64 {
	if t.extra != nil {
		return t.extra
	}
	seen := map[int64]bool{}
	top := min(t.sys.MaxBW(t.inter), t.speeds[0]) // the fastest of the list is what one channel can do
	for _, l := range t.sys.Links {
		for k := 1; k <= parts; k++ {
			for _, f := range []float64{1, rateFactor[overhead]} {
				bw := math.Floor(l.BW/float64(k)/f*100) / 100
				if bw >= .1 && bw <= top {
					seen[milli(bw)] = true
				}
			}
		}
	}
	for bw := range seen {
		t.extra = append(t.extra, float64(bw)/1000)
	}
	slices.SortFunc(t.extra, func(a, b float64) int { return cmp.Compare(b, a) })
	last := math.Inf(1)
	t.extra = slices.DeleteFunc(t.extra, func(bw float64) bool {
		if bw > .98*last { // hardly slower than another one
			return true
		}
		last = bw
		return false
	})
	return t.extra
}

// stretch makes all channels as fast as the links carry them, if that is worth it.
func (t *task) stretch(b *best) {
	if t.opt.Strict || b.n() == 0 || (!t.inter && t.sys.Count(DEVNode) == 1) {
		return
	}
	room := t.room(b, false)
	if shapes[b.pattern].bothWays && t.sys.lopsided() {
		room = min(room, t.room(b, true))
	}
	if !shapes[b.pattern].heads { // the fastest of the list is what one channel can do
		bw := b.bwIntra
		if t.inter {
			bw = b.bwInter
		}
		room = min(room, t.speeds[0]/bw)
	}
	if room < worth || math.IsInf(room, 1) {
		return
	}
	b.bwIntra = math.Floor(b.bwIntra*room*100) / 100
	b.bwInter = math.Floor(b.bwInter*room*100) / 100
}

// room is by what factor all channels together could be faster.
func (t *task) room(b *best, bothWays bool) float64 {
	l := newLedger(t.sys)
	full := slices.Clone(l.left)
	ports := slices.Clone(l.ports)
	for i := range l.left {
		l.left[i] = math.MaxInt64 / 2
	}
	start := slices.Clone(l.left)
	l.speeds(b.bwIntra, b.bwInter)
	for _, c := range b.chans {
		t.load(l, b.limits, c, bothWays)
	}
	room := math.Inf(1)
	for i := range l.left {
		if used := start[i] - l.left[i]; used > 0 {
			room = min(room, float64(full[i])/float64(used))
		}
	}
	for i, p := range l.ports {
		if used := ports[i] - p; used > 0 {
			room = min(room, float64(ports[i])/float64(used))
		}
	}
	return room
}

// load books all flows of a channel; bothWays: half of a tree's flow inside the system goes back.
func (t *task) load(l *ledger, lim limits, c found, bothWays bool) {
	gpus, nets := t.sys.Nodes[GPUNode], t.sys.Nodes[NETNode]
	n := len(c.gpus)
	if shapes[lim.pattern].heads {
		nvs := t.sys.Nodes[NVSNode][0]
		head := gpus[c.gpus[0]].Rank.Device
		for _, d := range t.sys.Nodes[DEVNode] {
			v := intra
			if d == head {
				v = intraTwice
			}
			l.take(nvs, d.Dev.Ranks[0].Node, v)
			l.take(d.Dev.Ranks[0].Node, nvs, v)
		}
		n = 1
	}
	for i := 1; i < n; i++ {
		a, b := gpus[c.gpus[i-1]], gpus[c.gpus[i]]
		if bothWays {
			l.take(a, b, intraHalf)
			l.take(b, a, intraHalf)
		} else {
			l.take(a, b, intra)
		}
	}
	if c.in < 0 {
		if lim.pattern == Ring {
			l.take(gpus[c.gpus[n-1]], gpus[c.gpus[0]], intra)
		}
		return
	}
	out := nets[c.out]
	l.port(nets[c.in], l.amounts[inter][whole])
	l.take(nets[c.in], gpus[c.gpus[0]], inter)
	second := gpus[c.gpus[min(1, n-1)]]
	switch lim.pattern {
	case Ring:
		l.take(gpus[c.gpus[n-1]], out, inter)
	case BalancedTree:
		l.take(gpus[c.gpus[0]], out, interHalf)
		l.take(second, out, interHalf)
	case SplitTree:
		l.take(second, out, inter)
	default:
		l.take(gpus[c.gpus[0]], out, inter)
	}
}
