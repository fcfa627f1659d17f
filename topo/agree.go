package topo

// Terms are what ranks of different systems must have alike about a graph. They are gathered from all ranks; Agree makes one of
// them, the same everywhere.
type Terms struct {
	Pattern      Pattern
	Channels     int
	CrossNic     int
	SameChannels bool
	BWIntra      float64
	BWInter      float64
	TypeIntra    PathType
	TypeInter    PathType
}

// Terms of this graph.
func (g *Graph) Terms() Terms {
	return Terms{g.Pattern, g.N(), g.CrossNic, g.SameChannels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter}
}

// Agree takes the least of what is good and the most of what is bad.
func Agree(all []Terms) Terms {
	if len(all) == 0 {
		return Terms{}
	}
	a := all[0]
	for _, t := range all[1:] {
		a.Pattern, a.CrossNic = max(a.Pattern, t.Pattern), max(a.CrossNic, t.CrossNic)
		a.Channels, a.SameChannels = min(a.Channels, t.Channels), a.SameChannels && t.SameChannels
		a.BWIntra, a.BWInter = min(a.BWIntra, t.BWIntra), min(a.BWInter, t.BWInter)
		a.TypeIntra, a.TypeInter = max(a.TypeIntra, t.TypeIntra), max(a.TypeInter, t.TypeInter)
	}
	return a
}

// Under returns the graph as the agreed terms have it: fewer channels, slower.
func (g *Graph) Under(t Terms) *Graph {
	c := *g
	c.Pattern, c.CrossNic, c.SameChannels = t.Pattern, t.CrossNic, t.SameChannels
	c.BWIntra, c.BWInter, c.TypeIntra, c.TypeInter = t.BWIntra, t.BWInter, t.TypeIntra, t.TypeInter
	c.Channels = g.Channels[:min(len(g.Channels), t.Channels)]
	return &c
}

// Orders are this system's channels for NewJob, with the ranks' own numbers.
func (d *Decision) Orders() NodeChannels {
	orders := func(g *Graph) [][]int {
		var all [][]int
		for _, c := range g.Channels {
			var order []int
			for _, r := range c.Ranks {
				order = append(order, r.Rank)
			}
			all = append(all, order)
		}
		return all
	}
	return NodeChannels{Ring: orders(d.Ring), Tree: orders(d.Tree), TreePattern: d.Tree.Pattern, CrossNic: d.Ring.CrossNic}
}
