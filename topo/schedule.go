package topo

import "slices"

// Speeds of one channel that are tried, high to low (NCCL 2.30.7; shared/topo/FORMAT.md, section 5).
var (
	speedsIntra    = []float64{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	speedsIntra90  = []float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	speedsIntra100 = []float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}
	speedsInter    = []float64{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
	speedsInter90  = []float64{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	speedsInter100 = []float64{96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
)

// keepLooking is how far below the best speed found a slower one is still tried.
const keepLooking = .49

// task is the search for one graph.
type task struct {
	sys          *System
	opt          Options
	inter        bool
	pattern      Pattern
	minCh, maxCh int
	minSM        int

	total              float64
	minIntra, maxIntra PathType
	minInter, maxInter PathType
	speeds             []float64
	mayCross           int
	best               *best
	walk               *walk
	left               int // steps in all
	hops               map[hopKey]int
	types              map[PathType]bool
	coll               bool      // see limits
	unbounded          bool      // for the test of bounds
	runs               int       // walks, for the same
	extra              []float64 // speeds beyond the list
	home               []*Node   // the CPUs of the GPUs
	bounds             map[boundKey]int
	seen               [2][]int32 // by Link.index: the sum that counted it last
	sum                int32
}

func newTask(s *System, o Options, p Pattern, minCh, maxCh int) *task {
	t := &task{sys: s, opt: o, inter: o.Nodes > 1, pattern: p, minCh: minCh, maxCh: maxCh, minSM: s.minSM(), left: stepsAll}
	if len(s.Ranks) == 1 && p != Ring {
		t.pattern = Tree
	}
	t.mayCross = o.CrossNic
	if !t.inter || s.Count(NETNode) < 2 || !shapes[t.pattern].crosses {
		t.mayCross = 0
	}
	t.minIntra, t.maxIntra, t.minInter, t.maxInter = LOC, SYS, PIX, SYS
	if len(s.Ranks) > 1 {
		t.minIntra, t.maxIntra = s.pathRange(GPUNode)
	}
	if t.inter {
		t.minInter, t.maxInter = s.pathRange(NETNode)
	}
	t.total = s.TotalBW(t.inter)
	t.speeds = t.table()
	if t.pattern == Ring && s.splitNVLink() && t.maxCh >= 2 && t.minCh == 1 {
		t.minCh = 2 // two halves joined by something slow: a tree will do better, and needs two channels
	}
	for _, r := range s.Ranks {
		t.home = append(t.home, s.localCPU(r.Node))
	}
	t.best = &best{limits: t.first()}
	t.walk = newWalk(s, t.inter, t.best)
	return t
}

func (t *task) table() []float64 {
	i := 0
	if t.minSM >= 90 {
		i = 1
	}
	if t.minSM >= 100 {
		i = 2
	}
	if t.inter {
		return [][]float64{speedsInter, speedsInter90, speedsInter100}[i]
	}
	return [][]float64{speedsIntra, speedsIntra90, speedsIntra100}[i]
}

// first are the limits that the search begins with.
func (t *task) first() limits {
	l := limits{pattern: t.pattern, same: !shapes[t.pattern].heads, typeIntra: t.minIntra, typeInter: t.minInter,
		minCh: t.minCh, maxCh: t.maxCh, coll: t.coll}
	if t.mayCross == 1 {
		l.crossNic = 1
	}
	return l
}

// startSpeed is the first speed that the machine could carry at all.
func (t *task) startSpeed(minCh int) int {
	total := t.total
	if n := t.devices(); n > 1 && t.pattern != Ring {
		total *= float64(n) / float64(n-1)
	}
	i, top := 0, t.sys.MaxBW(t.inter)
	for i < len(t.speeds)-1 && (t.speeds[i] > top || t.speeds[i]*float64(minCh) > total) {
		i++
	}
	return i
}

func (t *task) devices() int { return t.sys.Count(DEVNode) }

func (t *task) run(l limits) int {
	if !t.unbounded && t.hopeless(l) {
		return 1 // as after a walk that tried everything
	}
	t.runs++
	steps := stepsTry
	if l.same {
		steps = stepsSame
	}
	t.left -= steps
	rest := t.walk.run(l, steps)
	if rest == complete {
		t.left = stepsAll
	} else {
		t.left += rest
	}
	return rest
}

func (t *task) enough() bool { return float64(t.best.n())*t.best.bwInter >= t.total }

// widen tries ever more, from what is best to what is allowed: other orders, simpler trees, worse paths, other NICs, slower
// channels. It ends with the first complete answer.
func (t *task) widen() {
	speed := t.startSpeed(t.minCh)
	l := t.first()
	l.bwIntra, l.bwInter = t.speeds[speed], t.speeds[speed]
	start := l
	for {
		if t.run(l) == complete || t.enough() {
			return
		}
		amd := t.sys.Nodes[CPUNode][0].CPU.amd && l.typeIntra == SYS
		if l.same && !amd {
			l.same = false
			continue
		}
		l.same = start.same
		if t.left < 0 && t.best.n() > 0 {
			return
		}
		if t.minSM >= 90 && l.pattern == BalancedTree {
			l.pattern = Tree
			continue
		}
		l.pattern = t.best.pattern
		found := t.best.n() > 0
		maxIntra := t.maxIntra
		if t.inter {
			maxIntra = l.typeInter // inside no worse than outside
		}
		if typ := t.nextType(l.typeIntra, maxIntra, t.best.typeIntra); typ < DIS {
			l.typeIntra = typ
			continue
		}
		l.typeIntra = start.typeIntra
		if t.inter {
			if typ := t.nextType(l.typeInter, t.maxInter, max(PXN, t.best.typeInter)); typ < DIS {
				l.typeInter = typ
				continue
			}
		}
		l.typeInter = start.typeInter
		if t.mayCross == 2 && l.crossNic == 0 && (l.pattern == Ring || l.pattern == BalancedTree) {
			l.crossNic = 2
			continue
		}
		l.crossNic = start.crossNic
		if speed < len(t.speeds)-1 && (!found || t.speeds[speed+1]/t.best.bwInter > keepLooking) {
			speed++
			l.bwIntra, l.bwInter = t.speeds[speed], t.speeds[speed]
			continue
		}
		return
	}
}

// nextType is the next worse type that any way has, at most the limit and, if something was found, enough. It is DIS if there
// is none.
func (t *task) nextType(typ, limit, enough PathType) PathType {
	if t.best.n() > 0 {
		limit = min(limit, enough)
	}
	for typ++; typ <= limit; typ++ {
		if t.present(typ) {
			return typ
		}
	}
	return DIS
}

// double makes two channels of each fast one: more channels keep more of a GPU busy.
func (t *task) double() {
	b := t.best
	n := b.n()
	if n == 0 || shapes[b.pattern].heads || b.bwIntra < 25 || (t.minSM > 80 && b.bwIntra < 50 && n > 4) {
		return
	}
	more := min(2*n, t.maxCh)
	times := float64((more + n - 1) / n)
	b.chans = append(b.chans, slices.Clone(b.chans[:more-n])...)
	b.bwIntra /= times
	b.bwInter /= times
}

// raise makes the channels that were found faster: rings as a whole, trees inside the system up to twice the network's speed,
// NVLS towards the network.
func (t *task) raise() {
	if t.best.n() == 0 {
		return
	}
	speed := 0
	for speed < len(t.speeds)-1 && t.speeds[speed] > t.best.bwInter {
		speed++
	}
	l := t.best.limits
	l.bwIntra, l.bwInter = t.speeds[speed], t.speeds[speed]
	l.minCh, l.maxCh = t.best.n(), t.maxCh
	for rest := complete; rest != 0 && speed > 0; {
		switch {
		case t.pattern == Ring:
			speed--
			l.bwIntra, l.bwInter = t.speeds[speed], t.speeds[speed]
		case t.pattern == NVLS && l.bwInter == t.best.bwInter && l.bwInter < 2*l.bwIntra:
			l.minCh, l.maxCh = t.best.n(), t.best.n()
			speed--
			l.bwInter = t.speeds[speed]
		case t.pattern != NVLS && l.bwIntra == t.best.bwIntra && l.bwIntra < 2*l.bwInter:
			speed--
			l.bwIntra = t.speeds[speed]
		default:
			return
		}
		rest = t.run(l)
	}
}

// pathRange is the best and the worst type of the ways from GPUs to the nodes of a kind.
func (s *System) pathRange(k Kind) (best, worst PathType) {
	best, worst = DIS, LOC
	for _, g := range s.Nodes[GPUNode] {
		for _, n := range s.Nodes[k] {
			if n == g {
				continue
			}
			t := s.path(g, n).typ
			best, worst = min(best, t), max(worst, t)
		}
	}
	return best, worst
}

// minSM is the lowest compute capability.
func (s *System) minSM() int {
	sm := 1 << 30
	for _, d := range s.Nodes[DEVNode] {
		sm = min(sm, d.Dev.SM)
	}
	return sm
}

// MaxBW is the bandwidth of the best way of one flow: between GPUs, or between GPU and network if there are more systems.
func (s *System) MaxBW(inter bool) float64 {
	if !inter && s.Count(DEVNode) == 1 {
		return LocalBW
	}
	k := DEVNode
	if inter {
		k = NETNode
	}
	bw := 0.0
	for _, d := range s.Nodes[DEVNode] {
		for _, n := range s.Nodes[k] {
			if n != d {
				bw = max(bw, s.path(d, n).bw)
			}
		}
	}
	return bw
}

// TotalBW is what one GPU can send at once at best: over NVLink or over PCI.
func (s *System) TotalBW(inter bool) float64 {
	if !inter && s.Count(DEVNode) == 1 {
		return LocalBW
	}
	bw := 0.0
	for _, d := range s.Nodes[DEVNode] {
		nvl, pci := 0.0, 0.0
		for _, l := range d.Out {
			switch l.Type {
			case NVL:
				nvl += l.BW
			case PIX:
				pci = l.BW
			}
		}
		bw = max(bw, nvl, pci)
	}
	return bw
}

// splitNVLink says whether several groups of GPUs have NVLink inside but not between them.
func (s *System) splitNVLink() bool {
	group := map[*Node]int{}
	groups := 0
	for i, a := range s.Nodes[GPUNode] {
		if _, seen := group[a]; seen {
			continue
		}
		members := 0
		for _, b := range s.Nodes[GPUNode] {
			if a != b && s.path(a, b).typ == NVL {
				group[b] = i
				members++
			}
		}
		group[a] = i
		if members > 0 {
			groups++
		}
	}
	return groups > 1
}
