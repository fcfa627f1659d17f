package main

import (
	"slices"

	"github.com/gccl/gccl/topo"
)

// box is a node of the drawing. The tree of CPUs and PCI stands in rows; a box is as wide as what hangs on it.
type box struct {
	node        *topo.Node
	up          *topo.Link // to the box above; nil for a CPU
	subs        []*box
	depth       int
	left, right float64
}

func (b *box) middle() float64 { return (b.left + b.right) / 2 }

// layout is a machine on paper.
type layout struct {
	cpus   []*box
	at     map[*topo.Node]*box
	leaves []*box
	deep   int
	width  float64
	leaf   float64 // width of a device
}

// Geometry in pixels.
const (
	leafWidth   = 92.0
	narrowWidth = 56.0 // with more than manyLeaves devices
	manyLeaves  = 20
	leafGap     = 10.0
	cpuGap      = 36.0
	margin      = 24.0
)

// arrange places every node that hangs on a CPU by PCI. Devices that a System merges below a switch stand under that switch.
func arrange(s *topo.System) *layout {
	l := &layout{at: map[*topo.Node]*box{}, leaf: leafWidth}
	if s.Count(topo.DEVNode)+s.Count(topo.NICNode) > manyLeaves {
		l.leaf = narrowWidth
	}
	x := margin
	for _, n := range s.Nodes[topo.CPUNode] {
		b := l.grow(n, nil, 0)
		l.cpus = append(l.cpus, b)
		x = l.place(b, x) + cpuGap
	}
	l.width = x - cpuGap + margin
	return l
}

// grow makes the box of a node and of what is below it.
func (l *layout) grow(n *topo.Node, up *topo.Link, depth int) *box {
	b := &box{node: n, up: up, depth: depth}
	l.at[n] = b
	l.deep = max(l.deep, depth)
	for _, link := range n.Out {
		below := link.To.Kind == topo.PCINode || link.To.Kind == topo.DEVNode || link.To.Kind == topo.NICNode
		if below && link.Type == topo.PIX && l.at[link.To] == nil {
			b.subs = append(b.subs, l.grow(link.To, link, depth+1))
		}
	}
	slices.SortStableFunc(b.subs, func(x, y *box) int { return int(int64(x.node.ID) - int64(y.node.ID)) })
	return b
}

// place gives a box and what is below it their columns, and returns where the next may begin.
func (l *layout) place(b *box, x float64) float64 {
	if len(b.subs) == 0 {
		b.left, b.right = x, x+l.leaf
		l.leaves = append(l.leaves, b)
		return x + l.leaf
	}
	at := x
	for i, sub := range b.subs {
		if i > 0 {
			at += leafGap
		}
		at = l.place(sub, at)
	}
	b.left, b.right = x, at
	return at
}

// nets are the network devices of an adapter.
func nets(nic *topo.Node) []*topo.NetInfo {
	var out []*topo.NetInfo
	for _, link := range nic.Out {
		if link.To.Kind == topo.NETNode {
			out = append(out, link.To.Net)
		}
	}
	return out
}
