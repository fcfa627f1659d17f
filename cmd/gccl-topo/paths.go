package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/place"
)

// maxMatrix bounds the matrix to what fits a wide screen.
const maxMatrix = 32

// printPaths writes the path between each two ranks: its type and bandwidth.
func printPaths(w io.Writer, s *topo.System) {
	ranks := slices.Clone(s.Ranks)
	slices.SortFunc(ranks, func(a, b *topo.Rank) int { return a.Rank - b.Rank })
	left := max(len(ranks)-maxMatrix, 0)
	ranks = ranks[:len(ranks)-left]
	fmt.Fprintln(w, "Paths between ranks, with GB/s:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range ranks {
		fmt.Fprintf(t, "\t%d", r.Rank)
	}
	fmt.Fprintln(t)
	for _, a := range ranks {
		fmt.Fprintf(t, "rank %d", a.Rank)
		for _, b := range ranks {
			if a == b {
				fmt.Fprint(t, "\t-")
				continue
			}
			kind, bw, _ := s.Path(a.Node, b.Node)
			fmt.Fprintf(t, "\t%s", pathText(kind, bw))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	if left > 0 {
		fmt.Fprintf(w, "and %d more ranks\n", left)
	}
	fmt.Fprintln(w, legend(s, ranks))
}

func pathText(kind topo.PathType, bw float64) string {
	if kind == topo.LOC || kind == topo.DIS {
		return kind.String()
	}
	return fmt.Sprintf("%s %.4g", kind, bw)
}

// meanings are what people want to know of a path type.
var meanings = map[topo.PathType]string{
	topo.LOC: "on one device", topo.NVL: "NVLink", topo.NVB: "NVLink through another GPU", topo.C2C: "C2C", topo.PIX: "at most one PCI switch",
	topo.PXB: "several PCI switches", topo.P2C: "C2C and the CPU's own NIC", topo.PXN: "through a GPU near the NIC", topo.PHB: "through a CPU",
	topo.SYS: "from one CPU to another", topo.NET: "network only", topo.DIS: "none",
}

// legend explains the types that occur.
func legend(s *topo.System, ranks []*topo.Rank) string {
	seen := map[topo.PathType]bool{}
	for _, a := range ranks {
		for _, b := range ranks {
			if a != b {
				kind, _, _ := s.Path(a.Node, b.Node)
				seen[kind] = true
			}
		}
		for _, n := range s.Nodes[topo.NETNode] {
			kind, _, _ := s.Path(a.Node, n)
			seen[kind] = true
		}
	}
	var out []string
	for kind := topo.LOC; kind <= topo.DIS; kind++ {
		if seen[kind] {
			out = append(out, kind.String()+" "+meanings[kind])
		}
	}
	if len(out) == 0 {
		return "(one rank)"
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// printNets writes the network devices with the ranks for which each is the nearest.
func printNets(w io.Writer, s *topo.System) {
	nets := s.Nodes[topo.NETNode]
	if len(nets) == 0 {
		fmt.Fprintln(w, "No network device.")
		return
	}
	fmt.Fprintln(w, "Network devices:")
	near := map[*topo.Node][]string{}
	for _, r := range s.Ranks {
		best, found := topo.DIS, []*topo.Node(nil)
		var most float64
		for _, n := range nets {
			kind, bw, _ := s.Path(r.Node, n)
			if kind < best || kind == best && bw > most {
				best, most, found = kind, bw, nil
			}
			if kind == best && bw == most {
				found = append(found, n)
			}
		}
		for _, n := range found {
			near[n] = append(near[n], fmt.Sprintf("%d %s", r.Rank, pathText(best, most)))
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NET\tname\tport\tGB/s\tGPU memory\tnearest to ranks")
	for _, n := range nets {
		memory := "no"
		if n.Net.GDR {
			memory = "yes"
		}
		to := strings.Join(near[n], ", ")
		if to == "" {
			to = "-"
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%.4g\t%s\t%s\n", n.Net.Dev, n.Net.Name, n.Net.Port, n.Net.BW, memory, to)
	}
	_ = t.Flush()
	if len(s.Ranks) > 0 && place.IsOnCPUs(s.Ranks[0].Device.Dev.BusID) {
		fmt.Fprintln(w, "(ranks stand on CPUs)")
	}
}
