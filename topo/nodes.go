package topo

import (
	"fmt"
	"slices"
)

// NodeChannels are one node's orders, as ranks of the communicator. All nodes have the same numbers of channels and the same
// patterns: see Agree.
type NodeChannels struct {
	Ring, Tree  [][]int
	TreePattern Pattern
	CrossNic    int
}

// RankTree is a rank's place in one tree channel. -1 is nobody.
type RankTree struct {
	Up    int
	Downs [3]int
}

func (t RankTree) text(rank int) string {
	return fmt.Sprintf("%d/%d/%d->%d->%d", t.Downs[0], t.Downs[1], t.Downs[2], rank, t.Up)
}

func (t *RankTree) addDown(rank int) {
	for i := range t.Downs {
		if t.Downs[i] < 0 {
			t.Downs[i] = rank
			return
		}
	}
}

// RingOver joins the nodes' orders of a channel to one ring: the last rank of a node sends to the first of the next. Where
// channels come in pairs that swap their NICs, every other node swaps the two channels, so that rails meet rails. The lowest rank
// comes first.
func RingOver(nodes []NodeChannels, channel int) []int {
	var ring []int
	for i, n := range nodes {
		c := channel
		if n.CrossNic == 2 && i%2 == 1 && c^1 < len(n.Ring) {
			c ^= 1
		}
		ring = append(ring, n.Ring[c]...)
	}
	if len(ring) == 0 {
		return nil
	}
	first := slices.Index(ring, slices.Min(ring))
	return slices.Concat(ring[first:], ring[:first])
}

// TreeOver joins the nodes' chains of a channel by tree 0 or 1 of the double tree and returns each rank's place.
func TreeOver(nodes []NodeChannels, channel, tree int) map[int]RankTree {
	places := map[int]*RankTree{}
	for _, n := range nodes {
		chain := n.Tree[channel]
		for i, rank := range chain {
			p := &RankTree{Up: -1, Downs: [3]int{-1, -1, -1}}
			if i > 0 {
				p.Up = chain[i-1]
			}
			if i+1 < len(chain) {
				p.Downs[0] = chain[i+1]
			}
			places[rank] = p
		}
	}
	for i, n := range nodes {
		at := doublePlace(tree, i, len(nodes))
		for child, d := range at.downs {
			if d < 0 {
				continue
			}
			holder, top := n.childRank(channel, child), nodes[d].Tree[channel][0]
			places[holder].addDown(top)
			places[top].Up = holder
		}
	}
	out := map[int]RankTree{}
	for rank, p := range places {
		out[rank] = *p
	}
	return out
}

// childRank is the rank of a node that its first or second child node hangs on.
func (n NodeChannels) childRank(channel, child int) int {
	chain := n.Tree[channel]
	at := 0
	switch {
	case len(chain) == 1:
	case n.TreePattern == SplitTree, n.TreePattern == BalancedTree && child == 0:
		at = 1
	}
	return chain[at]
}

// Copies are the orders of as many nodes that are like this decision's system: the ranks of node i follow those of node i-1.
func (d *Decision) Copies() []NodeChannels {
	number := map[int]int{}
	for i, r := range d.System.Ranks {
		number[r.Rank] = r.Rank
		if d.Opt.Nodes > 1 {
			number[r.Rank] = i
		}
	}
	list := make([]NodeChannels, d.Opt.Nodes)
	for i := range list {
		list[i] = d.Orders()
		for _, orders := range [][][]int{list[i].Ring, list[i].Tree} {
			for _, o := range orders {
				for j := range o {
					o[j] = number[o[j]] + i*len(d.System.Ranks)
				}
			}
		}
	}
	return list
}
