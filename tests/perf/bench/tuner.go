package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
	"github.com/gccl/gccl/algo/tune"
)

// What the tuner chooses and what the simulator predicts, beside what every method takes.

// Bounds asked for: a choice or a prediction is right within so much, or within twice the spread of the run.
const (
	choiceBound     = 0.10
	predictionBound = 0.25
	choiceShare     = 0.90
)

// calibrationTimeout is for some fifty runs.
const calibrationTimeout = 10 * time.Minute

// choiceRow is the tuner's choice at one size.
type choiceRow struct {
	Ranks   int      `json:"ranks"`
	Mode    string   `json:"mode"`
	Bytes   int64    `json:"bytes"`
	Table   string   `json:"table"` // fixed, or from the calibrated machine
	Chosen  string   `json:"chosen"`
	US      *float64 `json:"us"` // null: not measured
	Best    string   `json:"best"`
	BestUS  *float64 `json:"best_us"`
	Spread  *float64 `json:"spread"` // the larger one of the two
	Allowed *float64 `json:"allowed"`
	Right   bool     `json:"right"`
}

// predictionRow is one method at one size.
type predictionRow struct {
	Ranks       int      `json:"ranks"`
	Mode        string   `json:"mode"`
	Bytes       int64    `json:"bytes"`
	Method      string   `json:"method"`
	US          *float64 `json:"us"`
	Spread      *float64 `json:"spread"`
	PredictedUS *float64 `json:"predicted_us"`
	Right       bool     `json:"right"`
}

type tunerResult struct {
	Machines    map[string]string `json:"machines"` // by number of ranks: the calibrated machine's text
	Choices     []choiceRow       `json:"choices"`
	Predictions []predictionRow   `json:"predictions"`
}

// methodsFor lists the all-reduce methods that are measured. hier is a ring where there is one clique.
func methodsFor(nranks int) (list []string) {
	for _, m := range planner.Methods(plan.AllReduce) {
		if m != planner.Hier && planner.Fits(plan.AllReduce, m, nranks) {
			list = append(list, m)
		}
	}
	return list
}

// eagerLimit is the library's own (comm/limits.go, comm/create.go): ranks that share processors copy more at once.
func eagerLimit(reg regime) int64 {
	if reg.yield {
		return 8 << 10
	}
	return max(512, 4096/int64(reg.ranks-1))
}

// methodRun is the measurement of one method at one size in one mode of buffers.
type methodRun struct {
	method, mode string
	bytes        int64
}

// tuner measures all methods of one regime, with a machine calibrated just before.
func (s *setup) tuner(reg regime, into *tunerResult) {
	file := filepath.Join(s.build, fmt.Sprintf("machine-%d.txt", reg.ranks))
	program := filepath.Join(s.bin, "gccl-perf")
	fmt.Fprintf(os.Stderr, "%s: calibration\n", reg.name)
	var machine *tune.Machine
	if _, err := outputWithin(calibrationTimeout, nil, program, "-P", strconv.Itoa(reg.ranks), "--calibrate", file); err != nil {
		s.failures = append(s.failures, fmt.Sprintf("%s, calibration: %v", reg.name, err))
	} else if text, err := os.ReadFile(file); err != nil {
		s.failures = append(s.failures, err.Error())
	} else if machine, _, err = tune.ParseFile(string(text)); err != nil {
		s.failures = append(s.failures, err.Error())
	} else {
		into.Machines[strconv.Itoa(reg.ranks)] = string(text)
	}
	figures := map[methodRun][]float64{}
	methods := methodsFor(reg.ranks)
	for round := range reg.rounds {
		for i := range methods {
			method := methods[(i+round)%len(methods)]
			fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", reg.name, round+1, reg.rounds, method)
			for _, mode := range []string{"window", "malloc"} {
				for _, z := range reg.sizes {
					if method == planner.Eager && z.bytes > eagerLimit(reg) {
						continue // direct would do it
					}
					us, err := s.methodTime(reg, method, mode, z)
					if err != nil {
						s.failures = append(s.failures, fmt.Sprintf("%s, round %d, %s %s of %d bytes: %v", reg.name, round+1, method, mode, z.bytes, err))
						continue
					}
					run := methodRun{method, mode, z.bytes}
					figures[run] = append(figures[run], us)
				}
			}
		}
	}
	into.Choices = append(into.Choices, choices(reg, methods, figures, machine, &s.failures)...)
	if machine != nil {
		into.Predictions = append(into.Predictions, predictions(reg, methods, figures, machine, &s.failures)...)
	}
}

// methodTime is the median of one run.
func (s *setup) methodTime(reg regime, method, mode string, z size) (float64, error) {
	size := strconv.FormatInt(z.bytes, 10)
	args := []string{"-P", strconv.Itoa(reg.ranks), "--pin", "--latency", "--out-of-place", "--json", "-c", "1",
		"-b", size, "-e", size, "-n", strconv.Itoa(max(z.iterations/4, 8)), "-w", strconv.Itoa(z.warmup/4 + 1)}
	if mode == "window" {
		args = append(args, "--window")
	}
	out, err := output([]string{"NCCL_ALGO=" + method, "GCCL_TUNE_FILE=", "GCCL_PLAN_FILE="}, filepath.Join(s.bin, "gccl-perf"), args...)
	if err != nil {
		return 0, err
	}
	got := map[int64]figure{}
	if err := parseOurs(out, got); err != nil {
		return 0, err
	}
	f, ok := got[z.bytes]
	if !ok {
		return 0, fmt.Errorf("no figure")
	}
	return f.p50, nil
}

