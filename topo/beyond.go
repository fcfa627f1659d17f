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
	stepsWide  = 1 << 12 // of one walk
	stepsExtra = 1 << 15 // of all walks of one graph
	parts      = 8       // a link is cut in at most so many equal flows
)

// improve looks further and returns the better graph.
func (t *task) improve(found *best) *best {
	if t.opt.Strict || len(t.sys.Ranks) == 1 {
		return found
	}
	if !shapes[found.pattern].heads && t.sys.Count(DEVNode) > 1 {
		found = t.wider(found)
	}
	return found
}

// wider runs walks over all orders. The speeds with the most to win come first. What is found must be worth the change.
func (t *task) wider(first *best) *best {
	w := newWalk(t.sys, t.inter, nil)
	least := worth * first.total(t.inter)
	found, have := first, 0.0
	left := stepsExtra
	for _, typ := range t.typeSteps(first) {
		for _, l := range t.candidateLimits(first, typ) {
			if reach := float64(l.maxCh) * l.bwIntra; left <= 0 || reach < least || value(l.maxCh, l.bwIntra) <= have {
				continue
			}
			if t.inter && l.pattern == Ring && l.crossNic == 0 && !t.ringCanReturn(l) {
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

// bothWays slows trees down to what links carry when data go up and down a tree, half of the speed each. The walk, like NCCL's,
// books the whole speed downwards, which says the same only where both directions of links are equal.
func (t *task) bothWays(b *best) {
	if b.n() == 0 || !shapes[b.pattern].bothWays {
		return
	}
	if room := t.room(b, true); room < 1 {
		b.bwIntra = math.Floor(b.bwIntra*room*100) / 100
		b.bwInter = math.Floor(b.bwInter*room*100) / 100
	}
}

// typeSteps are the worst ways that are allowed: first those that the found graph has, then all.
func (t *task) typeSteps(found *best) [][2]PathType {
	steps := [][2]PathType{{found.typeIntra, found.typeInter}}
	worstIntra, worstInter := LOC, found.typeInter
	for typ := LOC; typ < NET; typ++ {
		if t.present(typ) {
			worstIntra = typ
		}
	}
	if t.inter {
		worstInter = worstIntra
		steps = append(steps, [2]PathType{worstIntra, found.typeInter})
	}
	return append(steps, [2]PathType{worstIntra, worstInter})
}

// candidateLimits are the walks worth trying, most promising first.
func (t *task) candidateLimits(found *best, typ [2]PathType) []limits {
	type candidate struct {
		limits
		reach float64
	}
	patterns := []Pattern{found.pattern}
	if t.pattern == BalancedTree && t.inter {
		patterns = []Pattern{BalancedTree, Tree, SplitTree}
	}
	var list []candidate
	for _, p := range patterns {
		for _, cross := range []int{0, 2} {
			if cross == 2 && (t.mayCross != 2 || p != Ring) {
				continue
			}
			for _, bw := range t.linkSpeeds() {
				l := limits{pattern: p, crossNic: max(cross, t.mayCross&1), typeIntra: typ[0], typeInter: typ[1], bwIntra: bw, bwInter: bw,
					minCh: 1, maxCh: maxChannels / 2, anyNext: true}
				l.maxCh = t.mostChannels(l)
				if cross == 2 {
					l.maxCh -= l.maxCh % 2 // channels come in pairs
				}
				list = append(list, candidate{l, value(l.maxCh, bw)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.reach, a.reach), cmp.Compare(b.bwIntra, a.bwIntra))
	})
	out := make([]limits, len(list))
	for i, c := range list {
		out[i] = c.limits
	}
	return out
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
	return t.extra
}

// stretch makes all channels as fast as the links carry them, if that is worth it.
func (t *task) stretch(b *best) {
	if t.opt.Strict || b.n() == 0 {
		return
	}
	room := t.room(b, false)
	if shapes[b.pattern].bothWays {
		room = min(room, t.room(b, true))
	}
	if room < worth || room > 1e6 {
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
