package topo

import "slices"

// path is a way from one node to another. A path without links between different nodes is none (DIS).
type path struct {
	typ   PathType
	bw    float64 // of its narrowest link
	links []*Link

	narrow *Link // the narrowest one, the last of equal ones
}

// betterThan prefers the type, then the bandwidth, then fewer hops.
func (p path) betterThan(q path) bool {
	switch {
	case p.typ != q.typ:
		return p.typ < q.typ
	case p.bw != q.bw:
		return p.bw > q.bw
	}
	return len(p.links) < len(q.links)
}

func (p *path) setNarrow() {
	for _, l := range p.links {
		if p.narrow == nil || l.BW <= p.narrow.BW {
			p.narrow = l
		}
	}
}

// path returns the way from a to b.
func (s *System) path(a, b *Node) *path { return &s.paths[a.at][b.at] }

// Path describes the way from a to b: its type, the bandwidth of its narrowest link and the number of links.
func (s *System) Path(a, b *Node) (PathType, float64, int) {
	p := s.path(a, b)
	return p.typ, p.bw, len(p.links)
}

// Route returns the links of the way from a to b.
func (s *System) Route(a, b *Node) []*Link { return slices.Clone(s.path(a, b).links) }

// computePaths finds all ways, then applies what GPUs and NICs may do directly.
func (s *System) computePaths(o Options) {
	total := s.total()
	s.paths = make([][]path, total)
	for i := range s.paths {
		s.paths[i] = make([]path, total)
		for j := range s.paths[i] {
			s.paths[i][j].typ = DIS
		}
	}
	for _, k := range []Kind{CPUNode, DEVNode, GPUNode, NETNode, NVSNode} {
		for i, base := range s.Nodes[k] {
			if i > 0 && s.node(k, base.ID) != base {
				continue // an interface that the file repeats under several CPUs: the first one counts
			}
			s.reach(base, o)
		}
	}
	s.withoutDirect(o)
	s.overC2C()
	s.throughPeers(o)
	s.withoutGDR()
	for i := range s.paths {
		for j := range s.paths[i] {
			s.paths[i][j].setNarrow()
		}
	}
	for _, n := range s.Nodes[NETNode] {
		n.Net.localGPU = s.localGPU(n)
		n.Net.closeGPUs, _ = s.local(n, GPUNode)
	}
}

// reach finds the best way from every node to base, breadth first over the reverse direction of links.
func (s *System) reach(base *Node, o Options) {
	s.paths[base.at][base.at] = path{typ: LOC, bw: LocalBW}
	now, queued := []*Node{base}, map[*Node]bool{}
	for len(now) > 0 {
		var next []*Node
		clear(queued)
		for _, n := range now {
			here := s.path(n, base)
			for _, out := range n.Out {
				l := out.Rev // the way leads from out.To to base
				if l == nil || !mayPass(base, n, here, out.To, l, o) {
					continue
				}
				p := path{typ: max(here.typ, stepType(n, here, out.To, l)), bw: min(here.bw, l.BW)}
				there := s.path(out.To, base)
				p.links = append(append(make([]*Link, 0, len(here.links)+1), l), here.links...)
				if out.To == base || !p.betterThan(*there) {
					continue
				}
				*there = p
				if !queued[out.To] {
					queued[out.To] = true
					next = append(next, out.To)
				}
			}
		}
		now = next
	}
}

// mayPass says whether a way from far over n to base is allowed. Ranks are ends. A GPU in between passes on only what came
// over one NVLink and leaves over another.
func mayPass(base, n *Node, here *path, far *Node, l *Link, o Options) bool {
	switch {
	case n == base:
		return true
	case n.Kind == GPUNode || n.Kind == NETNode:
		return false
	case n.Kind != DEVNode:
		return true
	case far.Kind == GPUNode: // far runs on n
		return true
	case base.Kind == GPUNode && base.Rank.Device == n:
		return true
	}
	hops := len(here.links)
	if base.Kind == GPUNode {
		hops--
	}
	return !o.NVBDisable && l.Type == NVL && far.Kind == DEVNode && here.typ == NVL && hops == 1
}

// stepType is what the step from far to n adds to a way.
func stepType(n *Node, here *path, far *Node, l *Link) PathType {
	switch {
	case l.Type == NET:
		return LOC // of a way between NIC and GPU only the inside counts
	case l.Type == PIX && (n.Kind == CPUNode || far.Kind == CPUNode):
		return PHB
	case n.Kind == PCINode && far.Kind == PCINode:
		return PXB
	case l.Type == NVL && n.Kind == DEVNode && here.typ == NVL:
		return NVB
	}
	return l.Type
}

// via replaces the way from a to b by the one over c.
func (s *System) via(a, c, b *Node) {
	first, second := s.path(a, c), s.path(c, b)
	p := s.path(a, b)
	*p = path{typ: max(first.typ, second.typ), bw: min(first.bw, second.bw), links: slices.Concat(first.links, second.links)}
	if c.Kind == GPUNode {
		p.typ = PXN
	}
}

