// Package trace runs programs with GCCL_TRACE and checks the files: that they are JSON, by the rules of a trace, and against
// what the programs have called.
//
// This package must not import any package of the library but that of the trace's format.
package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/probe"
	"github.com/gccl/gccl/tests/internal/rankrun"
)

var program *rankrun.Program

func TestMain(m *testing.M) {
	p, err := rankrun.Build("trace", "tests/trace/prog")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = p
	code := m.Run()
	p.Close()
	os.Exit(code)
}

// run runs a suite and gives the traces, which must be whole and good.
func run(t *testing.T, suite, launch string, ranks int, env ...string) []probe.Input {
	t.Helper()
	return runWith(t, []string{"--suite", suite, "--launch", launch, "--ranks", strconv.Itoa(ranks)}, env...)
}

func runWith(t *testing.T, args []string, env ...string) []probe.Input {
	t.Helper()
	dir := t.TempDir()
	args = append(args, "--limit", "80")
	env = append([]string{"GCCL_TRACE=" + filepath.Join(dir, "run.json"), "NCCL_DEBUG=WARN"}, env...)
	program.Check(t, rankrun.Spec{Args: args, Env: env, Deadline: 90 * time.Second})
	return traces(t, dir)
}

// traces reads the files of a folder, which must be whole and good.
func traces(t *testing.T, dir string) []probe.Input {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "run.*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no trace in %s: %v", dir, err)
	}
	var inputs []probe.Input
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Fatalf("%s is no JSON: %.2000s", f, data)
		}
		tr, err := probe.Read(data)
		if err != nil || tr.Cut {
			t.Fatalf("%s: %v", f, err)
		}
		if bad := tr.Check(); len(bad) > 0 {
			t.Errorf("%s: %s", f, strings.Join(bad, "\n"))
		}
		inputs = append(inputs, probe.Input{Name: f, Trace: tr})
	}
	return inputs
}

// count counts events by category and name.
func count(inputs []probe.Input) map[string]int {
	n := map[string]int{}
	for _, in := range inputs {
		for _, e := range in.Trace.Events {
			if e.Ph == "X" || e.Ph == "b" {
				n[e.Cat+" "+e.Name]++
				n[e.Cat]++
			}
		}
	}
	return n
}

func merged(t *testing.T, inputs []probe.Input) *probe.Trace {
	t.Helper()
	var b bytes.Buffer
	if _, err := probe.Merge(&b, inputs); err != nil {
		t.Fatal(err)
	}
	tr, err := probe.Read(b.Bytes())
	if err != nil || tr.Cut {
		t.Fatalf("merged: %v", err)
	}
	if bad := tr.Check(); len(bad) > 0 {
		t.Errorf("merged: %s", strings.Join(bad, "\n"))
	}
	return tr
}

const rounds = 20 // of prog/main.c

func TestWork(t *testing.T) {
	for _, c := range []struct {
		launch string
		ranks  int
		files  int
	}{{"threads", 3, 1}, {"procs", 3, 3}, {"group", 2, 1}, {"procs", 1, 1}} {
		t.Run(fmt.Sprintf("%s/%d", c.launch, c.ranks), func(t *testing.T) {
			before := monotonic(t)
			in := run(t, "work", c.launch, c.ranks)
			within(t, in, before, monotonic(t))
			if len(in) != c.files {
				t.Errorf("%d files, want %d", len(in), c.files)
			}
			n := count(in)
			want := map[string]int{"call ncclAllReduce": 3 * rounds * c.ranks, "call ncclSend": rounds * c.ranks, "call ncclRecv": rounds * c.ranks,
				"call ncclBroadcast": rounds * c.ranks, "call ncclSignal": c.ranks, "call ncclWaitSignal": c.ranks, "onesided": 2 * c.ranks}
			if c.ranks > 1 { // of one rank everything is a copy
				want["plan"] = 4 * rounds * c.ranks
				want["channel"] = 4 * rounds * c.ranks
				want["message"] = 2 * rounds * c.ranks
			}
			for k, v := range want {
				if n[k] != v {
					t.Errorf("%d events %q, want %d", n[k], k, v)
				}
			}
			if c.ranks > 1 && (n["wait"] == 0 || n["step reduce"] == 0 || n["planning"] == 0) {
				t.Errorf("no waits, reduces or plans: %v", n)
			}
			groups := rounds * c.ranks
			if c.launch == "group" {
				groups = 4*rounds + 2
			}
			if n["group"] != groups {
				t.Errorf("%d groups, want %d", n["group"], groups)
			}
			merged(t, in)
		})
	}
}

// Between hosts there are puts on the network too, which end.
func TestBetweenHosts(t *testing.T) {
	in := runWith(t, []string{"--suite", "work", "--launch", "procs", "--ranks", "4", "--hosts", "2"}, "NCCL_NET=Socket")
	n := count(in)
	if n["network"] == 0 {
		t.Errorf("no puts: %v", n)
	}
	for _, f := range in {
		for _, e := range f.Trace.Events {
			if e.Cat == "network" && strings.Contains(string(e.Args), "unfinished") {
				t.Errorf("%s: a put never ended: %s", f.Name, e.Args)
			}
		}
	}
	merged(t, in)
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}

// within holds all times to those of the clock before and after the run, but for what the two clocks differ by until they are compared again.
func within(t *testing.T, in []probe.Input, from, to int64) {
	t.Helper()
	const slack = int64(time.Millisecond)
	for _, f := range in {
		for i := range f.Trace.Events {
			if e := &f.Trace.Events[i]; e.Ph != "M" && (int64(e.TS) < from-slack || e.End() > to+slack) {
				t.Fatalf("%s: %v is not between %d and %d", f.Name, e, from, to)
			}
		}
	}
}

