package sim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

func machine(t *testing.T, name string) *cost.Machine {
	t.Helper()
	m, err := cost.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Merging equal ranks changes no time, whatever the method, the cliques and the slow ranks are.
func TestMergingChangesNothing(t *testing.T) {
	m := machine(t, "dgx")
	m.Fabric.Leaf, m.Fabric.Over = 2, 2
	slow := func(rank int) float64 {
		if rank == 3 {
			return 4
		}
		return 1
	}
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			for _, w := range []*plan.Cliques{nil, plan.EqualCliques(16, 4), plan.EqualCliques(7, 3), plan.EqualCliques(2, 1), plan.EqualCliques(9, 3)} {
				n := 6
				if w != nil {
					n = w.Ranks()
				}
				j := planner.Job{Coll: c, Method: name, Ranks: n, Cliques: w}
				if j.Against() != "" {
					continue
				}
				for _, set := range []sim.Setting{{Cliques: w}, {Cliques: w, Slow: slow}, {Cliques: w, Staged: true}} {
					set.Fabric = m.Fabric
					for _, bytes := range []float64{64, 1 << 16, 1 << 28} {
						merged := timed(t, j, set, m, bytes)
						set.Apart = true
						apart := timed(t, j, set, m, bytes)
						if math.Abs(merged.NS-apart.NS) > 1e-6*apart.NS {
							t.Errorf("%s %s, %d ranks in %d cliques, %g bytes: %.0f ns merged, %.0f apart", c, name, n, w.Count(), bytes, merged.NS, apart.NS)
						}
					}
				}
			}
		}
	}
}

func timed(t *testing.T, j planner.Job, set sim.Setting, m *cost.Machine, bytes float64) sim.Timed {
	t.Helper()
	w, err := sim.Build(j.Ranks, j.Plan, set)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Time(m, bytes, sim.Weather{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Equal ranks are found: a ring has one kind, in cliques one for each place; a complete tree few.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		job  planner.Job
		most int
	}{
		{planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 1000}, 1},
		{planner.Job{Coll: plan.AllReduce, Method: planner.Direct, Ranks: 100}, 1},
		{planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 1000, Cliques: plan.EqualCliques(1000, 8)}, 8},
		{planner.Job{Coll: plan.AllReduce, Method: planner.RD, Ranks: 1024}, 1024},
		{planner.Job{Coll: plan.AllGather, Method: planner.PAT, Ranks: 1000}, 1},
	} {
		w, err := sim.Build(c.job.Ranks, c.job.Plan, sim.Setting{Cliques: c.job.Cliques})
		if err != nil {
			t.Fatal(err)
		}
		if w.Kinds() > c.most {
			t.Errorf("%s %s of %d ranks: %d kinds and %d programs, want %d", c.job.Coll, c.job.Method, c.job.Ranks, w.Kinds(), w.Programs(), c.most)
		}
	}
}

// What the clock must know: sizes, distances, slow ranks and lost messages cost time.
func TestClock(t *testing.T) {
	m := machine(t, "dgx")
	w := plan.EqualCliques(32, 8)
	j := planner.Job{Coll: plan.AllReduce, Method: planner.Hier, Ranks: 32, Cliques: w}
	set := sim.Setting{Cliques: w, Fabric: m.Fabric}
	base := timed(t, j, set, m, 1<<20)
	if big := timed(t, j, set, m, 1<<28); big.NS < 16*base.NS {
		t.Errorf("1 MiB %.0f ns, 256 MiB %.0f", base.NS, big.NS)
	}
	slow := set
	slow.Slow = func(r int) float64 {
		if r == 5 {
			return 10
		}
		return 1
	}
	if s := timed(t, j, slow, m, 1<<20); s.NS <= base.NS {
		t.Errorf("%.0f ns with a slow rank, %.0f without", s.NS, base.NS)
	}
	set.Apart = true
	world, err := sim.Build(32, j.Plan, set)
	if err != nil {
		t.Fatal(err)
	}
	lossy, err := world.Time(m, 1<<20, sim.Weather{Loss: 0.05, Timeout: 1e5, Seed: 1})
	if err != nil || lossy.NS < base.NS+1e5 {
		t.Errorf("%.0f ns with losses, %.0f without, error %v", lossy.NS, base.NS, err)
	}
}

// A plan that waits for ever is an error that names the rank.
func TestClockFindsDeadlocks(t *testing.T) {
	source := func(r int) (*plan.Plan, error) {
		p, err := planner.Make(plan.AllReduce, planner.Ring, 4, r, 0)
		if r == 2 && err == nil {
			p.Ops = p.Ops[3:]
		}
		return p, err
	}
	w, err := sim.Build(4, source, sim.Setting{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Time(machine(t, "host"), 1<<20, sim.Weather{})
	if want := "rank 3 waits for ever at op"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
