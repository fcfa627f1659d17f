package topo

import "slices"

// Bounds tell before a walk that it cannot find anything better: most of a search's time would go into such walks. They never
// change what is found, because they are true bounds.

// hopeless says that no walk under the limits improves the best graph.
func (t *task) hopeless(l limits) bool {
	s := shapes[l.pattern]
	if s.heads || len(t.sys.Ranks) == 1 {
		return false
	}
	n := t.mostChannels(l)
	if n < l.minCh || n == 0 {
		return true
	}
	if t.inter && s.closes && l.crossNic == 0 && !t.ringCanReturn(l) {
		return true
	}
	b := t.best
	if b.n() == 0 {
		return false
	}
	reach, have := float64(n)*l.bwIntra, float64(b.n())*b.bwIntra
	if reach != have {
		return reach < have
	}
	// At most as much: only fewer hops would win.
	if l.pattern != b.pattern || l.crossNic != b.crossNic {
		return true
	}
	return n*t.fewestHops(l) >= b.hops
}

// mostChannels bounds the number of channels: each channel must get into every GPU, out of the CPUs' groups, and through an
// adapter's port, and a link carries a whole number of flows.
func (t *task) mostChannels(l limits) int {
	key := boundKey{shapes[l.pattern].closes, l.typeIntra, l.typeInter, l.bwIntra, l.bwInter, l.maxCh}
	n, known := t.bounds[key]
	if !known {
		n = t.boundChannels(l)
		if t.bounds == nil {
			t.bounds = map[boundKey]int{}
		}
		t.bounds[key] = n
	}
	return n
}

type boundKey struct {
	closes           bool
	intra, inter     PathType
	bwIntra, bwInter float64
	maxCh            int
}

func (t *task) boundChannels(l limits) int {
	most := l.maxCh
	if t.inter {
		most = min(most, t.portFlows(l.bwInter))
	}
	slow := min(l.bwIntra, l.bwInter)
	if !t.inter {
		slow = l.bwIntra
	}
	devs := t.sys.Nodes[DEVNode]
	if len(devs) < 2 {
		return most
	}
	closes := shapes[l.pattern].closes
	sum := 0
	for _, d := range devs {
		gpus, all := t.flowsInto(d, l, slow)
		sum += gpus
		if closes || t.inter {
			most = min(most, all)
		}
	}
	if !closes || t.inter {
		most = min(most, sum/(len(devs)-1)) // one GPU of a channel is not entered from another
	}
	if closes && len(t.sys.Ranks) > 2 {
		for _, r := range t.sys.Ranks {
			most = min(most, t.flowsPast(r.Node, l, slow))
		}
	}
	if !t.inter { // otherwise a channel may come and go by NICs of the same CPU
		for _, c := range t.sys.Nodes[CPUNode] {
			into := t.flowsBetween(c, l, slow, false)
			if !closes {
				into += t.flowsBetween(c, l, slow, true)
			}
			most = min(most, into)
		}
	}
	return most
}

// portFlows is how many channels can begin at network devices.
func (t *task) portFlows(bw float64) int {
	n := 0
	nets := t.sys.Nodes[NETNode]
	for i, a := range nets {
		if slices.ContainsFunc(nets[:i], func(b *Node) bool { return sameAdapter(a, b) }) {
			continue
		}
		widest := 0.0
		for _, b := range nets[i:] {
			if sameAdapter(a, b) {
				widest = max(widest, b.Net.BW)
			}
		}
		n += flowsOf(widest, bw)
	}
	return n
}

func flowsOf(link, bw float64) int {
	amount := milli(bw)
	if amount <= 0 {
		return maxChannels
	}
	return int(min(milli(link)/amount, maxChannels))
}

// flowsInto is how many flows get into a GPU over allowed ways: from GPUs, and from them and the network.
func (t *task) flowsInto(d *Node, l limits, bw float64) (gpus, all int) {
	n := t.narrow(bw)
	for _, r := range d.Dev.Ranks {
		for _, a := range t.sys.Ranks {
			if a.Device != d {
				n.add(t.sys.path(a.Node, r.Node), l.typeIntra)
			}
		}
	}
	gpus = n.flows()
	if t.inter {
		for _, r := range d.Dev.Ranks {
			for _, a := range t.sys.Nodes[NETNode] {
				n.add(t.sys.path(a, r.Node), l.typeInter)
			}
		}
	}
	return gpus, n.flows()
}

// narrow adds up what links of ways carry, each link once: no more flows of bw fit through all the ways together than through
// the narrowest links of all of them, and than through the last but one of all (the last one leads from a device to its rank).
type narrow struct {
	task        *task
	bw          float64
	least, last int
}

// narrow begins a sum.
func (t *task) narrow(bw float64) narrow {
	if t.seen[0] == nil {
		t.seen = [2][]int32{make([]int32, len(t.sys.Links)), make([]int32, len(t.sys.Links))}
	}
	t.sum++
	return narrow{task: t, bw: bw}
}

func (n *narrow) add(p *path, limit PathType) {
	if p.typ > limit || p.typ >= DIS || p.bw < n.bw || len(p.links) < 2 {
		return
	}
	n.count(0, p.narrow, &n.least)
	n.count(1, p.links[len(p.links)-2], &n.last)
}

