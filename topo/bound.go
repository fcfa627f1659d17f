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
	sum := 0
	for _, d := range devs {
		flows := t.flowsInto(d, l, slow)
		sum += flows
		if shapes[l.pattern].closes || t.inter {
			most = min(most, flows)
		}
	}
	if !shapes[l.pattern].closes && !t.inter {
		most = min(most, sum/(len(devs)-1)) // a chain does not enter its first GPU
	}
	if shapes[l.pattern].closes || t.inter {
		for _, c := range t.sys.Nodes[CPUNode] {
			most = min(most, t.flowsBetween(c, l, slow, most))
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

// flowsInto is how many flows the links into a GPU carry, of those that allowed ways end with.
func (t *task) flowsInto(d *Node, l limits, bw float64) int {
	seen := map[*Link]bool{}
	n := 0
	into := func(a *Node, limit PathType) {
		for _, r := range d.Dev.Ranks {
			p := t.sys.path(a, r.Node)
			if p.typ > limit || p.typ >= DIS || len(p.links) < 2 || p.bw < bw {
				continue
			}
			last := p.links[len(p.links)-2] // the last one leads from the device to the rank
			if last.To == d && !seen[last] {
				seen[last] = true
				n += flowsOf(last.BW, bw)
			}
		}
	}
	for _, a := range t.sys.Ranks {
		if a.Device != d {
			into(a.Node, l.typeIntra)
		}
	}
	if t.inter {
		for _, a := range t.sys.Nodes[NETNode] {
			into(a, l.typeInter)
		}
	}
	return n
}

// flowsBetween is how many flows get into the GPUs of a CPU from elsewhere, if all of them cross links between CPUs.
func (t *task) flowsBetween(c *Node, l limits, bw float64, most int) int {
	seen := map[*Link]bool{}
	n, inside, outside := 0, false, false
	if t.inter {
		return most // a channel may come and go by NICs of the same CPU
	}
	for _, b := range t.sys.Ranks {
		if t.sys.localCPU(b.Node) != c {
			outside = true
			continue
		}
		inside = true
		for _, a := range t.sys.Ranks {
			p := t.sys.path(a.Node, b.Node)
			if t.sys.localCPU(a.Node) == c || p.typ > l.typeIntra || p.typ >= DIS || p.bw < bw {
				continue
			}
			at := slices.IndexFunc(p.links, func(l *Link) bool { return l.Type == SYS })
			if at < 0 {
				return most
			}
			last := p.links[at]
			for _, k := range p.links[at:] {
				if k.Type == SYS {
					last = k
				}
			}
			if !seen[last] {
				seen[last] = true
				n += flowsOf(last.BW, bw)
			}
		}
	}
	if !inside || !outside {
		return most
	}
	return n
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