// choices compares the tables with the best method at every size.
func choices(reg regime, methods []string, figures map[methodRun][]float64, machine *tune.Machine, failures *[]string) (rows []choiceRow) {
	settings := map[string]tune.Settings{"fixed": {EagerBytes: eagerLimit(reg)}}
	if machine != nil {
		settings["calibrated"] = tune.Settings{EagerBytes: 8 << 10, StageBytes: machine.Stage, Machine: machine}
	}
	for _, name := range []string{"fixed", "calibrated"} {
		set, ok := settings[name]
		if !ok {
			continue
		}
		table, _, err := tune.Default(reg.ranks, set)
		if err != nil {
			*failures = append(*failures, err.Error())
			continue
		}
		for _, mode := range []string{"window", "malloc"} {
			for _, z := range reg.sizes {
				row := choiceRow{Ranks: reg.ranks, Mode: mode, Bytes: z.bytes, Table: name, Chosen: table.Pick(plan.AllReduce, z.bytes)}
				best, apart := math.NaN(), 0.0
				for _, m := range methods {
					if us := median(figures[methodRun{m, mode, z.bytes}]); !math.IsNaN(us) && !(us >= best) {
						best, row.Best = us, m
					}
				}
				own := figures[methodRun{row.Chosen, mode, z.bytes}]
				apart = math.Max(spread(own), spread(figures[methodRun{row.Best, mode, z.bytes}]))
				allowed := math.Max(choiceBound, 2*apart)
				row.US, row.BestUS, row.Spread, row.Allowed = number(median(own)), number(best), number(apart), number(allowed)
				row.Right = median(own) <= best*(1+allowed)
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// predictions runs every method in virtual time on the calibrated machine.
func predictions(reg regime, methods []string, figures map[methodRun][]float64, machine *tune.Machine, failures *[]string) (rows []predictionRow) {
	for _, m := range methods {
		for _, mode := range []string{"window", "malloc"} {
			j := planner.Job{Coll: plan.AllReduce, Method: m, Ranks: reg.ranks}
			world, err := sim.Build(reg.ranks, j.Plan, sim.Setting{Staged: mode == "malloc"})
			if err != nil {
				*failures = append(*failures, err.Error())
				continue
			}
			for _, z := range reg.sizes {
				own := figures[methodRun{m, mode, z.bytes}]
				if len(own) == 0 {
					continue
				}
				t, err := world.Time(machine, float64(z.bytes), sim.Weather{})
				if err != nil {
					*failures = append(*failures, err.Error())
					continue
				}
				us, apart := median(own), spread(own)
				rows = append(rows, predictionRow{Ranks: reg.ranks, Mode: mode, Bytes: z.bytes, Method: m, US: number(us), Spread: number(apart),
					PredictedUS: number(t.NS / 1e3), Right: math.Abs(t.NS/1e3/us-1) <= math.Max(predictionBound, 2*apart)})
			}
		}
	}
	return rows
}

// share is how many rows of all are right.
func share[T any](rows []T, right func(T) bool) (good, all int) {
	for _, r := range rows {
		if right(r) {
			good++
		}
	}
	return good, len(rows)
}

func percent(good, all int) float64 { return 100 * float64(good) / float64(max(all, 1)) }

func value(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// writeTuner prints both comparisons.
func writeTuner(w io.Writer, t *tunerResult, rounds int) {
	fmt.Fprintf(w, "## The tuner's choice\n\nFloat sum all-reduce, isolated calls, microseconds: medians over %d rounds (spread). Right: within max(%.0f %%, twice the larger spread) of the best\n"+
		"method measured in the same rounds; asked: right at %.0f %% of the sizes. \"fixed\" is the table without a file, \"calibrated\" comes from gccl-perf --calibrate just before.\n\n", rounds, 100*choiceBound, 100*choiceShare)
	for _, table := range []string{"fixed", "calibrated"} {
		var rows []choiceRow
		for _, r := range t.Choices {
			if r.Table == table {
				rows = append(rows, r)
			}
		}
		good, all := share(rows, func(r choiceRow) bool { return r.Right })
		if all == 0 {
			continue
		}
		fmt.Fprintf(w, "Table %s: right at %d of %d sizes (%.0f %%).\n\n| ranks | buffers | bytes | chosen | µs | best | µs | spread | allowed | right |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", table, good, all, percent(good, all))
		for _, r := range rows {
			fmt.Fprintf(w, "| %d | %s | %s | %s | %s | %s | %s | %.0f %% | %.0f %% | %v |\n", r.Ranks, r.Mode, sizeName(r.Bytes), r.Chosen, cell(value(r.US)), r.Best, cell(value(r.BestUS)),
				100*value(r.Spread), 100*value(r.Allowed), r.Right)
		}
		fmt.Fprintln(w)
	}
	good, all := share(t.Predictions, func(r predictionRow) bool { return r.Right })
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "## Predictions of the simulator\n\nOn the calibrated machine, beside the medians above. Right: within max(%.0f %%, twice the spread): %d of %d (%.0f %%).\n\n"+
		"| ranks | buffers | bytes | method | measured µs | spread | predicted µs | off | right |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", 100*predictionBound, good, all, percent(good, all))
	for _, r := range t.Predictions {
		fmt.Fprintf(w, "| %d | %s | %s | %s | %s | %.0f %% | %s | %+.0f %% | %v |\n", r.Ranks, r.Mode, sizeName(r.Bytes), r.Method, cell(value(r.US)), 100*value(r.Spread), cell(value(r.PredictedUS)),
			100*(value(r.PredictedUS)/value(r.US)-1), r.Right)
	}
	fmt.Fprintln(w)
}