func (n *narrow) count(which int, l *Link, to *int) {
	if seen := &n.task.seen[which][l.index]; *seen != n.task.sum {
		*seen = n.task.sum
		*to += flowsOf(l.BW, n.bw)
	}
}

func (n *narrow) flows() int { return min(n.least, n.last) }

// flowsPast is how many rings pass a GPU: a ring comes from one neighbour and goes to another, so that its best neighbour is at
// most one of the two. Every other way counts by its narrowest link.
func (t *task) flowsPast(g *Node, l limits, bw float64) int {
	var best *Node
	widest := 0.0
	for _, a := range t.sys.Ranks {
		if p := t.sys.path(g, a.Node); a.Node != g && p.typ <= l.typeIntra && p.typ < DIS && p.bw > widest {
			best, widest = a.Node, p.bw
		}
	}
	n := t.narrow(bw)
	for _, a := range t.sys.Ranks {
		if a.Node != best && a.Node != g {
			n.add(t.sys.path(a.Node, g), l.typeIntra)
			n.add(t.sys.path(g, a.Node), l.typeIntra)
		}
	}
	if t.inter {
		for _, net := range t.sys.Nodes[NETNode] {
			n.add(t.sys.path(net, g), l.typeInter)
			n.add(t.sys.path(g, net), l.typeInter)
		}
	}
	return n.flows()
}

// flowsBetween is how many flows get to the GPUs of a CPU from those of others, or away from them.
func (t *task) flowsBetween(c *Node, l limits, bw float64, away bool) int {
	n := t.narrow(bw)
	inside, outside := false, false
	for _, b := range t.sys.Ranks {
		if t.home[b.Node.Index] != c {
			outside = true
			continue
		}
		inside = true
		for _, a := range t.sys.Ranks {
			if t.home[a.Node.Index] == c {
				continue
			}
			if away {
				n.add(t.sys.path(b.Node, a.Node), l.typeIntra)
			} else {
				n.add(t.sys.path(a.Node, b.Node), l.typeIntra)
			}
		}
	}
	if !inside || !outside {
		return maxChannels
	}
	return n.flows()
}

// ringCanReturn says whether some adapter lets a channel in at one GPU and out at another.
func (t *task) ringCanReturn(l limits) bool {
	for _, in := range t.sys.Nodes[NETNode] {
		for _, out := range t.sys.Nodes[NETNode] {
			if !sameAdapter(in, out) && (in.Net.Rail == Unknown || in.Net.Rail != out.Net.Rail) {
				continue
			}
			for _, a := range t.sys.Ranks {
				if t.sys.path(in, a.Node).typ > l.typeInter {
					continue
				}
				for _, b := range t.sys.Ranks {
					if a != b && t.sys.path(b.Node, out).typ <= l.typeInter {
						return true
					}
				}
			}
		}
	}
	return false
}

// fewestHops bounds the hops of one channel from below.
func (t *task) fewestHops(l limits) int {
	if t.hops == nil {
		t.hops = map[hopKey]int{}
	}
	key := hopKey{l.typeIntra, l.typeInter, l.pattern, l.crossNic}
	if h, known := t.hops[key]; known {
		return h
	}
	sum, longest := 0, 0
	for _, b := range t.sys.Ranks {
		least := 1 << 20
		for _, a := range t.sys.Ranks {
			if p := t.sys.path(a.Node, b.Node); a != b && p.typ <= l.typeIntra && p.typ < DIS {
				least = min(least, len(p.links))
			}
		}
		sum += least
		longest = max(longest, least)
	}
	if t.inter || !shapes[l.pattern].closes {
		sum -= longest // one GPU is not entered from a GPU
	}
	if t.inter {
		sum += t.fewestNetHops(l)
	}
	t.hops[key] = sum
	return sum
}

// fewestNetHops is the same for the way from and to the network: a ring of several GPUs leaves from another GPU than it came to.
func (t *task) fewestNetHops(l limits) int {
	hops := func(a, b *Node) int {
		if p := t.sys.path(a, b); p.typ <= l.typeInter && p.typ < DIS {
			return len(p.links)
		}
		return 1 << 20
	}
	ring := shapes[l.pattern].closes
	least := 1 << 20
	for _, in := range t.sys.Nodes[NETNode] {
		for _, out := range t.sys.Nodes[NETNode] {
			if l.crossNic == 0 && !sameAdapter(in, out) {
				continue
			}
			for _, a := range t.sys.Ranks {
				for _, b := range t.sys.Ranks {
					if ring && a == b {
						continue
					}
					least = min(least, hops(in, a.Node)+hops(b.Node, out))
				}
			}
		}
	}
	return least
}

type hopKey struct {
	intra, inter PathType
	pattern      Pattern
	crossNic     int
}

// present says whether any way has the type: if none has, allowing it changes nothing.
func (t *task) present(typ PathType) bool {
	if t.types == nil {
		t.types = map[PathType]bool{}
		for _, a := range t.sys.Ranks {
			for _, k := range []Kind{GPUNode, NETNode} {
				for _, n := range t.sys.Nodes[k] {
					t.types[t.sys.path(a.Node, n).typ] = true
					t.types[t.sys.path(n, a.Node).typ] = true
				}
			}
		}
	}
	return t.types[typ]
}
