package place

import (
	"slices"

	"github.com/gccl/gccl/topo"
)

// Search finds channels for ranks that stand on CPUs. Ranks of one NUMA node are equal to each other, and there may be many: the
// search is over the nodes, with the first rank of each, and the others of a node follow their first in each channel. read gives a
// fresh description of the machine. o.Self, if given, must be the first rank of its node: ranks of other hosts are not in the result.
func Search(read func() (*topo.Machine, error), places []OnCPUs, o topo.Options) (*topo.Decision, error) {
	all, err := buildPlaces(read, places, o)
	if err != nil {
		return nil, err
	}
	type node struct {
		host string
		numa int
	}
	byNode := map[node][]int{}
	at := map[int]node{} // by rank
	var firsts []OnCPUs
	for _, p := range places {
		n := node{p.Host, p.Node}
		if byNode[n] == nil {
			firsts = append(firsts, p)
		}
		byNode[n], at[p.Rank] = append(byNode[n], p.Rank), n
	}
	few, err := buildPlaces(read, firsts, o)
	if err != nil {
		return nil, err
	}
	d, err := topo.Search(few, o)
	if err != nil {
		return nil, err
	}
	follow := func(g *topo.Graph) *topo.Graph {
		if g == nil {
			return nil
		}
		out := *g
		out.Channels = nil
		for _, c := range g.Channels {
			var ranks []*topo.Rank
			for _, first := range c.Ranks {
				for _, r := range byNode[at[first.Rank]] {
					ranks = append(ranks, all.RankByNumber(r))
				}
			}
			c.Ranks = ranks
			c.In, c.Out = sameNode(all, c.In), sameNode(all, c.Out)
			out.Channels = append(out.Channels, c)
		}
		if len(few.Ranks) == 1 && o.Nodes == 1 { // nothing to choose: the search gives as many channels as it may
			out.Channels = out.Channels[:min(len(out.Channels), 1)]
		}
		if len(out.Channels) > 0 {
			limit(all, &out)
		}
		return &out
	}
	return &topo.Decision{System: all, Opt: d.Opt, Ring: follow(d.Ring), Tree: follow(d.Tree), NVLS: follow(d.NVLS)}, nil
}

func buildPlaces(read func() (*topo.Machine, error), places []OnCPUs, o topo.Options) (*topo.System, error) {
	m, err := read()
	if err != nil {
		return nil, err
	}
	Put(m, places)
	return topo.Build(m, o)
}

// sameNode finds a network device of one system in another of the same machine.
func sameNode(s *topo.System, n *topo.Node) *topo.Node {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(s.Nodes[n.Kind], func(m *topo.Node) bool { return m.ID == n.ID })
	if i < 0 {
		return nil
	}
	return s.Nodes[n.Kind][i]
}

// limit makes a graph say no more than the steps between its ranks carry.
func limit(s *topo.System, g *topo.Graph) {
	ranks := g.Channels[0].Ranks
	for i := 1; i < len(ranks); i++ {
		kind, bw, _ := s.Path(ranks[i-1].Node, ranks[i].Node)
		g.BWIntra, g.TypeIntra = min(g.BWIntra, bw), max(g.TypeIntra, kind)
	}
}
