package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/tune"
)

// calibrationRuns is how often a sample is measured. The smallest median counts: what else runs only adds.
const calibrationRuns = 3

// calibrationCalls is how many calls a run times: seldom more than a fifth of a second. The first hundred of a middle size are
// slower than the rest, so that the median of few is not what a program sees.
func calibrationCalls(bytes int64, shared bool) int {
	n := 20_000
	for b := int64(64); b < bytes; b *= 4 {
		n /= 2
	}
	if shared {
		n /= 2
	}
	return max(n, 16)
}

// calibrate measures a few methods at a few sizes, fits a machine to the times and writes it for GCCL_TUNE_FILE.
func calibrate(o options, stdout, stderr io.Writer, stop <-chan struct{}) error {
	nranks := o.processes * o.threads
	if nranks < 2 {
		return fmt.Errorf("--calibrate: %d rank; -P sets the number of processes, -t that of threads", nranks)
	}
	shared := nranks > runtime.NumCPU()
	samples := tune.Samples(shared)
	for k := range samples {
		s := &samples[k]
		var runs []float64
		for range calibrationRuns {
			us, err := measureSample(o, *s, calibrationCalls(s.Bytes, shared), stop)
			if err != nil {
				return fmt.Errorf("--calibrate: %s of %d bytes: %w", s.Method, s.Bytes, err)
			}
			runs = append(runs, us)
		}
		s.NS = slices.Min(runs) * 1e3
		fmt.Fprintf(stderr, "%-8s %-7s %9d bytes %12.3f us\n", s.Method, sampleBuffers(*s), s.Bytes, s.NS/1e3)
	}
	start, err := cost.Builtin("host")
	if err != nil {
		return err
	}
	start.Name, start.CPUs, start.Eager = "calibrated", runtime.NumCPU(), 8<<10
	m, fitted, err := tune.Fit(start, nranks, samples)
	if err != nil {
		return err
	}
	text := calibrationText(m, fitted, nranks, time.Now())
	if o.calibrate == "-" {
		_, err = io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(o.calibrate, []byte(text), 0o644)
}

func sampleBuffers(s tune.Sample) string {
	if s.Staged {
		return "malloc"
	}
	return "window"
}

// calibrationText is the machine with what it was fitted to as comments.
func calibrationText(m *cost.Machine, fitted []tune.Fitted, nranks int, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# gccl-perf --calibrate: %d ranks on %d processors, %s\n# measured and fitted times in microseconds:\n", nranks, m.CPUs, now.UTC().Format(time.RFC3339))
	for _, f := range fitted {
		fmt.Fprintf(&b, "#   %s %-8s %-7s %9d bytes %12.3f %12.3f\n", f.Coll, f.Method, sampleBuffers(f.Sample), f.Bytes, f.NS/1e3, f.Predicted/1e3)
	}
	b.WriteString(m.String())
	return b.String()
}

// measureSample runs this program with one method and gives the median of isolated calls, in microseconds.
func measureSample(o options, s tune.Sample, calls int, stop <-chan struct{}) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	size := strconv.FormatInt(s.Bytes, 10)
	args := []string{"-P", strconv.Itoa(o.processes), "-t", strconv.Itoa(o.threads), "--pin", "--latency", "--out-of-place", "--json", "-c", "1",
		"--coll", s.Coll.String(), "-b", size, "-e", size, "-n", strconv.Itoa(calls), "-w", strconv.Itoa(calls/10 + 2), "-T", o.timeout.String()}
	if !s.Staged {
		args = append(args, "--window")
	}
	if o.rankProgram != "" {
		args = append(args, "--rank-program", o.rankProgram)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"NCCL_ALGO", "NCCL_PROTO", "GCCL_TUNE_FILE", "GCCL_PLAN_FILE"}, name)
	}), "NCCL_ALGO="+s.Method)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-stop:
		return 0, errors.Join(errors.New("interrupted"), cmd.Process.Kill(), <-ended)
	case err := <-ended:
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
		}
	}
	d := json.NewDecoder(&out)
	for {
		var row jsonRow
		if err := d.Decode(&row); err != nil {
			return 0, fmt.Errorf("no result: %w", err)
		}
		if row.Kind == "row" {
			if row.Wrong == nil || *row.Wrong != 0 {
				return 0, errors.New("unchecked or wrong results")
			}
			return row.P50, nil
		}
	}
}
