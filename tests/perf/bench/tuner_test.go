package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/cost"
)

// Choices and predictions are judged by their bounds: the larger of a fixed share and twice the spread.
func TestTunerJudgement(t *testing.T) {
	reg := regime{name: "test", ranks: 2, rounds: 3, sizes: []size{{8, 1, 1}, {1 << 20, 1, 1}}}
	machine, err := cost.Builtin("host")
	if err != nil {
		t.Fatal(err)
	}
	figures := map[methodRun][]float64{
		{"eager", "window", 8}: {1, 1, 1}, {"direct", "window", 8}: {0.8, 0.8, 0.8}, // beyond a tenth
		{"direct", "window", 1 << 20}: {100, 120, 110}, {"ring", "window", 1 << 20}: {90, 90, 90}, // within twice the spread
	}
	var failures []string
	rows := choices(reg, []string{"eager", "direct", "ring"}, figures, machine, &failures)
	if len(failures) > 0 || len(rows) != 2*2*2 {
		t.Fatal(failures, rows)
	}
	if r := rows[0]; r.Table != "fixed" || r.Chosen != "eager" || r.Best != "direct" || r.Right {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Chosen != "direct" || r.Best != "ring" || !r.Right || *r.Allowed < 0.3 {
		t.Errorf("%+v", r)
	}
	if r := rows[2]; r.US != nil || r.Right {
		t.Errorf("not measured, and yet %+v", r)
	}
	p := predictions(reg, []string{"direct"}, figures, machine, &failures)
	if len(p) != 2 || p[1].Bytes != 1<<20 || p[1].PredictedUS == nil || len(failures) > 0 {
		t.Fatal(failures, p)
	}
	var text bytes.Buffer
	writeTuner(&text, &tunerResult{Choices: rows, Predictions: p}, 3)
	for _, want := range []string{"Table fixed: right at 1 of 4 sizes (25 %)", "| 2 | window | 1 MiB | direct | 110.0 | ring | 90.0 | 18 % | 36 % | true |", "## Predictions of the simulator"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
