package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// The checker is independent of the search: it takes a graph in its report form, NCCL's or ours, adds up what every channel
// puts on every link by the rules of shared/topo/FORMAT.md, section 5, and compares with the links' bandwidth. It shares with
// the package only the graph and the routes.

// verdict is what the checker found.
type verdict struct {
	problems     []string
	intra, inter float64 // channels × speed
	room         float64 // by what factor all channels could be faster
}

func (v *verdict) wrong(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// total is what a collective gets: inside one system, or limited by the network between several.
func (v *verdict) total(nodes int) float64 {
	if nodes > 1 {
		return min(v.intra, v.inter)
	}
	return v.intra
}

// load is what a link carries, in GB/s.
type loads map[*Link]float64

func checkGraph(s *System, nodes int, g GraphReport) *verdict {
	v := &verdict{room: 1e9}
	v.intra, v.inter = float64(g.NChannels)*g.BWIntra, float64(g.NChannels)*g.BWInter
	if g.NChannels != len(g.Channels) {
		v.wrong("%d channels are announced, %d listed", g.NChannels, len(g.Channels))
	}
	ld := loads{}
	ports := map[string]float64{}
	portBW := map[string]float64{}
	typeIntra, okA := ParsePathType(g.TypeIntra)
	typeInter, okB := ParsePathType(g.TypeInter)
	if !okA || !okB {
		v.wrong("types %s and %s", g.TypeIntra, g.TypeInter)
	}
	flow := func(c int, a, b *Node, bw float64, limit PathType) {
		if a == b {
			return
		}
		route := s.Route(a, b)
		typ, _, _ := s.Path(a, b)
		if typ >= DIS || len(route) == 0 {
			v.wrong("channel %d: no way from %v to %v", c, a, b)
			return
		}
		if typ > limit {
			v.wrong("channel %d: the way from %v to %v is %v, worse than %v", c, a, b, typ, limit)
		}
		if err := ld.add(a, b, route, typ, bw); err != "" {
			v.wrong("channel %d: %s", c, err)
		}
	}
	for i, c := range g.Channels {
		gpus := make([]*Node, len(c.GPUs))
		seen := map[int]bool{}
		for j, r := range c.GPUs {
			rank := s.RankByNumber(r)
			if rank == nil || seen[r] {
				v.wrong("channel %d: rank %d is unknown or stands twice", i, r)
				return v
			}
			seen[r], gpus[j] = true, rank.Node
		}
		if g.Pattern != int(NVLS) && len(gpus) != len(s.Ranks) || len(gpus) == 0 {
			v.wrong("channel %d has %d of %d ranks", i, len(gpus), len(s.Ranks))
			return v
		}
		if nodes > 1 {
			if len(c.Nets) != 2 {
				v.wrong("channel %d has no NICs", i)
				return v
			}
			in, out := netByName(s, c.Nets[0]), netByName(s, c.Nets[1])
			if in == nil || out == nil {
				v.wrong("channel %d: NICs %v are unknown", i, c.Nets)
				return v
			}
			key := fmt.Sprintf("%x/%d", in.Net.Asic, in.Net.Port)
			ports[key] += g.BWInter
			portBW[key] = max(portBW[key], in.Net.BW)
			if g.CrossNic == 0 && (in.Net.Asic != out.Net.Asic || in.Net.Port != out.Net.Port) &&
				(in.Net.Rail < 0 || in.Net.Rail != out.Net.Rail) {
				v.wrong("channel %d comes by %s and leaves by %s with crossNic 0", i, c.Nets[0], c.Nets[1])
			}
			if g.CrossNic == 2 && i%2 == 1 && (c.Nets[0] != g.Channels[i-1].Nets[1] || c.Nets[1] != g.Channels[i-1].Nets[0]) {
				v.wrong("channels %d and %d do not swap their NICs", i-1, i)
			}
			flow(i, in, gpus[0], g.BWInter, typeInter)
			switch Pattern(g.Pattern) {
			case Ring:
				flow(i, gpus[len(gpus)-1], out, g.BWInter, typeInter)
			case BalancedTree:
				flow(i, gpus[0], out, g.BWInter/2, typeInter)
				flow(i, gpus[min(1, len(gpus)-1)], out, g.BWInter/2, typeInter)
			case SplitTree:
				flow(i, gpus[min(1, len(gpus)-1)], out, g.BWInter, typeInter)
			default:
				flow(i, gpus[0], out, g.BWInter, typeInter)
			}
		}
		if g.Pattern == int(NVLS) {
			nvs := s.Nodes[NVSNode][0]
			for _, d := range s.Nodes[DEVNode] {
				bw := g.BWIntra
				if d == gpus[0].Rank.Device {
					bw *= 2
				}
				flow(i, nvs, d.Dev.Ranks[0].Node, bw, typeIntra)
				flow(i, d.Dev.Ranks[0].Node, nvs, bw, typeIntra)
			}
			continue
		}
		for j := 1; j < len(gpus); j++ {
			flow(i, gpus[j-1], gpus[j], g.BWIntra, typeIntra)
		}
		if g.Pattern == int(Ring) && nodes == 1 {
			flow(i, gpus[len(gpus)-1], gpus[0], g.BWIntra, typeIntra)
		}
	}
	slack := .0011 * float64(max(1, 2*g.NChannels)) // the search counts in MB/s
	for l, bw := range ld {
		if bw > l.BW+slack {
			v.wrong("link %v carries %.6g of %.6g GB/s", l, bw, l.BW)
		}
		v.room = min(v.room, l.BW/bw)
	}
	for k, bw := range ports {
		if bw > portBW[k]+slack {
			v.wrong("the adapter port %s carries %.6g of %.6g GB/s", k, bw, portBW[k])
		}
		v.room = min(v.room, portBW[k]/bw)
	}
	return v
}

// add puts a flow on its route. It says what is wrong with the route.
func (ld loads) add(a, b *Node, route []*Link, typ PathType, bw float64) string {
	intelHub := false
	for _, l := range route {
		if c := l.To.CPU; c != nil && c.Arch == "x86_64" && strings.HasPrefix(c.Vendor, "GenuineIntel") {
			intelHub = true
		}
	}
	at := a
	for _, l := range route {
		if l.From != at {
			return fmt.Sprintf("the route from %v to %v breaks at %v", a, b, l)
		}
		at = l.To
		amount := bw
		if l.Type == PIX && intelHub && typ == PHB && a.Kind == GPUNode {
			amount = bw * 6 / 5
		}
		ld[l] += amount
		if l.To.Dev != nil && l.To.Dev.SM < 80 && a.Kind != GPUNode && l.Type != LOC && l.Rev != nil {
			ld[l.Rev] += amount / 8
		}
		if l.To.CPU != nil && l.To.CPU.Arch == "ppc64" && l.Type == NVL && l.Rev != nil {
			ld[l.Rev] += amount
		}
	}
	if at != b {
		return fmt.Sprintf("the route from %v ends at %v, not at %v", a, at, b)
	}
	return ""
}

// netByName finds "NET/host-dev".
func netByName(s *System, name string) *Node {
	host, dev, ok := strings.Cut(strings.TrimPrefix(name, "NET/"), "-")
	h, err1 := strconv.ParseUint(host, 16, 8)
	d, err2 := strconv.ParseUint(dev, 16, 56)
	if !ok || err1 != nil || err2 != nil {
		return nil
	}
	for _, n := range s.Nodes[NETNode] {
		if n.ID == MakeID(int(h), d) {
			return n
		}
	}
	return nil
}
