package topo

// maxChannels is the largest number of execution channels (NCCL 2.30.7); a search finds at most half, which are doubled.
const maxChannels = 64

// Counts computes the numbers of execution channels (shared/topo/FORMAT.md, section 6). A search's channel is run twice: the
// copies halve the latency of trees and give each of the two trees over nodes its own channels.
func (d *Decision) Counts() ChannelCounts {
	s, o := d.System, d.Opt
	coll := func(g *Graph) int {
		n := min(maxChannels, 2*g.N())
		if s.minSM() >= 90 && o.Nodes > 1 && d.Ring.BWInter > 45 && g.N() < 16 {
			n = min(maxChannels, 2*n)
		}
		return n
	}
	c := ChannelCounts{Coll: limit(max(coll(d.Ring), coll(d.Tree)), o)}
	if d.NVLS != nil && d.NVLS.N() > 0 {
		c.NVLS = 16
		if s.minSM() >= 100 {
			c.NVLS = 24
			if o.Nodes > 1 {
				c.NVLS = 32
			}
		}
	}
	c.PerPeer = min(c.Coll, maxChannels)
	for _, a := range s.Ranks {
		for _, b := range s.Ranks {
			if a != b {
				c.PerPeer = min(c.PerPeer, s.channelsTo(a, b))
			}
		}
		if o.Nodes > 1 {
			c.PerPeer = min(c.PerPeer, s.channelsToNet(a))
		}
	}
	c.PerPeer, c.P2P = powerUp(c.PerPeer), min(powerUp(c.Coll), maxChannels)
	if o.Nodes > 1 {
		groups := (o.Nodes*len(s.Ranks) + 7) / 8
		for c.PerPeer > 1 && c.PerPeer*groups > c.P2P {
			c.PerPeer /= 2
		}
	}
	return c
}

func limit(n int, o Options) int {
	if o.MaxChannels > 0 {
		n = min(n, o.MaxChannels)
	}
	return max(n, min(o.MinChannels, maxChannels))
}

// channelsTo is how many channels fill the way between two GPUs.
func (s *System) channelsTo(a, b *Rank) int {
	p := s.path(b.Node, a.Node)
	if p.typ != NVL && p.typ != NVB {
		return 2
	}
	return 2 * max(1, int(p.bw/nvlinkBW(a.Device.Dev.SM)))
}

// perChannelNet is the network rate that one channel is expected to fill (GB/s).
const perChannelNet = 14

// channelsToNet is how many channels fill a GPU's ways to its own NICs, as far as its link to the CPU carries them (NCCL 2.30.7,
// src/graph/topo.cc, ncclTopoGetLocalNetCountByBw).
func (s *System) channelsToNet(r *Rank) int {
	nets := s.ownNets(r.Node)
	cpu := s.localCPU(r.Node)
	if len(nets) == 0 || cpu == nil {
		return 2
	}
	limit, sum, n := s.path(r.Node, cpu).bw, 0.0, 0
	for _, net := range nets {
		if sum >= limit {
			break
		}
		sum += s.path(r.Node, net).bw
		n++
	}
	return max(n, (int(sum)+perChannelNet-1)/perChannelNet)
}

// ownNets lists the NICs that a GPU takes in turn.
func (s *System) ownNets(g *Node) []*Node {
	var list []*Node
	for c := range maxChannels {
		n := s.localNet(g, c)
		if n == nil || (len(list) > 0 && n == list[0]) {
			break
		}
		list = append(list, n)
	}
	return list
}

func powerUp(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}
