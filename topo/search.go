package topo

import (
	"slices"

	"github.com/gccl/gccl/internal/xerr"
)

// Decision is what a search found for one system.
type Decision struct {
	System *System
	Opt    Options
	Ring   *Graph
	Tree   *Graph
	NVLS   *Graph // nil if the GPUs cannot
	Chain  *Graph // for networks that reduce (SHARP); nil if no network device does, or nothing was found
}

// Search finds the channels of a system. It returns an error if the job needs a network and the system has none, or if a graph
// file does not fit the system.
func Search(s *System, o Options) (*Decision, error) {
	if o.Nodes < 1 {
		return nil, xerr.New(xerr.InvalidArgument, "topology search", "%d nodes", o.Nodes)
	}
	if o.Nodes > 1 && !s.reachesNet() {
		return nil, xerr.New(xerr.InvalidUsage, "topology search", "a job of %d nodes, but no GPU of the system reaches a network device", o.Nodes).
			WithHint("a topology file needs net elements with a dev attribute")
	}
	d := &Decision{System: s, Opt: o}
	n := 0 // channels of the ring search; there are exactly as many trees, unless the second search finds something better
	var err error
	if d.Ring, err = o.loaded(s, RingID); err != nil {
		return nil, err
	} else if d.Ring == nil {
		d.Ring, n = newTask(s, o, Ring, 1, maxChannels/2).graph(RingID)
	} else {
		n = min(d.Ring.N(), maxChannels/2)
	}
	if d.Tree, err = o.loaded(s, TreeID); err != nil {
		return nil, err
	} else if d.Tree == nil {
		d.Tree, _ = newTask(s, o, BalancedTree, n, n).graph(TreeID)
	}
	if d.Chain, err = chain(s, o, max(1, n)); err != nil {
		return nil, err
	}
	if o.NVLSDisable || !s.hasNVLS() {
		return d, nil
	}
	if d.NVLS, err = o.loaded(s, NVLSID); err != nil || d.NVLS != nil {
		return d, err
	}
	heads := min(maxHeads, s.Count(DEVNode))
	least := 1
	if o.Nodes == 1 {
		least = heads
	}
	d.NVLS, _ = newTask(s, o, NVLS, least, heads).graph(NVLSID)
	return d, nil
}

// chain searches chains that begin and end at a network device that reduces: at most as many as rings.
func chain(s *System, o Options, most int) (*Graph, error) {
	if o.Nodes < 2 || !slices.ContainsFunc(s.Nodes[NETNode], func(n *Node) bool { return n.Net.Coll }) {
		return nil, nil
	}
	if g, err := o.loaded(s, ChainID); err != nil || g != nil {
		return g, err
	}
	t := newTask(s, o, Tree, 1, most)
	t.coll = true
	t.widen()
	t.double()
	t.raise()
	if t.best.n() == 0 {
		return nil, nil
	}
	return t.best.graph(s, ChainID), nil
}

func (s *System) reachesNet() bool {
	for _, g := range s.Nodes[GPUNode] {
		for _, n := range s.Nodes[NETNode] {
			if s.path(g, n).typ < DIS && s.path(n, g).typ < DIS {
				return true
			}
		}
	}
	return false
}

// loaded is the graph of the user's file, or nil if it has none that may be used: then it is searched.
func (o Options) loaded(s *System, id int) (*Graph, error) {
	if o.Graphs == nil {
		return nil, nil
	}
	for _, g := range o.Graphs.Graphs {
		if g.ID != id || len(g.File) == 0 || (g.CrossNic == 1 && o.CrossNic == 0) {
			continue
		}
		if n := len(g.File); n > maxChannels/2 {
			return nil, wrongAt(g.File[n-1].Pos, "channel", "%d channels; at most %d", n, maxChannels/2)
		}
		for _, c := range g.File {
			if o.Nodes > 1 && len(c.Nets) == 0 {
				return nil, wrongAt(c.Pos, "channel", "no net elements, but the job has %d nodes: the file was made for one node", o.Nodes)
			}
		}
		return g.Resolve(s)
	}
	return nil, nil
}

// maxHeads is NCCL's limit for NVLS.
const maxHeads = 32

// graph runs the search and returns what it found; rings and trees always exist, if need be slow ones.
func (t *task) graph(id int) (g *Graph, first int) {
	t.widen()
	t.double()
	t.raise()
	first = t.best.n()
	if first == 0 && t.pattern != NVLS {
		t.fallback()
		first = 1
	}
	if further := t.improve(t.best); further != t.best {
		t.best, t.walk.best = further, further
		t.minCh, t.maxCh = 1, maxChannels/2
		t.double()
		if t.pattern != Ring {
			t.raise()
		}
	}
	if !t.best.fallen {
		t.stretch(t.best)
	}
	return t.best.graph(t.sys, id), first
}

// fallback is one slow channel in order of the file.
func (t *task) fallback() {
	b := t.best
	c := found{gpus: make([]int, len(t.sys.Ranks)), in: -1, out: -1}
	for i := range c.gpus {
		c.gpus[i] = i
	}
	if t.inter {
		c.in = max(0, slices.IndexFunc(t.sys.Nodes[NETNode], func(n *Node) bool { return n.Net.localGPU != nil }))
		c.out = c.in
	}
	b.chans, b.fallen = []found{c}, true
	b.bwIntra, b.bwInter, b.typeIntra, b.typeInter = .1, .1, SYS, SYS
}

func (b *best) graph(s *System, id int) *Graph {
	g := &Graph{ID: id, Pattern: b.pattern, CrossNic: b.crossNic, BWIntra: b.bwIntra, BWInter: b.bwInter,
		LatencyInter: b.latency, TypeIntra: b.typeIntra, TypeInter: b.typeInter, SameChannels: b.same, Fallback: b.fallen,
		hops: b.hops}
	for _, f := range b.chans {
		n := len(f.gpus)
		if shapes[b.pattern].heads {
			n = 1
		}
		var c Channel
		for _, i := range f.gpus[:n] {
			c.Ranks = append(c.Ranks, s.Nodes[GPUNode][i].Rank)
		}
		if f.in >= 0 {
			c.In, c.Out = s.Nodes[NETNode][f.in], s.Nodes[NETNode][f.out]
		}
		g.Channels = append(g.Channels, c)
	}
	return g
}
