package planner_test

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// A rank's plan has at most so many ops and edges for each binary digit of the number of ranks, so that worlds of
// 100,000 ranks can be planned.
const opsPerDigit = 60

// slow methods have a part of the plan for every rank of the clique, and a small limit.
var slow = map[string]bool{planner.Relay: true, planner.Pairwise: true, planner.Hier: true}

func TestPlansStaySmall(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			for _, n := range []int{1, 2, 17, 1000, 65535, 100_000} {
				if !planner.Fits(c, name, n) || slow[name] {
					continue
				}
				for _, r := range []int{0, 1, n / 3, n / 2, n - 1} {
					if r >= n {
						continue
					}
					p, err := planner.Make(c, name, n, r, n/5)
					if err != nil {
						t.Fatal(err)
					}
					if got, most := len(p.Ops)+len(p.Edges), opsPerDigit*bits.Len(uint(n)); got > most {
						t.Errorf("%s %s rank %d of %d: %d ops and edges, at most %d", c, name, r, n, got, most)
					}
					if err := p.Check(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, c := range []struct {
		coll          plan.Coll
		name          string
		n, rank, root int
		want          string
	}{
		{plan.AllReduce, "magic", 4, 0, 0, "no such method; all_reduce has [direct eager"},
		{plan.AllToAll, planner.Ring, 4, 0, 0, "no such method"},
		{plan.NumColls, planner.Ring, 4, 0, 0, "no such collective"},
		{plan.AllReduce, planner.Ring, 0, 0, 0, "number of ranks"},
		{plan.AllReduce, planner.RHD, 65536, 0, 0, "number of ranks is not in 1 … 65535"},
		{plan.SendRecv, planner.Direct, 3, 0, 0, "number of ranks is not in 1 … 2"},
		{plan.AllReduce, planner.Ring, 4, 4, 0, "rank is not in 0 … 3"},
		{plan.Reduce, planner.Ring, 4, 0, -1, "root -1 is not in 0 … 3"},
	} {
		_, err := planner.Make(c.coll, c.name, c.n, c.rank, c.root)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.coll, c.name, err, c.want)
		}
	}
	if _, err := planner.Make(plan.AllReduce, planner.Ring, 4, 0, 99); err != nil {
		t.Errorf("the root of a collective without root matters: %v", err)
	}
}
