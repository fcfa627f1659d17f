package place

import (
	"slices"

	"github.com/gccl/gccl/topo"
)

// Search finds channels for ranks that stand on CPUs. Ranks of one NUMA node are equal to each other, and there may be many: the
// search is over the nodes, with the first rank of each, and the others of a node follow their first in each channel. read gives a
// fresh description of the machine.
func Search(read func() (*topo.Machine, error), places []OnCPUs, o topo.Options) (*topo.Decision, error) {
	all, err := buildPlaces(read, places, o)
	if err != nil {
		return nil, err
	}
	byNode := map[int][]int{}
	var firsts []OnCPUs
	for _, p := range places {
		if byNode[p.Node] == nil {
			firsts = append(firsts, p)
		}
		byNode[p.Node] = append(byNode[p.Node], p.Rank)
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
				for _, r := range byNode[places[first.Rank].Node] {
					ranks = append(ranks, all.RankByNumber(r))
				}
			}
			c.Ranks = ranks
			c.In, c.Out = sameNode(all, c.In), sameNode(all, c.Out)
			out.Channels = append(out.Channels, c)
		}
		if len(firsts) == 1 { // nothing to choose: the search gives as many channels as it may
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
