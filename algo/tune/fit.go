package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

// Sample is a measured time of a collective of one clique.
type Sample struct {
	Coll   plan.Coll
	Method string
	Staged bool // buffers out of peers' reach
	Bytes  int64
	NS     float64
}

// Fitted is a sample beside what the fitted machine predicts for it.
type Fitted struct {
	Sample
	Predicted float64
}

// worlds are simulated again and again with other numbers.
type worlds map[Sample]*sim.World

func (w worlds) time(m *cost.Machine, nranks int, s Sample) (float64, error) {
	key := s
	key.Bytes, key.NS = 0, 0
	if w[key] == nil {
		j := planner.Job{Coll: s.Coll, Method: s.Method, Ranks: nranks}
		world, err := sim.Build(nranks, j.Plan, sim.Setting{Staged: s.Staged})
		if err != nil {
			return 0, err
		}
		w[key] = world
	}
	t, err := w[key].Time(m, float64(s.Bytes), sim.Weather{})
	return t.NS, err
}

// Fit finds the numbers of a machine under which the simulator comes nearest to samples of nranks ranks, by relative error. start
// gives what is not fitted. Samples should have small sizes of methods with one and several steps, and large ones with
// and without staging.
func Fit(start *Machine, nranks int, samples []Sample) (*Machine, []Fitted, error) {
	if len(samples) == 0 {
		return nil, nil, fmt.Errorf("fit: no samples")
	}
	m := *start
	knots := footprints(nranks, samples)
	m.User, m.Scratch = resampled(start.User, knots), resampled(start.Scratch, knots)
	params := []*float64{&m.Call, &m.Op, &m.Poll, &m.Signal}
	if m.Share(nranks) > 1 {
		params = append(params, &m.Switch)
	} else {
		params = append(params, &m.Inside.Latency)
	}
	for k := range m.User {
		params = append(params, &m.User[k].Value, &m.Scratch[k].Value)
	}
	w := worlds{}
	loss := func() (float64, error) {
		sum := 0.0
		for _, s := range samples {
			t, err := w.time(&m, nranks, s)
			if err != nil {
				return 0, err
			}
			d := math.Log(t / s.NS)
			sum += d * d
		}
		// Neighbouring knots that differ much are paid for: there may be no sample that tells them apart.
		for _, c := range []cost.Curve{m.User, m.Scratch} {
			for k := 1; k < len(c); k++ {
				d := math.Log(c[k].Value / c[k-1].Value)
				sum += 0.002 * d * d
			}
		}
		return sum, nil
	}
	if err := lowest(params, loss); err != nil {
		return nil, nil, err
	}
	var out []Fitted
	for _, s := range samples {
		t, err := w.time(&m, nranks, s)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, Fitted{Sample: s, Predicted: t})
	}
	return &m, out, nil
}

// footprints are the knots of curves: how many bytes the ranks had together in the larger samples.
func footprints(nranks int, samples []Sample) []float64 {
	var list []float64
	for _, s := range samples {
		if f := 2 * float64(nranks) * float64(s.Bytes); s.Bytes >= 1024 && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		list = []float64{1 << 20}
	}
	return list
}

func resampled(c cost.Curve, at []float64) (out cost.Curve) {
	for _, bytes := range at {
		out = append(out, cost.Point{Bytes: bytes, Value: max(c.At(bytes), 1e-6)})
	}
	return out
}

// lowest descends from a few places, as descents end in different valleys: from where the numbers are, and with some of them changed
// before. It leaves the numbers of the deepest.
func lowest(params []*float64, loss func() (float64, error)) error {
	start, best := values(params), []float64(nil)
	least := math.Inf(1)
	for _, by := range starts {
		for k, p := range params {
			*p = start[k]
			if k < len(by) {
				*p = max(*p, 1) * by[k]
			}
		}
		if err := descend(params, loss); err != nil {
			return err
		}
		l, err := loss()
		if err != nil {
			return err
		}
		if l < least {
			least, best = l, values(params)
		}
	}
	for k, p := range params {
		*p = best[k]
	}
	return nil
}

// starts are by what call, op, poll, signal and switch or latency are multiplied before a descent.
var starts = [][]float64{{1, 1, 1, 1, 1}, {1, 1, 1, 0.1, 2}, {0.1, 0.1, 0.1, 1, 1}}

func values(params []*float64) []float64 {
	out := make([]float64, len(params))
	for k, p := range params {
		out[k] = *p
	}
	return out
}

// descend moves one number after the other by factors, as long as that lowers the loss. All numbers stay positive.
func descend(params []*float64, loss func() (float64, error)) error {
	best, err := loss()
	if err != nil {
		return err
	}
	for _, p := range params {
		*p = max(*p, 1e-6)
	}
	for factor := 2.0; factor > 1.005; factor = math.Sqrt(factor) {
		for moved, turn := true, 0; moved && turn < 20; turn++ {
			moved = false
			for _, p := range params {
				for _, by := range []float64{factor, 1 / factor} {
					old := *p
					*p *= by
					now, err := loss()
					if err != nil {
						return err
					}
					if now < best*(1-1e-6) {
						best, moved = now, true
						break
					}
					*p = old
				}
			}
		}
	}
	// What moves the loss by nothing may have drifted; four digits are enough to write.
	for _, p := range params {
		scale := math.Pow(10, 3-math.Floor(math.Log10(*p)))
		*p = math.Round(*p*scale) / scale
	}
	return nil
}

// Samples is what a calibration measures: each method and kind of buffer at which sizes. shared: ranks share processors, so that
// slots of eager operations are large.
func Samples(shared bool) []Sample {
	var list []Sample
	add := func(method string, staged bool, sizes ...int64) {
		for _, b := range sizes {
			list = append(list, Sample{Coll: plan.AllReduce, Method: method, Staged: staged, Bytes: b})
		}
	}
	add(planner.Eager, false, 8)
	if shared {
		add(planner.Eager, false, 4<<10)
	}
	large := []int64{4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20}
	add(planner.Direct, false, append([]int64{8}, large...)...)
	add(planner.Direct, true, append([]int64{8}, large...)...)
	add(planner.Ring, false, 8, 4<<10, 32<<10, 256<<10, 2<<20)
	add(planner.RD, false, 8, 4<<10, 32<<10, 2<<20)
	add(planner.Tree, false, 8, 32<<10, 2<<20)
	return list
}
