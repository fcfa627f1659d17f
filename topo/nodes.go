package topo

import (
	"fmt"
	"slices"

	"github.com/gccl/gccl/internal/xerr"
)

// NodeChannels are one node's orders, as ranks of the communicator.
type NodeChannels struct {
	Ring, Tree  [][]int
	TreePattern Pattern
	CrossNic    int
}

// Job joins the channels of nodes.
type Job struct{ nodes []NodeChannels }

// NewJob checks that the nodes fit: equal numbers of channels, and in each channel of a node the same ranks, which no other node
// has. Nodes whose searches differ are made equal by Agree and Graph.Under before. The order of nodes is the order in the ring.
func NewJob(nodes []NodeChannels) (*Job, error) {
	owner := map[int]int{}
	for i, n := range nodes {
		if len(n.Ring) != len(nodes[0].Ring) || len(n.Tree) != len(nodes[0].Tree) {
			return nil, xerr.New(xerr.Internal, "topology", "node %d has %d rings and %d trees, node 0 has %d and %d", i, len(n.Ring), len(n.Tree),
				len(nodes[0].Ring), len(nodes[0].Tree))
		}
		ranks := 0
		for c, order := range slices.Concat(n.Ring, n.Tree) {
			seen := map[int]bool{}
			for _, r := range order {
				if at, known := owner[r]; seen[r] || r < 0 || (known && at != i) || (c > 0 && !known) {
					return nil, xerr.New(xerr.Internal, "topology", "rank %d of node %d stands in a wrong channel or twice", r, i).WithRank(r)
				}
				seen[r], owner[r] = true, i
			}
			if c == 0 {
				ranks = len(order)
			}
			if len(order) != ranks || ranks == 0 {
				return nil, xerr.New(xerr.Internal, "topology", "channel %d of node %d has %d ranks, the first has %d", c, i, len(order), ranks)
			}
		}
	}
	return &Job{nodes}, nil
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

// Ring joins the nodes' orders of a channel to one ring: the last rank of a node sends to the first of the next. Where channels
// come in pairs that swap their NICs, every other node swaps the two channels, so that rails meet rails. The lowest rank comes
// first. There is no ring where no node has the channel.
func (j *Job) Ring(channel int) []int {
	var ring []int
	for i, n := range j.nodes {
		c := channel
		if n.CrossNic == 2 && i%2 == 1 && c^1 < len(n.Ring) {
			c ^= 1
		}
		if c < 0 || c >= len(n.Ring) {
			return nil
		}
		ring = append(ring, n.Ring[c]...)
	}
	if len(ring) == 0 {
		return nil
	}
	first := slices.Index(ring, slices.Min(ring))
	return slices.Concat(ring[first:], ring[:first])
}

// Tree joins the nodes' chains of a channel by tree 0 or 1 of the double tree and returns each rank's place; nothing where no
// node has the channel.
func (j *Job) Tree(channel, tree int) map[int]RankTree {
	places := map[int]*RankTree{}
	for _, n := range j.nodes {
		if channel < 0 || channel >= len(n.Tree) {
			return nil
		}
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
	for i, n := range j.nodes {
		at := doublePlace(tree, i, len(j.nodes))
		for child, d := range at.downs {
			if d < 0 {
				continue
			}
			holder, top := n.childRank(channel, child), j.nodes[d].Tree[channel][0]
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
