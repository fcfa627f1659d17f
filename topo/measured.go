package topo

import (
	"fmt"
	"slices"
	"strings"
)

// Measured is what a link really carries, in GB/s, as a transport has seen it under load. Link is a directed link as
// Link.Name writes it, or a network device ("NET/0-3"), which stands for its links in both directions.
type Measured struct {
	Link string
	GBs  float64
}

// Name identifies a link by its ends: "GPU/0-3000>NVS/0-0". It is the same in every process that builds the same machine.
func (l *Link) Name() string { return l.From.String() + ">" + l.To.String() }

// MergeMeasured makes one list of what several ranks have seen: of a link the highest value, because a link can carry what anybody
// has seen it carry, and a rank that shares it sees a part. Values that are no bandwidths are left out. The result
// is in order of names, so that all ranks have the same.
func MergeMeasured(lists ...[]Measured) []Measured {
	best := map[string]float64{}
	for _, list := range lists {
		for _, m := range list {
			if m.GBs > 0 && m.GBs < LocalBW {
				best[m.Link] = max(best[m.Link], m.GBs)
			}
		}
	}
	out := make([]Measured, 0, len(best))
	for link, gbs := range best {
		out = append(out, Measured{link, gbs})
	}
	slices.SortFunc(out, func(a, b Measured) int { return strings.Compare(a.Link, b.Link) })
	return out
}

// reweight replaces nominal bandwidths by measured ones. A link that the machine does not have is left out: measurements may be
// older than the machine. Links of one name that stand side by side get the value each, as they had one each.
func (s *System) reweight(list []Measured) {
	if len(list) == 0 {
		return
	}
	gbs := map[string]float64{}
	for _, m := range list {
		gbs[m.Link] = m.GBs
	}
	for _, nodes := range s.Nodes {
		for _, n := range nodes {
			for _, l := range n.Out {
				v, ok := gbs[l.Name()]
				for _, end := range []*Node{l.From, l.To} {
					if at, is := gbs[end.String()]; is && end.Kind == NETNode {
						v, ok = at, true
						end.Net.BW = at
					}
				}
				if ok {
					l.BW = v
				}
			}
		}
	}
}

// NetLink is the name under which measurements of a network device are known; empty if the system does not have it.
func (s *System) NetLink(host int, name string, port int) string {
	for _, n := range s.Nodes[NETNode] {
		if n.ID.Host() == host && n.Net.Name == name && n.Net.Port == port {
			return n.String()
		}
	}
	return ""
}

func (m Measured) String() string { return fmt.Sprintf("%s %.4g GB/s", m.Link, m.GBs) }
