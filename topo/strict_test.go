package topo

import (
	"fmt"
	"strings"
	"testing"
)

// differs lists where the strict search does not give NCCL's graphs, and why. Everything else must be equal: orders, speeds,
// NICs, types, numbers of channels, rings and trees over nodes.
var differs = map[string]string{
	"a6000-4gpu-pcie-socket-veth 2 tree":             "the walk for 8 different trees needs more steps than NCCL's",
	"a6000-4gpu-pcie-socket-veth 4 tree":             "the same",
	"a6000-4gpu-pcie-socket-veth+P2P_DISABLE 2 tree": "the same",
	"gb300-2tray-8gpu-mnnvl 2 nvls":                  "an unreadable adapter id does not merge the NICs of two hosts here",
	"gb300-2tray-8gpu-mnnvl 2 ring":                  "the same",
	"gb300-2tray-8gpu-mnnvl 2 tree":                  "the same",
	"gb300-2tray-8gpu-mnnvl 4 nvls":                  "the same",
	"gb300-2tray-8gpu-mnnvl 4 ring":                  "the same",
	"gb300-2tray-8gpu-mnnvl 4 tree":                  "the same",
}

// differsAnywhere says whether some graph of a file and a number of nodes is on the list.
func differsAnywhere(name string, nodes int) bool {
	for _, kind := range []string{"ring", "tree", "nvls"} {
		if _, listed := differs[fmt.Sprintf("%s %d %s", name, nodes, kind)]; listed {
			return true
		}
	}
	return false
}

func graphText(g GraphReport) string {
	s := fmt.Sprintf("p%d cn%d %dch %g/%g %s/%s same%d:", g.Pattern, g.CrossNic, g.NChannels, g.BWIntra, g.BWInter,
		g.TypeIntra, g.TypeInter, g.SameChannels)
	for i := 0; i < len(g.Channels); {
		j := i
		text := fmt.Sprint(g.Channels[i])
		for j < len(g.Channels) && fmt.Sprint(g.Channels[j]) == text {
			j++
		}
		s += fmt.Sprintf(" %dx%v", j-i, g.Channels[i])
		i = j
	}
	return s
}

func TestStrictSearchIsNCCLs(t *testing.T) {
	all := loadOracle(t)
	same, total := 0, 0
	for _, name := range sortedKeys(all) {
		for _, nodes := range []int{1, 2, 4} {
			want := all[name].By[nodes]
			if want == nil || want.Graphs == nil {
				continue
			}
			s, o, err := loadSystem(t, name, nodes)
			if err != nil {
				t.Fatal(name, err)
			}
			o.Strict = true
			d, err := Search(s, o)
			if err != nil {
				t.Errorf("%s %d nodes: %v", name, nodes, err)
				continue
			}
			got := d.Report()
			other := false
			for _, g := range sortedKeys(want.Graphs) {
				total++
				key := fmt.Sprintf("%s %d %s", name, nodes, g)
				a, b := graphText(got.Graphs[g]), graphText(want.Graphs[g])
				why, listed := differs[key]
				switch {
				case a == b:
					same++
					if listed {
						t.Errorf("%s is NCCL's: take it off the list (%s)", key, why)
					}
				case !listed:
					t.Errorf("%s:\n   %s\n   NCCL %s", key, a, b)
				}
				other = other || a != b
			}
			if other {
				continue
			}
			if got.Channels != want.Channels {
				t.Errorf("%s %d nodes: channels %+v, NCCL %+v", name, nodes, got.Channels, want.Channels)
			}
			if a, b := asJSON(t, got.Rings), asJSON(t, want.Rings); a != b {
				t.Errorf("%s %d nodes: rings\n    %.300s\n    %.300s", name, nodes, a, b)
			}
			if a, b := asJSON(t, got.Trees), asJSON(t, want.Trees); a != b {
				t.Errorf("%s %d nodes: trees\n    %.300s\n    %.300s", name, nodes, a, b)
			}
		}
	}
	for key := range differs {
		if name, _, _ := strings.Cut(key, " "); all[name] == nil {
			t.Errorf("%s is on the list, but there is no such file", key)
		}
	}
	t.Logf("%d of %d graphs are exactly NCCL's", same, total)
}
