package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

// only is a machine on which nothing costs but switches, and bytes if rate is not 0.
func only(cpus int, switches, rate float64) *cost.Machine {
	return &cost.Machine{CPUs: cpus, Switch: switches, User: cost.Level(rate), Scratch: cost.Level(rate), Stage: 2 << 20, Eager: 8 << 10,
		Protos: []cost.Proto{cost.Simple}, Channels: 1}
}

func switches(t *testing.T, method string, ranks, cpus int) float64 {
	t.Helper()
	j := planner.Job{Coll: plan.AllReduce, Method: method, Ranks: ranks}
	return timed(t, j, sim.Setting{}, only(cpus, 1, 0), 64).NS
}

// On two processors the neighbours of a ring never share one, and half of the exchanges of halving and doubling are between ranks that do:
// which ranks share a processor decides how many switches an exchange takes: rank r is on processor r modulo 2.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		method      string
		ranks, cpus int
		want        float64
	}{
		{planner.RD, 2, 1, 2}, // 0 sends; 1 sends, has both, ends; 0 ends
		{planner.RD, 4, 4, 0}, // everybody runs
	} {
		if got := switches(t, c.method, c.ranks, c.cpus); got > c.want+1 || got < c.want {
			t.Errorf("%s of %d ranks on %d processors: %g switches, want %g, or one more at the end", c.method, c.ranks, c.cpus, got, c.want)
		}
	}
	if ring, rhd := switches(t, planner.Ring, 4, 2), switches(t, planner.RHD, 4, 2); ring <= rhd {
		t.Errorf("a ring of 4 on 2 processors takes %g switches, halving and doubling %g", ring, rhd)
	}
}

// A rank that has nothing to do is finished from the beginning, with processors of their own and with shared ones.
func TestRanksWithNothingToDo(t *testing.T) {
	text := func(rank int, ops string) string {
		return fmt.Sprintf("plan broadcast idle ranks 3 rank %d root 0 send_parts 1 recv_parts 1 split steps 0 places 1\n%s", rank, ops)
	}
	ops := []string{"edge 0 out peer 1 slots 1 index 0 place 0\nwait credit 0\ncopy send@0[0] -> slot#0[0]\nsignal data 0\n",
		"edge 0 in peer 0 slots 1 index 0 place 0\nwait data 0\ncopy slot#0[0] -> recv@1[0]\nsignal credit 0\n", ""}
	for _, cpus := range []int{0, 2} {
		w, err := sim.Build(3, func(r int) (*plan.Plan, error) { return plan.Parse(text(r, ops[r])) }, sim.Setting{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.Time(only(cpus, 1, 1), 64, sim.Weather{}); err != nil || got.NS < 64 {
			t.Errorf("%d processors: %+v, %v", cpus, got, err)
		}
	}
}

// Every method ends, takes at least the work of all divided by the processors, and at most the work of all.
func TestTurnsDoTheWork(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			for _, n := range []int{3, 4, 5, 8} {
				j := planner.Job{Coll: c, Method: name, Ranks: n}
				if j.Against() != "" {
					continue
				}
				for _, set := range []sim.Setting{{}, {Staged: true}} {
					for _, bytes := range []float64{64, 1 << 20} {
						alone := timed(t, j, set, only(1, 0, 1), bytes).NS // all work, one after the other
						for _, cpus := range []int{2, 3} {
							if cpus >= n {
								continue
							}
							got := timed(t, j, set, only(cpus, 0, 1), bytes).NS
							if got < alone/float64(cpus)*(1-1e-9) || got > alone*(1+1e-9) {
								t.Errorf("%s %s of %d ranks on %d processors, %g bytes: %g, all work is %g", c, name, n, cpus, bytes, got, alone)
							}
							if slow := timed(t, j, set, only(cpus, 100, 1), bytes).NS; slow < alone/float64(cpus)*(1-1e-9) || math.IsInf(slow, 0) {
								t.Errorf("%s %s of %d ranks on %d processors, %g bytes: %g with switches, all work is %g", c, name, n, cpus, bytes, slow, alone)
							}
						}
					}
				}
			}
		}
	}
}
