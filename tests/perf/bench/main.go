package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// setup is where things are.
type setup struct {
	root, build, bin, mpichInclude string
	failures                       []string // runs that did not end well
	only                           string   // a part of the measurements; empty: all
	python                         string   // interpreter for Gloo
}

// cflags are the same for every C program, peers included.
func (s *setup) cflags() []string {
	return []string{"-O3", "-Wall", "-Wextra", "-I" + filepath.Join(s.root, "cmd/gccl-perf/rank")}
}

// parts of the measurements: host mode against MPI, the network against Gloo, the tuner against what was measured.
var parts = []string{"peers", "network", "tuner"}

func (s *setup) has(part string) bool { return s.only == "" || s.only == part }

func main() {
	var s setup
	var rounds int
	var name, results, note string
	cmd := &cobra.Command{
		Use:           "bench",
		Short:         "Measure this library against Open MPI, MPICH and a bare C probe in one run",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return s.run(rounds, name, results, note) },
	}
	cmd.Flags().StringVar(&s.root, "root", ".", "the repository")
	cmd.Flags().StringVar(&s.bin, "bin", "build/bin", "folder of gccl-perf and gccl-perf-rank")
	cmd.Flags().StringVar(&s.mpichInclude, "mpich-include", "", "folder of MPICH's mpi.h where libmpich-dev is not installed")
	cmd.Flags().StringVar(&s.only, "only", "", "one of "+strings.Join(parts, ", ")+" alone")
	cmd.Flags().StringVar(&s.python, "python", "python3", "interpreter whose PyTorch gives Gloo")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "alternating rounds; a figure is the median over them")
	cmd.Flags().StringVar(&results, "results", "tests/perf/results", "folder for the results")
	cmd.Flags().StringVar(&note, "note", "", "a sentence for the report about the conditions of this run")
	cmd.Flags().StringVar(&name, "name", "host", "file name of the results, without ending")
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// contenders opens what can be measured; what cannot is returned as text.
func (s *setup) contenders() (list []contender, missing []string) {
	open := func(c contender, err error) {
		if err != nil {
			if !slices.Contains(missing, err.Error()) {
				missing = append(missing, err.Error())
			}
			return
		}
		list = append(list, c)
	}
	for _, mode := range []string{"window", "malloc"} {
		open(s.openOurs(mode))
	}
	for _, p := range mpiPeers {
		open(s.openMPIPeer(p))
	}
	open(s.openProbe())
	return list, missing
}

func label(c contender) string {
	if c.mode != "" {
		return ours + " " + c.mode
	}
	return c.name
}

func (s *setup) run(rounds int, name, results, note string) error {
	var err error
	if s.root, err = filepath.Abs(s.root); err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("--rounds %d is less than 1", rounds)
	}
	if s.only != "" && !slices.Contains(parts, s.only) {
		return fmt.Errorf("--only %q is none of %s", s.only, strings.Join(parts, ", "))
	}
	s.build = filepath.Join(s.root, "build/perf")
	if err := os.MkdirAll(s.build, 0o755); err != nil {
		return err
	}
	var list, network []contender
	var missing []string
	if s.has("peers") {
		list, missing = s.contenders()
	}
	if s.has("network") {
		var without []string
		network, without = s.networkContenders()
		missing = append(missing, without...)
	}
	if len(list)+len(network) == 0 && !s.has("tuner") {
		return fmt.Errorf("nothing to measure: %s", strings.Join(missing, "; "))
	}
	for _, m := range missing {
		fmt.Fprintln(os.Stderr, "missing:", m)
	}
	r := &result{Commit: s.commit(), Machine: machine(), Command: strings.Join(os.Args, " "), Date: time.Now().UTC().Format(time.RFC3339), Missing: missing}
	r.Command = filepath.Base(os.Args[0]) + strings.TrimPrefix(r.Command, os.Args[0])
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Host mode against its peers\n\nCommit %s, %s, %s. `%s`\n\n", r.Commit, r.Date, r.Machine, r.Command)
	fmt.Fprintf(&text, "float32 sum all-reduce, out of place. Fresh inputs and a barrier outside the timer before each call; rank r on core r modulo cores, for every\n"+
		"contender; each figure is the mean over ranks, then the median over alternating rounds of one run. Timer calls are included everywhere.\n\n")
	fmt.Fprintf(&text, "Load average before the run: %s (anything much above 0 means that somebody else was measured too).\n\n", loadAverage())
	if note != "" {
		fmt.Fprintf(&text, "%s\n\n", note)
	}
	for _, m := range missing {
		fmt.Fprintf(&text, "Missing: %s\n\n", m)
	}
	for _, reg := range regimes(runtime.NumCPU(), rounds) {
		s.compare(&text, r, reg, list)
	}
	if s.has("network") {
		s.compare(&text, r, networkRegime(rounds), network)
		if r.Gin, err = s.gin(rounds); err != nil {
			s.failures = append(s.failures, fmt.Sprintf("descriptor queues: %v", err))
		} else {
			writeGin(&text, r.Gin)
		}
	}
	if s.has("tuner") {
		r.Tuner = &tunerResult{Machines: map[string]string{}}
		for _, reg := range regimes(runtime.NumCPU(), rounds) {
			s.tuner(reg, r.Tuner)
		}
		writeTuner(&text, r.Tuner, rounds)
	}
	if len(list) > 0 && list[0].mode != "" {
		if r.Lifecycle, err = s.measureLifecycle(); err != nil {
			s.failures = append(s.failures, fmt.Sprintf("life cycle: %v", err))
		} else {
			writeLifecycle(&text, r.Lifecycle)
		}
	}
	if len(s.failures) > 0 {
		r.Failures = s.failures
		fmt.Fprintf(&text, "## Failed runs\n\n")
		for _, f := range s.failures {
			fmt.Fprintf(&text, "- %s\n", strings.ReplaceAll(f, "\n", "\n  "))
		}
	}
	os.Stdout.Write(text.Bytes())
	if err := r.write(results, name, text.Bytes()); err != nil {
		return err
	}
	if len(s.failures) > 0 {
		return fmt.Errorf("%d runs failed; the report names them", len(s.failures))
	}
	return nil
}

