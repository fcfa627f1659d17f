package topo

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

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

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStrictSearchAgainstNCCL(t *testing.T) {
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
			begin := time.Now()
			d, err := Search(s, o)
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Logf("%s %d nodes took %v", name, nodes, took)
			}
			if err != nil {
				t.Errorf("%s %d nodes: %v", name, nodes, err)
				continue
			}
			if !near(s.MaxBW(nodes > 1)/10, want.MaxBW/10) || !near(s.TotalBW(nodes > 1), want.TotalBW) {
				t.Errorf("%s %d nodes: maxBw %g totalBw %g, NCCL %g %g", name, nodes, s.MaxBW(nodes > 1), s.TotalBW(nodes > 1), want.MaxBW, want.TotalBW)
			}
			got := d.graphs()
			r := d.Report()
			if r.Channels != want.Channels {
				t.Logf("%s %d nodes: channels %+v, NCCL %+v", name, nodes, r.Channels, want.Channels)
			}
			if a, b := asJSON(t, r.Rings), asJSON(t, want.Rings); a != b {
				t.Logf("%s %d nodes: rings\n    %.300s\n    %.300s", name, nodes, a, b)
			}
			if a, b := asJSON(t, r.Trees), asJSON(t, want.Trees); a != b {
				t.Logf("%s %d nodes: trees\n    %.300s\n    %.300s", name, nodes, a, b)
			}
			for _, g := range sortedKeys(want.Graphs) {
				total++
				a, b := graphText(got[g]), graphText(want.Graphs[g])
				if a == b {
					same++
					continue
				}
				t.Logf("%s %d nodes %s:\n   %s\n   NCCL %s", name, nodes, g, a, b)
			}
		}
	}
	t.Logf("%d of %d graphs are NCCL's", same, total)
}
