package tune

import (
	"math"
	"testing"

	"github.com/gccl/gccl/algo/cost"
)

// Samples that a known machine would give are explained by the fit, which begins far from it; and the fit predicts what was
// not among them.
func TestFitFindsAMachine(t *testing.T) {
	truth := machine(t, "host")
	for _, n := range []int{2, 4} {
		truth.CPUs = 2
		w := worlds{}
		samples := Samples(n > truth.CPUs)
		for k := range samples {
			ns, err := w.time(truth, n, samples[k])
			if err != nil {
				t.Fatal(err)
			}
			samples[k].NS = ns
		}
		start := *truth
		start.Call, start.Op, start.Poll, start.Switch, start.Inside.Latency = 100, 40, 10, 800, 120
		start.User, start.Scratch = cost.Level(0.05), cost.Level(0.05)
		m, fitted, err := Fit(&start, n, samples)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fitted {
			if off := math.Abs(f.Predicted/f.NS - 1); off > 0.08 {
				t.Errorf("%d ranks, %s staged %t of %d bytes: %.0f ns, fitted %.0f", n, f.Method, f.Staged, f.Bytes, f.NS, f.Predicted)
			}
		}
		for _, s := range []Sample{{Coll: 0, Method: "tree", Bytes: 64 << 10}, {Coll: 0, Method: "rhd", Bytes: 1 << 20}, {Coll: 2, Method: "direct", Bytes: 128 << 10}} {
			want, _ := w.time(truth, n, s)
			got, err := w.time(m, n, s)
			if err != nil || math.Abs(got/want-1) > 0.3 {
				t.Errorf("%d ranks, %s %s: %.0f ns, want %.0f, error %v", n, s.Coll, s.Method, got, want, err)
			}
		}
	}
	if _, _, err := Fit(truth, 2, nil); err == nil {
		t.Error("no error without samples")
	}
}