// localCPU is the CPU with the fewest hops.
func (s *System) localCPU(n *Node) *Node {
	var best *Node
	for _, c := range s.Nodes[CPUNode] {
		p := s.path(n, c)
		if p.typ != DIS && (best == nil || len(p.links) < len(s.path(n, best).links)) {
			best = c
		}
	}
	return best
}

// withoutDirect sends GPU to GPU traffic through the CPU where GPUs cannot or must not reach each other directly.
func (s *System) withoutDirect(o Options) {
	level := PXB
	switch {
	case o.HasP2P:
		level = o.P2PLevel
	case len(s.Ranks) <= 2 && s.Count(CPUNode) > 0 && s.Nodes[CPUNode][0].CPU.amd:
		level = SYS
	}
	for _, b := range s.Nodes[GPUNode] {
		for _, a := range s.Nodes[GPUNode] {
			if a == b || a.Rank.Device == b.Rank.Device {
				continue
			}
			direct := s.path(a, b).typ <= level && !o.P2PDisable
			if direct && o.P2PVeto != nil && o.P2PVeto(a.Rank, b.Rank) {
				direct = false
			}
			if cpu := s.localCPU(a); !direct && cpu != nil {
				s.via(a, cpu, b)
			}
		}
	}
}

// overC2C upgrades the way between a GPU and its closest NICs when the GPU talks to its CPU over C2C.
func (s *System) overC2C() {
	for _, g := range s.Nodes[GPUNode] {
		cpu := s.localCPU(g)
		if cpu == nil || s.path(g, cpu).typ != C2C {
			continue
		}
		nets, _ := s.local(g, NETNode)
		for _, n := range nets {
			if s.path(cpu, n).typ == PHB && s.path(g, n).typ == PHB {
				s.via(g, cpu, n)
				s.via(n, cpu, g)
				s.path(g, n).typ, s.path(n, g).typ = P2C, P2C
			}
		}
	}
}

// throughPeers lets a GPU send to a NIC over the GPU beside it, and over the CPU where neither may read the other's memory.
func (s *System) throughPeers(o Options) {
	for _, n := range s.Nodes[NETNode] {
		peer := s.localGPU(n)
		for _, g := range s.Nodes[GPUNode] {
			if peer != nil && peer != g && !o.PXNDisable {
				near, own := s.path(peer, n), s.path(g, n)
				if near.typ <= P2C && s.path(peer, g).typ <= NVL && peer.ID.Host() == g.ID.Host() && s.mayGDR(peer, n) &&
					(near.bw > own.bw || own.typ > PXN) {
					s.via(g, peer, n)
				}
			}
		}
	}
}

func (s *System) mayGDR(g, n *Node) bool { return g.Rank.GDR && n.Net.GDR }

// withoutGDR sends traffic between GPU and NIC through the GPU's CPU where the NIC may not reach the GPU's memory.
func (s *System) withoutGDR() {
	for _, n := range s.Nodes[NETNode] {
		for _, g := range s.Nodes[GPUNode] {
			if s.path(g, n).typ >= PHB || s.mayGDR(g, n) || s.path(g, n).typ == PXN {
				continue
			}
			if cpu := s.localCPU(g); cpu != nil {
				s.via(n, cpu, g)
				s.via(g, cpu, n)
			}
		}
	}
}

// local returns the nodes of a kind with the best way from n: most bandwidth, then best type.
func (s *System) local(n *Node, k Kind) ([]*Node, PathType) {
	var best []*Node
	bw, typ := 0.0, DIS
	for _, m := range s.Nodes[k] {
		p := s.path(n, m)
		if p.bw > bw || (p.bw == bw && p.typ < typ) {
			best, bw, typ = nil, p.bw, p.typ
		}
		if p.bw == bw && p.typ == typ && typ != DIS {
			best = append(best, m)
		}
	}
	return best, typ
}

// localNet is the NIC that a GPU takes for a channel: GPUs that share NICs begin at different ones.
func (s *System) localNet(g *Node, channel int) *Node {
	nets, _ := s.local(g, NETNode)
	if len(nets) == 0 {
		return nil
	}
	sharers, _ := s.local(nets[0], GPUNode)
	if len(sharers) == 0 {
		return nil
	}
	start := g.Rank.Dev % len(sharers)
	if n := len(nets); n&(n-1) == 0 {
		start = mirrorBits(start, n)
	}
	perGPU := (len(nets) + len(sharers) - 1) / len(sharers)
	return nets[(start+channel%perGPU)%len(nets)]
}

// mirrorBits turns the bits of v around, of as many as a power of two has values.
func mirrorBits(v, pow2 int) int {
	m := 0
	for b, top := 1, pow2>>1; b < pow2; b, top = b<<1, top>>1 {
		if v&b != 0 {
			m |= top
		}
	}
	return m
}

// localGPU is the GPU that a NIC serves first: one of the closest whose own choice is this NIC.
func (s *System) localGPU(n *Node) *Node {
	gpus, _ := s.local(n, GPUNode)
	for c := range maxChannels {
		for _, g := range gpus {
			if s.localNet(g, c) == n {
				return g
			}
		}
	}
	return nil
}
