package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
)

// Numbers of the life-cycle measurements: what the project promises is stated for these.
const (
	initThreads   = 64
	initProcesses = 8
	cycleCount    = 1000
	oneRankComms  = 16
)

// lifecycle is what making and ending communicators costs.
type lifecycle struct {
	InitThreadsUS   float64  `json:"init_threads_us"`
	InitProcessesUS float64  `json:"init_processes_us"`
	CycleUS         float64  `json:"cycle_us"`
	Fds             [2]int64 `json:"fds"` // before and after the cycles
	Threads         [2]int64 `json:"threads"`
	RSSKB           [2]int64 `json:"rss_kb"`
	OneRankKB       float64  `json:"one_rank_kb"`
	OneRankOwn      int64    `json:"one_rank_own_bytes"` // as the library counts; negative where it does not say
}

func (s *setup) measureLifecycle() (*lifecycle, error) {
	program := filepath.Join(s.build, "lifecycle")
	lib := filepath.Join(s.root, "build/lib")
	args := append(s.cflags(), "-I"+filepath.Join(s.root, "include"), "-o", program, filepath.Join(s.root, "tests/perf/lifecycle/lifecycle.c"),
		"-L"+lib, "-l:libnccl.so.2", "-Wl,-rpath,"+lib, "-lpthread")
	if _, err := output(nil, "gcc", args...); err != nil {
		return nil, fmt.Errorf("lifecycle: %w", err)
	}
	var l lifecycle
	for _, part := range []struct {
		name string
		n    int
	}{{"threads", initThreads}, {"cycles", cycleCount}, {"one", oneRankComms}} {
		out, err := output(nil, program, part.name, strconv.Itoa(part.n))
		if err != nil {
			return nil, err
		}
		if err := l.take(out); err != nil {
			return nil, err
		}
	}
	out, err := output(nil, filepath.Join(s.bin, "gccl-perf"), "-P", strconv.Itoa(initProcesses), "-b", "8", "-e", "8", "-n", "1", "--json")
	if err != nil {
		return nil, err
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	var run oursLine
	if err := json.Unmarshal(first, &run); err != nil || run.Kind != "run" {
		return nil, fmt.Errorf("gccl-perf did not begin with a run line: %.100q", first)
	}
	l.InitProcessesUS = run.InitUS
	return &l, nil
}

// take reads one line of the lifecycle program.
func (l *lifecycle) take(out []byte) error {
	var v struct {
		What    string   `json:"what"`
		US      float64  `json:"us"`
		Fds     [2]int64 `json:"fds"`
		Threads [2]int64 `json:"threads"`
		RSSKB   [2]int64 `json:"rss_kb"`
		KBEach  float64  `json:"kb_each"`
		Own     int64    `json:"own_bytes"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(out), &v); err != nil {
		return fmt.Errorf("lifecycle: a line that is no result: %.100q", out)
	}
	switch v.What {
	case "threads":
		l.InitThreadsUS = v.US
	case "cycles":
		l.CycleUS, l.Fds, l.Threads, l.RSSKB = v.US, v.Fds, v.Threads, v.RSSKB
	case "one":
		l.OneRankKB, l.OneRankOwn = v.KBEach, v.Own
	default:
		return fmt.Errorf("lifecycle: unknown result %q", v.What)
	}
	return nil
}