// compare measures one regime and adds its table and rows to the report.
func (s *setup) compare(text *bytes.Buffer, r *result, reg regime, list []contender) {
	if len(list) == 0 {
		return
	}
	t, names := s.measure(reg, list)
	writeRegime(text, reg, t, names)
	var modes, peers, launches []string
	for _, c := range list {
		if !c.fits(reg) {
			continue
		}
		launches = append(launches, label(c)+": "+c.launch(reg))
		if c.mode != "" {
			modes = append(modes, c.mode)
		} else {
			peers = append(peers, c.name)
		}
	}
	if len(modes) == 0 {
		modes = []string{"window"} // rows of peers alone
	}
	launch := fmt.Sprintf("%d processes, pinned", reg.ranks)
	if reg.yield {
		launch += ", oversubscribed"
	}
	r.Rows = append(r.Rows, rowsOf(reg, t, modes, peers, launch)...)
	fmt.Fprintf(text, "Launch: %s.\n\n", strings.Join(launches, "; "))
	// less than a nanosecond a call means that the library does not count steady calls
	if front := median(pick(t[ours+" window"][8], func(f figure) float64 { return f.frontNS })); reg.ranks == 2 && front >= 1 {
		r.FrontNS = &front
		fmt.Fprintf(text, "Time in the library before the first flag of an 8 B call is written: %.0f ns.\n\n", front)
	}
}

// measure runs the rounds of one regime: every contender once in each round, so that a slow minute of the machine
// falls on all of them.
func (s *setup) measure(r regime, list []contender) (table, []string) {
	t := table{}
	var names []string
	for _, c := range list {
		if c.fits(r) {
			names = append(names, label(c))
		}
	}
	for round := range r.rounds {
		for i := range list {
			c := list[(i+round)%len(list)]
			if !c.fits(r) {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s, round %d of %d: %s\n", r.name, round+1, r.rounds, label(c))
			figures, err := c.measure(r)
			if err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				s.failures = append(s.failures, fmt.Sprintf("%s, round %d, %s: %v", r.name, round+1, label(c), err))
			}
			for bytes, f := range figures {
				t.add(label(c), bytes, f)
			}
		}
	}
	return t, names
}

func (s *setup) commit() string {
	out, err := output(nil, "git", "-C", s.root, "describe", "--always", "--dirty")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// loadAverage is the kernel's figure of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// machine names processor, cores and kernel.
func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, l := range strings.Split(string(info), "\n") {
			if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = ", Linux " + strings.TrimSpace(string(release))
	}
	return fmt.Sprintf("%s, %d cores%s", model, runtime.NumCPU(), kernel)
}
