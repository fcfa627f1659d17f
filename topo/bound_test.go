package topo

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Bounds change nothing but the time: without them the first search finds the same graphs.
func TestBoundsChangeNothing(t *testing.T) {
	spared := 0
	for seed := range uint64(60) {
		m := madeUp(rand.New(rand.NewPCG(seed, 2)))
		for _, nodes := range []int{1, 2} {
			o := DefaultOptions()
			o.Nodes, o.Strict = nodes, true
			s, err := Build(m, o)
			if err != nil || (nodes > 1 && !s.reachesNet()) {
				continue
			}
			for _, p := range []Pattern{Ring, BalancedTree} {
				with, without := newTask(s, o, p, 1, maxChannels/2), newTask(s, o, p, 1, maxChannels/2)
				without.unbounded = true
				a, _ := with.graph(0)
				b, _ := without.graph(0)
				x, y := graphText(a.report()), graphText(b.report())
				if x != y {
					t.Errorf("machine %d, %d nodes, pattern %d:\n   %s\n   without bounds %s", seed, nodes, p, x, y)
				}
				spared += without.runs - with.runs
			}
		}
	}
	if spared <= 0 {
		t.Error("the bounds spared no walk")
	}
	t.Log(fmt.Sprint(spared, " walks spared"))
}
