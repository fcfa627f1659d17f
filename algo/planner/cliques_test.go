package planner_test

import (
	"fmt"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// shapes are worlds of several cliques: equal ones, uneven ones, members dealt out, every rank alone.
func shapes() []*plan.Cliques {
	deal := func(n int, label func(r int) int) *plan.Cliques {
		labels := make([]int, n)
		for r := range labels {
			labels[r] = label(r)
		}
		return plan.CliquesOf(labels)
	}
	shapes := []*plan.Cliques{
		deal(6, func(r int) int { return r % 2 }),
		deal(8, func(r int) int { return r % 4 }),
		deal(5, func(r int) int { return r / 2 }),
		deal(9, func(r int) int { return r * r % 3 }),
	}
	for _, size := range []int{1, 2, 3, 4} {
		for _, count := range []int{2, 3, 4, 5, 8} {
			shapes = append(shapes, plan.EqualCliques(size*count, size))
		}
	}
	return shapes
}

// Every method that fits reaches ranks outside the clique by edges alone, and every collective has one.
func TestVerifyAcrossCliques(t *testing.T) {
	for c := range plan.NumColls {
		fits := map[*plan.Cliques]int{}
		worlds := shapes()
		if c == plan.SendRecv {
			worlds = []*plan.Cliques{plan.EqualCliques(2, 1)}
		}
		for _, name := range planner.Methods(c) {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				for _, w := range worlds {
					for _, root := range []int{0, w.Ranks() - 1} {
						j := planner.Job{Coll: c, Method: name, Ranks: w.Ranks(), Root: root, Cliques: w}
						if j.Against() != "" {
							continue
						}
						fits[w]++
						if err := plan.VerifyAll(w.Ranks(), w, j.Plan); err != nil {
							t.Fatalf("%d ranks in %d cliques, root %d: %v", w.Ranks(), w.Count(), root, err)
						}
					}
				}
			})
		}
		for _, w := range worlds {
			if fits[w] == 0 {
				t.Errorf("%s has no method for %d ranks in %d cliques", c, w.Ranks(), w.Count())
			}
		}
	}
}

// A method that loads peers is refused outside one clique, and by the verifier too.
func TestReachIsRefused(t *testing.T) {
	w := plan.EqualCliques(4, 2)
	for _, name := range []string{planner.Direct} {
		if against := (planner.Job{Coll: plan.AllReduce, Method: name, Ranks: 4, Cliques: w}).Against(); against == "" {
			t.Errorf("%s fits two cliques", name)
		}
		err := plan.VerifyAll(4, w, planner.Source(plan.AllReduce, name, 4, 0))
		if err == nil {
			t.Errorf("%s passes the verifier with two cliques", name)
		}
	}
}
