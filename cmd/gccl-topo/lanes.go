package main

import (
	"fmt"
	"strings"

	"github.com/gccl/gccl/topo"
)

// namedGraph is a graph with the name that reports give it.
type namedGraph struct {
	name string
	*topo.Graph
}

// graphsOf are the graphs of a decision that have channels.
func graphsOf(d *topo.Decision) []namedGraph {
	var out []namedGraph
	for _, g := range []namedGraph{{"ring", d.Ring}, {"tree", d.Tree}, {"nvls", d.NVLS}} {
		if g.Graph != nil && g.N() > 0 {
			out = append(out, g)
		}
	}
	return out
}

// lane is one order in which channels of a graph visit the devices.
type lane struct {
	title string
	steps []step
}

type step struct{ from, to *topo.Node }

func (l lane) visits() []*topo.Node {
	var out []*topo.Node
	seen := map[*topo.Node]bool{}
	for _, s := range l.steps {
		for _, n := range []*topo.Node{s.from, s.to} {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	return out
}

// lanesOf gives the different orders of ring and tree channels, at most maxLanes, and how many more there are.
func lanesOf(d *topo.Decision) (lanes []lane, left int) {
	for _, g := range graphsOf(d) {
		if g.name == "nvls" {
			continue // its channels name a head each: all devices take part through the switch
		}
		for _, o := range ordersOf(g.Graph) {
			if len(lanes) == maxLanes {
				left++
				continue
			}
			title := fmt.Sprintf("%s, %s: %s", g.name, channelsText(o.channels), orderText(o.channel))
			lanes = append(lanes, lane{title, stepsOf(g, o.channel)})
		}
	}
	return lanes, left
}

// channelOrder is an order that several channels of a graph have.
type channelOrder struct {
	channel  topo.Channel
	channels []int
}

func ordersOf(g *topo.Graph) []channelOrder {
	var out []channelOrder
	at := map[string]int{}
	for i, c := range g.Channels {
		key := orderText(c)
		k, known := at[key]
		if !known {
			k = len(out)
			at[key] = k
			out = append(out, channelOrder{channel: c})
		}
		out[k].channels = append(out[k].channels, i)
	}
	return out
}

// stepsOf follows a channel: through its devices, from and to its adapters, and round for a ring inside the machine.
func stepsOf(g namedGraph, c topo.Channel) []step {
	var nodes []*topo.Node
	if c.In != nil {
		nodes = append(nodes, adapterOf(c.In))
	}
	for _, r := range c.Ranks {
		nodes = append(nodes, r.Device)
	}
	switch {
	case c.Out != nil && g.Pattern == topo.Ring:
		nodes = append(nodes, adapterOf(c.Out))
	case c.In == nil && g.Pattern == topo.Ring && len(nodes) > 1:
		nodes = append(nodes, nodes[0])
	}
	var out []step
	for i := 1; i < len(nodes); i++ {
		if nodes[i-1] != nil && nodes[i] != nil {
			out = append(out, step{nodes[i-1], nodes[i]})
		}
	}
	return out
}

// adapterOf is what a network device hangs on.
func adapterOf(net *topo.Node) *topo.Node {
	for _, link := range net.Out {
		if link.To.Kind == topo.NICNode {
			return link.To
		}
	}
	return nil
}

// orderText names the ranks in order, between the network devices if there are any.
func orderText(c topo.Channel) string {
	var out []string
	if c.In != nil {
		out = append(out, netName(c.In))
	}
	for _, r := range c.Ranks {
		out = append(out, fmt.Sprint(r.Rank))
	}
	if c.Out != nil {
		out = append(out, netName(c.Out))
	}
	return strings.Join(out, " ")
}

func netName(n *topo.Node) string { return fmt.Sprintf("NET/%d", n.Net.Dev) }

func channelsText(set []int) string {
	if len(set) == 1 {
		return fmt.Sprintf("channel %d", set[0])
	}
	return "channels " + runs(set)
}

// runs joins numbers to ranges: 0-3,8.
func runs(set []int) string {
	var out []string
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		if j > i {
			out = append(out, fmt.Sprintf("%d-%d", set[i], set[j]))
		} else {
			out = append(out, fmt.Sprint(set[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}
