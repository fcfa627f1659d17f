package topo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// GraphFile is a graph file (NCCL_GRAPH_FILE) as it is written: devices by number, without a machine.
type GraphFile struct {
	Graphs []*FileGraph
}

// FileGraph is one graph element. Its Channels are numbers; Resolve makes nodes and ranks of them.
type FileGraph struct {
	Graph
	File []FileChannel
}

// FileChannel is one channel element.
type FileChannel struct {
	GPUs []FileGPU
	Nets []NodeID // none, or in and out
	Pos
}

// FileGPU names a GPU: by rank if the file says one, otherwise by host and device.
type FileGPU struct {
	Dev  NodeID // host and the driver's index
	Rank int    // NoRank: not said
	Pos
}

// maxGraphChannels bounds the channels of a file; NCCL's limit of channels is lower.
const maxGraphChannels = 1024

// ReadGraphs reads a graph file. An error is a *FileError.
func ReadGraphs(file string, data []byte) (*GraphFile, error) {
	root, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	if root.name != "graphs" {
		return nil, root.wrong("the root of a graph file is graphs")
	}
	r := &reader{}
	r.need(root, "version")
	if v := r.number(root, "version"); r.err == nil && v != 1 {
		r.fail(root.wrong("version %d; 1 is known", v))
	}
	f := &GraphFile{}
	for _, k := range root.kids {
		if k.name == "graph" {
			f.Graphs = append(f.Graphs, r.graph(k))
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

func (r *reader) graph(e *element) *FileGraph {
	r.need(e, "id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter", "typeintra", "typeinter", "samechannels")
	g := &FileGraph{}
	g.ID, g.Pattern = r.number(e, "id"), Pattern(r.number(e, "pattern"))
	g.CrossNic, g.SameChannels = r.number(e, "crossnic"), r.number(e, "samechannels") == 1
	g.BWIntra, g.BWInter = r.decimal(e, "speedintra"), r.decimal(e, "speedinter")
	g.LatencyInter = r.decimal(e, "latencyinter")
	g.TypeIntra, g.TypeInter = r.pathType(e, "typeintra"), r.pathType(e, "typeinter")
	if g.Pattern < BalancedTree || g.Pattern > CollNet {
		r.fail(e.wrong("pattern %d; 1 to 6 are known", g.Pattern))
	}
	for _, k := range e.kids {
		if k.name == "channel" {
			g.File = append(g.File, r.channel(k))
		}
	}
	n := r.number(e, "nchannels")
	if n > maxGraphChannels {
		r.fail(e.wrong("%d channels; at most %d", n, maxGraphChannels))
	}
	if n != len(g.File) {
		r.fail(e.wrong("attribute nchannels is %d, but there are %d channel elements", n, len(g.File)))
	}
	return g
}

func (r *reader) pathType(e *element, name string) PathType {
	t, ok := ParsePathType(e.text(name))
	if !ok {
		r.fail(e.wrong("attribute %s is %q; one of %s is needed", name, e.text(name), strings.Join(pathNames[:], " ")))
	}
	return t
}

func (r *reader) channel(e *element) FileChannel {
	c := FileChannel{Pos: e.pos()}
	for _, k := range e.kids {
		switch k.name {
		case "gpu":
			g := FileGPU{Pos: k.pos(), Rank: NoRank}
			if k.has("rank") {
				g.Rank = r.number(k, "rank")
			} else {
				r.need(k, "dev")
			}
			g.Dev = r.hex(k, "dev")
			c.GPUs = append(c.GPUs, g)
		case "net":
			r.need(k, "dev")
			c.Nets = append(c.Nets, r.hex(k, "dev"))
		}
	}
	if len(c.Nets) != 0 && len(c.Nets) != 2 {
		r.fail(e.wrong("%d net elements; none, or in and out", len(c.Nets)))
	}
	if len(c.GPUs) == 0 {
		r.fail(e.wrong("no gpu element"))
	}
	return c
}

// hex reads a number that is hexadecimal with and without 0x.
func (r *reader) hex(e *element, name string) NodeID {
	if !e.has(name) {
		return 0
	}
	v, _ := cutHex(e.text(name))
	n, err := strconv.ParseUint(v, 16, 64)
	if err != nil {
		r.fail(e.wrong("attribute %s is %q; a hexadecimal number is needed", name, e.text(name)))
	}
	return NodeID(n)
}

// Resolve finds the ranks and NICs of a system that a graph speaks of. A loaded graph is used as it is: what it says about
// speeds is not checked.
func (g *FileGraph) Resolve(s *System) (*Graph, error) {
	out := g.Graph
	out.Channels = nil
	for _, c := range g.File {
		var ch Channel
		seen := map[*Rank]bool{}
		for _, gpu := range c.GPUs {
			r := s.findGPU(gpu)
			if r == nil {
				return nil, wrongAt(gpu.Pos, "gpu", "there is no such GPU in this system: dev %#x rank %d", uint64(gpu.Dev), gpu.Rank)
			}
			if seen[r] {
				return nil, wrongAt(gpu.Pos, "gpu", "rank %d stands twice in a channel", r.Rank)
			}
			seen[r] = true
			ch.Ranks = append(ch.Ranks, r)
		}
		if !out.Pattern.heads() && len(ch.Ranks) != len(s.Ranks) {
			return nil, wrongAt(c.Pos, "channel", "%d GPUs; this system has %d ranks", len(ch.Ranks), len(s.Ranks))
		}
		if len(c.Nets) == 2 {
			ch.In, ch.Out = s.node(NETNode, c.Nets[0]), s.node(NETNode, c.Nets[1])
			if ch.In == nil || ch.Out == nil {
				return nil, wrongAt(c.Pos, "channel", "there is no such NIC in this system: %#x, %#x", uint64(c.Nets[0]), uint64(c.Nets[1]))
			}
		}
		out.Channels = append(out.Channels, ch)
	}
	return &out, nil
}

func (s *System) findGPU(g FileGPU) *Rank {
	if g.Rank != NoRank {
		return s.RankByNumber(g.Rank)
	}
	for _, r := range s.Ranks {
		if r.Node.ID.Host() == g.Dev.Host() && uint64(r.Dev) == g.Dev.Local() {
			return r
		}
	}
	return nil
}

// WriteGraphs writes graphs as NCCL reads them. Types that NCCL's files do not have (C2C, DIS) are written as the next worse
// one. A GPU with several ranks is named by rank too.
func WriteGraphs(w io.Writer, graphs ...*Graph) error {
	x := &xmlWriter{}
	x.open("graphs", num("version", 1))
	for _, g := range graphs {
		if g != nil {
			x.graph(g)
		}
	}
	x.close()
	_, err := w.Write(x.w.Bytes())
	return err
}

func (x *xmlWriter) graph(g *Graph) {
	same := 0
	if g.SameChannels {
		same = 1
	}
	x.open("graph", num("id", g.ID), num("pattern", int(g.Pattern)), num("crossnic", g.CrossNic), num("nchannels", g.N()),
		real("speedintra", g.BWIntra), real("speedinter", g.BWInter), real("latencyinter", g.LatencyInter),
		txt("typeintra", writable(g.TypeIntra)), txt("typeinter", writable(g.TypeInter)), num("samechannels", same))
	for _, c := range g.Channels {
		x.open("channel")
		if c.In != nil {
			x.leaf("net", hexa("dev", c.In.ID))
		}
		for _, r := range c.Ranks {
			attrs := []xmlAttr{hexa("dev", MakeID(r.Node.ID.Host(), uint64(r.Dev)))}
			if len(r.Device.Dev.Ranks) > 1 || r.Device.Dev.Part != Unknown {
				attrs = append(attrs, num("rank", r.Rank))
			}
			x.leaf("gpu", attrs...)
		}
		if c.Out != nil {
			x.leaf("net", hexa("dev", c.Out.ID))
		}
		x.close()
	}
	x.close()
}

func real(name string, v float64) xmlAttr {
	return xmlAttr{name: name, value: strconv.FormatFloat(v, 'g', -1, 64)}
}
func hexa(name string, v NodeID) xmlAttr {
	return xmlAttr{name: name, value: fmt.Sprintf("%#x", uint64(v))}
}

func writable(t PathType) string {
	switch t {
	case C2C:
		return PIX.String()
	case DIS, NET:
		return SYS.String()
	}
	return t.String()
}
