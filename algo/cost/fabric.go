package cost

// Fabric is how cliques are joined. A clique's place is its number, a rank's its number in the clique: its rail.
type Fabric struct {
	Kind string // "flat": one switch; "rail": one for each rail, with a spine above; "fat": leaves, pods and a core
	// Leaf is how many cliques a leaf switch joins, Pod how many leaves a pod; 0: all.
	Leaf, Pod int
	// Hop is the latency of each switch after the first.
	Hop float64
	// Over is how much less of a link's rate is left where leaves, and where pods are left: oversubscription.
	Over float64
}

// Path is what a way adds to a link: latency, and by how much its rate is divided.
type Path struct{ Latency, Slow float64 }

// Between is the way from one rank to another, given by their cliques and their places there.
func (f *Fabric) Between(fromClique, fromIndex, toClique, toIndex int) Path {
	levels := 0 // above the first switch
	switch f.Kind {
	case "rail":
		switch {
		case fromIndex != toIndex:
			levels = 1
		case f.Leaf > 0 && fromClique/f.Leaf != toClique/f.Leaf:
			levels = 1
		}
	case "fat":
		if f.Leaf > 0 && fromClique/f.Leaf != toClique/f.Leaf {
			levels = 1
			if pod := f.Leaf * f.Pod; pod > 0 && fromClique/pod != toClique/pod {
				levels = 2
			}
		}
	}
	p := Path{Latency: 2 * float64(levels) * f.Hop, Slow: 1}
	for range levels {
		if f.Over > 1 {
			p.Slow *= f.Over
		}
	}
	return p
}
