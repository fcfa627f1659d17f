package topo

import (
	"testing"
)

func TestConformanceTable(t *testing.T) {
	all := loadOracle(t)
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
			d, err := Search(s, o)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, g := range sortedKeys(want.Graphs) {
				ours, theirs := d.graphs()[g], want.Graphs[g]
				a, b := checkGraph(s, nodes, ours), checkGraph(s, nodes, theirs)
				t.Logf("%-36s %d %-4s ours %3dx%g/%g %s/%s = %.4g room %.3g   NCCL %3dx%g/%g %s/%s = %.4g room %.3g", name, nodes, g,
					ours.NChannels, ours.BWIntra, ours.BWInter, ours.TypeIntra, ours.TypeInter, a.total(nodes), a.room,
					theirs.NChannels, theirs.BWIntra, theirs.BWInter, theirs.TypeIntra, theirs.TypeInter, b.total(nodes), b.room)
				for _, p := range a.problems {
					t.Errorf("%s %d nodes %s: ours: %s", name, nodes, g, p)
				}
				for _, p := range b.problems {
					t.Logf("%s %d nodes %s: NCCL's: %s", name, nodes, g, p)
				}
			}
		}
	}
}
