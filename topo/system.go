package topo

import "slices"

// joined are the ranks that a rank reaches without the network, itself included.
func (s *System) joined(self int) map[int]bool {
	first := s.RankByNumber(self)
	if first == nil {
		first = s.Ranks[0]
	}
	joined := map[int]bool{first.Rank: true}
	for todo := []*Rank{first}; len(todo) > 0; todo = todo[1:] {
		for _, r := range s.Ranks {
			if p := s.path(todo[0].Node, r.Node); !joined[r.Rank] && p.typ < NET {
				joined[r.Rank] = true
				todo = append(todo, r)
			}
		}
	}
	return joined
}

func (s *System) host(hash uint64) int {
	if i := slices.Index(s.Hosts, hash); i >= 0 {
		return i
	}
	s.Hosts = append(s.Hosts, hash)
	return len(s.Hosts) - 1
}

func (s *System) node(k Kind, id NodeID) *Node {
	for _, n := range s.Nodes[k] {
		if n.ID == id {
			return n
		}
	}
	return nil
}

func (s *System) add(k Kind, id NodeID) *Node {
	n := &Node{Kind: k, ID: id, Index: len(s.Nodes[k])}
	s.Nodes[k] = append(s.Nodes[k], n)
	return n
}

// connect adds one direction. Parallel links of a type add up; links with more bandwidth come first.
func connect(from, to *Node, t PathType, bw float64) {
	var l *Link
	for i, old := range from.Out {
		if old.To == to && old.Type == t {
			l = old
			from.Out = slices.Delete(from.Out, i, i+1)
			break
		}
	}
	if l == nil {
		l = &Link{From: from, To: to, Type: t}
	}
	l.BW += bw
	at := 0
	for at < len(from.Out) && from.Out[at].BW >= l.BW {
		at++
	}
	from.Out = slices.Insert(from.Out, at, l)
}

func connectBoth(a, b *Node, t PathType, bw float64) {
	connect(a, b, t, bw)
	connect(b, a, t, bw)
}

// betweenCPUs connects all CPUs of a host.
func (b *builder) betweenCPUs() {
	for _, a := range b.sys.Nodes[CPUNode] {
		for _, c := range b.sys.Nodes[CPUNode] {
			if a != c && a.ID.Host() == c.ID.Host() {
				connect(a, c, SYS, a.CPU.betweenBW)
			}
		}
	}
}

// broadcom says which generation of Broadcom switch a node is, at the upper (0) or lower (1) level.
func broadcom(n *Node, level uint64) int {
	id := n.PCI.ID &^ 0xfff
	switch id {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flattenSwitches makes one node of a two-level Broadcom switch, which is one chip.
func flattenSwitches(s *System) {
	gone := map[*Node]bool{}
	for _, top := range s.Nodes[PCINode] {
		gen := broadcom(top, 0)
		if gen == 0 || gone[top] {
			continue
		}
		for _, l := range slices.Clone(top.Out) {
			sub := l.To
			if sub.Kind != PCINode || !isBelow(sub, top) || broadcom(sub, 1) != gen {
				continue
			}
			gone[sub] = true
			top.Out = slices.DeleteFunc(top.Out, func(l *Link) bool { return l.To == sub })
			for _, down := range sub.Out {
				if down.To == top {
					continue
				}
				down.To.Out = slices.DeleteFunc(down.To.Out, func(l *Link) bool { return l.To == sub })
				connectBoth(top, down.To, down.Type, down.BW)
			}
		}
	}
	s.Nodes[PCINode] = slices.DeleteFunc(s.Nodes[PCINode], func(n *Node) bool { return gone[n] })
	for i, n := range s.Nodes[PCINode] {
		n.Index = i
	}
}

// isBelow says whether a PCI node hangs below another: children are connected to their own children first, so the parent's
// file position, which the index shows, is smaller.
func isBelow(sub, top *Node) bool { return sub.Index > top.Index }

// finish orders links (in the PCI tree the upstream link comes last), finds reverse links and numbers everything.
func (s *System) finish() {
	for _, cpu := range s.Nodes[CPUNode] {
		sortDown(cpu, nil)
	}
	at := 0
	for k := range s.Nodes {
		for _, n := range s.Nodes[k] {
			n.at = at
			at++
			for _, l := range n.Out {
				l.index = len(s.Links)
				s.Links = append(s.Links, l)
			}
		}
	}
	for _, l := range s.Links {
		for _, back := range l.To.Out {
			if back.To == l.From && back.Type == l.Type {
				l.Rev = back
			}
		}
	}
}

func sortDown(n, up *Node) {
	if up != nil {
		for i, l := range n.Out {
			if l.To == up {
				n.Out = append(slices.Delete(n.Out, i, i+1), l)
				break
			}
		}
	}
	for _, l := range slices.Clone(n.Out) {
		if l.To != up && l.Type == PIX {
			sortDown(l.To, n)
		}
	}
}