// notSuccessful counts the events of a category that are unfinished or failed.
func notSuccessful(in []probe.Input, cat string) (n int) {
	for _, f := range in {
		for _, e := range f.Trace.Events {
			if e.Cat == cat && (strings.Contains(string(e.Args), `"unfinished":true`) || !strings.Contains(string(e.Args), `"result":0`)) {
				n++
			}
		}
	}
	return n
}

func TestAborted(t *testing.T) {
	in := run(t, "aborted", "procs", 2)
	if n := count(in); n["plan"] != 3 {
		t.Errorf("%d operations, want 3: %v", n["plan"], n)
	}
	if n := notSuccessful(in, "plan"); n != 1 {
		t.Errorf("%d operations that did not succeed, want the one that was aborted", n)
	}
	if n := notSuccessful(in, "call"); n != 1 {
		t.Errorf("%d calls that did not succeed, want 1", n)
	}
}

// The file of a killed process is whole up to some moment before, and has the operation that it waited in.
func TestKilled(t *testing.T) {
	in := run(t, "killed", "procs", 2)
	if len(in) != 2 {
		t.Fatalf("%d files, want 2", len(in))
	}
	if n := count(in); n["plan"] != 2*rounds+1 {
		t.Errorf("%d operations, want %d", n["plan"], 2*rounds+1)
	}
	if n := notSuccessful(in, "plan"); n != 1 {
		t.Errorf("%d unfinished operations, want that of the killed rank", n)
	}
	waits := 0
	for _, f := range in {
		for _, e := range f.Trace.Events {
			if e.Cat == "wait" && strings.Contains(string(e.Args), "unfinished") {
				waits++
			}
		}
	}
	if waits != 1 {
		t.Errorf("%d unfinished waits, want the one for rank 0", waits)
	}
	merged(t, in)
}

func TestExitWithALiveCommunicator(t *testing.T) {
	if n := count(run(t, "left", "procs", 2)); n["plan"] != 2*rounds {
		t.Errorf("%d operations, want %d", n["plan"], 2*rounds)
	}
}

// What does not fit the rings is counted, and what is written is whole.
func TestDrops(t *testing.T) {
	in := run(t, "fast", "threads", 2)
	var lost uint64
	for _, e := range in[0].Trace.Events {
		var a struct {
			Operations uint64 `json:"operations"`
		}
		if e.Name == "gccl_dropped" && json.Unmarshal(e.Args, &a) == nil {
			lost += a.Operations
		}
	}
	n := count(in)
	if n["plan"] > 8000 || n["call"] > 8000 || n["plan"] == 0 {
		t.Errorf("%d operations and %d calls of 8000", n["plan"], n["call"])
	}
	if (n["plan"] < 8000 || n["call"] < 8000) && lost == 0 {
		t.Errorf("%d operations and %d calls of 8000 are there, and nothing is said to be lost", n["plan"], n["call"])
	}
	t.Logf("%d operations and %d calls of 8000, %d lost", n["plan"], n["call"], lost)
}

func TestLimitAndBadPath(t *testing.T) {
	in := run(t, "fast", "threads", 2, "GCCL_TRACE_LIMIT=64K")
	st, err := os.Stat(in[0].Name)
	if err != nil || st.Size() > 96<<10 {
		t.Errorf("%v, %v", st.Size(), err)
	}
	r := program.Run(t, rankrun.Spec{Args: []string{"--suite", "work", "--launch", "threads", "--ranks", "2", "--limit", "20"},
		Env: []string{"GCCL_TRACE=/none/such/x.json"}})
	if !r.Failed() || !strings.Contains(r.Stdout+r.Stderr, "GCCL_TRACE") {
		t.Errorf("a file that cannot be made: %v", r)
	}
}

// On CUDA, over the stand-in for the driver: every call has its operation, collectives are launched by the rank that executes, and ranks
// wait for records. One rank's calls are copies.
func TestCUDA(t *testing.T) {
	cuda, err := rankrun.FakeCUDA()
	if err != nil {
		t.Fatal(err)
	}
	hostapi, err := rankrun.Build("hostapi", "tests/hostapi/prog")
	if err != nil {
		t.Fatal(err)
	}
	defer hostapi.Close()
	for _, launch := range []string{"threads", "procs", "group"} {
		for _, suite := range []string{"groups", "streams"} {
			t.Run(launch+"/"+suite, func(t *testing.T) {
				dir := t.TempDir()
				hostapi.Check(t, rankrun.Spec{
					Args:     []string{"--memory", "cuda", "--suite", suite, "--launch", launch, "--ranks", "3", "--limit", "80"},
					Env:      append([]string{"GCCL_TRACE=" + filepath.Join(dir, "run.json"), "NCCL_DEBUG=WARN"}, cuda...),
					Deadline: 90 * time.Second})
				in := traces(t, dir)
				n := count(in)
				// Suite groups has some that fail before anything runs.
				if ops := n["plan"] + n["copy"] + n["message"] + n["onesided"]; ops == 0 || ops > n["call"] || suite == "streams" && ops != n["call"] {
					t.Errorf("%d calls have %d operations: %v", n["call"], ops, n)
				}
				// A thread that drives all ranks finds every record.
				if n["plan"] == 0 || n["step launch"] < n["plan"]/3 || (n["wait"] == 0) != (launch == "group") || n["channel"] != 0 {
					t.Errorf("no plans, launches or waits: %v", n)
				}
			})
		}
	}
}
