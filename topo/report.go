package topo

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Report is everything that was found out about one system in a job of Nodes equal or different systems. Its JSON fields
// have the names of shared/topo/computed-2.30.7.json, so that two libraries' decisions can be compared by a diff.
type Report struct {
	Nodes     map[string]int         `json:"nodes"` // nodes of the graph by kind, and "hosts"
	MaxBW     float64                `json:"maxBw"`
	TotalBW   float64                `json:"totalBw"`
	RankOrder []int                  `json:"rank_order"`
	GPUGPU    [][]PathSummary        `json:"gpu_gpu"`
	GPUNet    [][]NetPathSummary     `json:"gpu_net,omitempty"`
	Graphs    map[string]GraphReport `json:"graphs"` // "ring", "tree", "nvls", "collnet"
	Channels  ChannelCounts          `json:"channels"`
	Rings     []RingRun              `json:"ring_orders"`
	Trees     map[string][]TreeRun   `json:"trees"` // by rank
}

// PathSummary is [type, GB/s, hops].
type PathSummary struct {
	Type PathType
	BW   float64
	Hops int
}

// NetPathSummary is [type, GB/s].
type NetPathSummary struct {
	Type PathType
	BW   float64
}

// GraphReport is a found graph; its channels name ranks and, between nodes, the network devices in and out ("NET/host-dev").
type GraphReport struct {
	Pattern      int             `json:"pattern"`
	CrossNic     int             `json:"crossNic"`
	NChannels    int             `json:"nChannels"`
	BWIntra      float64         `json:"bwIntra"`
	BWInter      float64         `json:"bwInter"`
	TypeIntra    string          `json:"typeIntra"`
	TypeInter    string          `json:"typeInter"`
	SameChannels int             `json:"sameChannels"`
	Channels     []ChannelReport `json:"channels"`
}

// ChannelReport is one channel of a graph.
type ChannelReport struct {
	GPUs []int    `json:"gpus"`
	Nets []string `json:"nets,omitempty"`
}

// ChannelCounts are the numbers of execution channels.
type ChannelCounts struct {
	Coll    int `json:"coll"`
	NVLS    int `json:"nvls"`
	P2P     int `json:"p2p"`
	PerPeer int `json:"perpeer"`
}

// RingRun is a ring order that a run of channels ("0-11") has: [channels, ranks].
type RingRun struct {
	Channels string
	Ranks    []int
}

// TreeRun is a rank's place in the trees of a run of channels: [channels, "down0/down1/down2->rank->up"].
type TreeRun struct {
	Channels string
	Place    string
}

// MarshalJSON writes [type, bw, hops].
func (p PathSummary) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Type.String(), p.BW, p.Hops})
}

// MarshalJSON writes [type, bw].
func (p NetPathSummary) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.Type.String(), p.BW})
}

// MarshalJSON writes [channels, ranks].
func (r RingRun) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.Channels, r.Ranks}) }

// MarshalJSON writes [channels, place].
func (t TreeRun) MarshalJSON() ([]byte, error) { return json.Marshal([]any{t.Channels, t.Place}) }

// graphs gives the graphs their report form.
func (d *Decision) graphs() map[string]GraphReport {
	m := map[string]GraphReport{"ring": d.Ring.report(), "tree": d.Tree.report()}
	if d.NVLS != nil {
		m["nvls"] = d.NVLS.report()
	}
	if d.Chain != nil {
		m["collnet"] = d.Chain.report()
	}
	return m
}

func (g *Graph) report() GraphReport {
	r := GraphReport{Pattern: int(g.Pattern), CrossNic: g.CrossNic, NChannels: g.N(), BWIntra: g.BWIntra, BWInter: g.BWInter,
		TypeIntra: g.TypeIntra.String(), TypeInter: g.TypeInter.String(), Channels: []ChannelReport{}}
	if g.SameChannels {
		r.SameChannels = 1
	}
	for _, c := range g.Channels {
		var e ChannelReport
		for _, rank := range c.Ranks {
			e.GPUs = append(e.GPUs, rank.Rank)
		}
		if c.In != nil {
			e.Nets = []string{"NET/" + c.In.ID.Text(), "NET/" + c.Out.ID.Text()}
		}
		r.Channels = append(r.Channels, e)
	}
	return r
}

// Report describes the decision for a job of equal nodes.
func (d *Decision) Report() *Report {
	s := d.System
	r := &Report{Nodes: map[string]int{"hosts": len(s.Hosts)}, MaxBW: tenth(s.MaxBW(d.Opt.Nodes > 1)),
		TotalBW: tenth(s.TotalBW(d.Opt.Nodes > 1)), Graphs: d.graphs(), Channels: d.Counts(), Trees: map[string][]TreeRun{}}
	for k := range kinds {
		if k != CXBNode { // inner to the graph, and in no other report
			r.Nodes[k.String()] = s.Count(k)
		}
	}
	for _, a := range s.Ranks {
		r.RankOrder = append(r.RankOrder, a.Rank)
		var toGPU []PathSummary
		for _, b := range s.Ranks {
			t, bw, hops := s.Path(a.Node, b.Node)
			toGPU = append(toGPU, PathSummary{t, hundredth(bw), hops})
		}
		r.GPUGPU = append(r.GPUGPU, toGPU)
		if s.Count(NETNode) == 0 {
			continue
		}
		var toNet []NetPathSummary
		for _, n := range s.Nodes[NETNode] {
			t, bw, _ := s.Path(a.Node, n)
			toNet = append(toNet, NetPathSummary{t, math.Round(bw*1e4) / 1e4})
		}
		r.GPUNet = append(r.GPUNet, toNet)
	}
	d.overNodes(r)
	return r
}

func tenth(v float64) float64     { return math.RoundToEven(v*10) / 10 }
func hundredth(v float64) float64 { return math.Round(v*100) / 100 }

// overNodes joins the nodes' channels to rings and trees.
func (d *Decision) overNodes(r *Report) {
	job := &Job{d.Copies()}
	for c := range d.Ring.N() {
		ring := job.Ring(c)
		r.Rings = append(r.Rings, RingRun{strconv.Itoa(c), ring})
	}
	r.Rings = joinRuns(r.Rings, func(a, b RingRun) bool { return slices.Equal(a.Ranks, b.Ranks) },
		func(e *RingRun) *string { return &e.Channels })
	n := d.Tree.N()
	for tree := range 2 {
		for c := range n {
			if tree*n+c >= r.Channels.Coll {
				break
			}
			for rank, p := range job.Tree(c, tree) {
				key := strconv.Itoa(rank)
				r.Trees[key] = append(r.Trees[key], TreeRun{strconv.Itoa(tree*n + c), p.text(rank)})
			}
		}
	}
	for key, list := range r.Trees {
		r.Trees[key] = joinRuns(list, func(a, b TreeRun) bool { return a.Place == b.Place },
			func(e *TreeRun) *string { return &e.Channels })
	}
}

// joinRuns makes "0-3" of equal neighbours.
func joinRuns[E any](list []E, same func(a, b E) bool, channels func(*E) *string) []E {
	var out []E
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && same(list[i], list[j]) {
			j++
		}
		e := list[i]
		if j > i+1 {
			*channels(&e) = *channels(&list[i]) + "-" + *channels(&list[j-1])
		}
		out = append(out, e)
		i = j
	}
	return out
}
