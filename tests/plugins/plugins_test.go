// Package plugins runs programs with tuner, profiler and env plugins of every version, the examples among them, and checks what the
// plugins were told and what became of their answers.
//
// This package must not import any package of the library but that of the trace's format.
package plugins

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/device/probe"
	"github.com/gccl/gccl/tests/internal/rankrun"
)

var program *rankrun.Program

func TestMain(m *testing.M) {
	p, err := rankrun.Build("plugins", "tests/trace/prog")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = p
	code := m.Run()
	p.Close()
	os.Exit(code)
}

// build makes a plugin of a source, which is named from the root of the repository.
func build(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	so := filepath.Join(t.TempDir(), name)
	src := filepath.Join(root, source)
	if _, err := os.Stat(src); err != nil { // the test cache sees this look, not the compiler's
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I" + root, "-o", so, src}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return so
}

func spec(suite, launch string, ranks int, env ...string) rankrun.Spec {
	args := []string{"--suite", suite, "--launch", launch, "--ranks", strconv.Itoa(ranks), "--limit", "80"}
	if launch == "procs" {
		args = append(args, "--hosts", "2")
		env = append(env, "NCCL_NET=Socket")
	}
	return rankrun.Spec{Args: args, Env: append([]string{"NCCL_DEBUG=WARN"}, env...), Deadline: 90 * time.Second}
}

// event is one of a watcher.
type event struct {
	kind          int
	parent, group int
	context       int
	stopped       bool
	open          int // children that must end before it
	text          string
}

// watched is what a watcher was told.
type watched struct {
	count  map[int]int // by type
	sends  int         // steps of sends
	states map[int]int
	texts  []string // of starts, without numbers of handles
	inits  []string
}

const (
	group, coll, p2p, proxyOp, proxyStep, channel, network = 1, 2, 4, 8, 16, 64, 128
	groupAPI, collAPI, p2pAPI, launch                      = 256, 512, 1024, 2048
)

// check reads what a watcher of a version has written and holds it to the rules of parents and lifetimes.
func check(t *testing.T, file string, version int) watched {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := watched{count: map[int]int{}, states: map[int]int{}}
	events := map[int]*event{}
	contexts := map[int]bool{}
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		bad := func(format string, args ...any) {
			t.Errorf("%s line %d %q: %s", filepath.Base(file), n+1, line, fmt.Sprintf(format, args...))
		}
		f := strings.Fields(line)
		number := func(name string) int {
			for i := range f[:len(f)-1] {
				if f[i] == name {
					v, _ := strconv.Atoi(f[i+1])
					return v
				}
			}
			return 0
		}
		id, _ := strconv.Atoi(f[1])
		switch f[0] {
		case "init":
			contexts[id] = true
			w.inits = append(w.inits, strings.Join(f[2:], " "))
		case "finalize":
			if !contexts[id] {
				bad("no such context, or it has ended")
			}
			delete(contexts, id)
			for h, e := range events {
				if e.context == id && !e.stopped {
					bad("event %d was never stopped: %s", h, e.text)
				}
			}
		case "start":
			e := &event{kind: number("type"), parent: number("parent"), group: number("group"), context: number("context"), text: line}
			if !contexts[e.context] {
				bad("no such context")
			}
			events[id] = e
			w.count[e.kind]++
			if i := strings.Index(line, " rank "); i >= 0 {
				w.texts = append(w.texts, strings.Join(f[10:], " "))
			}
			parents := map[int][]int{coll: {collAPI}, p2p: {p2pAPI}, proxyOp: {coll, p2p}, channel: {coll, p2p}, proxyStep: {proxyOp},
				network: {proxyStep}, collAPI: {groupAPI}, p2pAPI: {groupAPI}, launch: {groupAPI}}[e.kind]
			if version < 5 && (e.kind == coll || e.kind == p2p) {
				parents = []int{group}
			}
			p := events[e.parent]
			switch {
			case len(parents) == 0 && e.parent != 0:
				bad("a parent where there is none")
			case len(parents) == 0:
			case p == nil || p.kind != parents[0] && p.kind != parents[len(parents)-1]:
				bad("its parent is %v", p)
			case p.stopped && e.kind != coll && e.kind != p2p: // a call on a stream, or in a group, ends before its operation begins
				bad("its parent has been stopped")
			case e.kind == proxyStep || e.kind == network:
				p.open++
			}
			if e.kind == proxyStep && p != nil && strings.HasSuffix(p.text, " send 1") {
				w.sends++
			}
			if version >= 5 && (e.kind == coll || e.kind == p2p) {
				if g := events[e.group]; g == nil || g.kind != group || g.stopped {
					bad("its group is %v", g)
				}
			}
		case "stop":
			switch e := events[id]; {
			case e == nil || e.stopped:
				bad("no such event, or it has been stopped")
			case e.open > 0:
				bad("%d of its children are open", e.open)
			default:
				e.stopped = true
				if p := events[e.parent]; p != nil && (e.kind == proxyStep || e.kind == network) {
					p.open--
				}
			}
		case "state":
			s, _ := strconv.Atoi(f[2])
			w.states[s]++
			if e := events[id]; e == nil || e.stopped {
				bad("no such event, or it has been stopped")
			}
		default:
			bad("not understood")
		}
	}
	if len(contexts) != 0 {
		t.Errorf("%s: contexts never finalized: %v", file, contexts)
	}
	return w
}

// Operations of a rank in the suite work of tests/trace/prog.
const collectives, messages = 80, 40

func watchers(t *testing.T, dir, name string) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "w.*."+name))
	if len(files) == 0 {
		t.Fatalf("no file of %s", name)
	}
	return files
}

func TestProfilerVersions(t *testing.T) {
	for v := 1; v <= 6; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			dir := t.TempDir()
			so := build(t, "watcher.so", "tests/plugins/testdata/watcher.c", fmt.Sprintf("-DV=%d", v))
			program.Check(t, spec("work", "procs", 2, "NCCL_PROFILER_PLUGIN="+so, "WATCHER_FILE="+filepath.Join(dir, "w")))
			for _, f := range watchers(t, dir, "watcher") {
				w := check(t, f, v)
				want := map[int]int{coll: collectives, p2p: messages, group: collectives + messages}
				if v >= 3 {
					want[channel] = collectives + messages
				}
				if v >= 5 {
					want[collAPI], want[p2pAPI], want[launch] = collectives, messages, collectives+messages
					want[groupAPI] = 3*20 + 20 + 2 // calls outside of groups, groups, one-sided calls
				}
				for kind, n := range want {
					if w.count[kind] != n {
						t.Errorf("%d events of type %d, want %d", w.count[kind], kind, n)
					}
				}
				if w.count[proxyOp] == 0 || w.count[proxyStep] < w.count[proxyOp] {
					t.Errorf("%d proxy operations and %d steps", w.count[proxyOp], w.count[proxyStep])
				}
				if v < 3 && w.count[channel] > 0 || v < 5 && w.count[collAPI] > 0 {
					t.Errorf("events that v%d does not have: %v", v, w.count)
				}
				for s := range w.states {
					if v < 4 && (s < 8 || s > 12) || v == 4 && s > 22 || s < 8 {
						t.Errorf("state %d is none of v%d", s, v)
					}
				}
				if v >= 4 && w.states[22] != w.count[channel] {
					t.Errorf("%d stops of %d channels", w.states[22], w.count[channel])
				}
				all := strings.Join(w.texts, "\n")
				for _, text := range map[int][]string{
					1: {"coll func 4 count 2 type 7", "coll func 0 count 10", "p2p func 6 count 5000 type 7 peer", "proto 2 seq 1 hash 1 channels 1"},
					2: {"coll func AllReduce count 2 type ncclFloat32", "p2p func Recv count 5000", "proto SIMPLE seq 1 hash 1"},
					3: {"coll func Broadcast count 10", "hash 1 channels 1"},
					4: {"coll func AllReduce count 5000", "proxy mine 1 peer"},
					5: {"groupapi depth 1", "collapi func AllReduce count 2 type ncclFloat32", "channel 0 timer 1", "p2papi func Send count 5000"},
					6: {"collapi func Broadcast count 10", "proxy mine 1 peer"},
				}[v] {
					if !strings.Contains(all, text) {
						t.Errorf("nothing like %q in %.1500s", text, all)
					}
				}
				if init := strings.Join(w.inits, ""); v >= 4 && !strings.Contains(init, "name - hash 1 nodes 2 ranks 2 rank ") {
					t.Errorf("init was told %q", init)
				}
			}
		})
	}
}

// Two plugins and the trace look at the same run, in which all ranks are threads of one process.
func TestSeveralProfilers(t *testing.T) {
	dir := t.TempDir()
	a := build(t, "a.so", "tests/plugins/testdata/watcher.c", "-DV=4", `-DNAME="a"`)
	b := build(t, "b.so", "tests/plugins/testdata/watcher.c", "-DV=6", `-DNAME="b"`)
	program.Check(t, spec("work", "threads", 3, "NCCL_PROFILER_PLUGIN="+a+","+b, "WATCHER_FILE="+filepath.Join(dir, "w"),
		"GCCL_TRACE="+filepath.Join(dir, "t.json")))
	wa, wb := check(t, watchers(t, dir, "a")[0], 4), check(t, watchers(t, dir, "b")[0], 6)
	if wa.count[coll] != 3*collectives || wb.count[coll] != 3*collectives || wa.count[p2p] != wb.count[p2p] {
		t.Errorf("a %v, b %v", wa.count, wb.count)
	}
	if n := strings.Count(plans(t, dir), "\n"); n != 3*collectives {
		t.Errorf("%d plans in the trace", n)
	}
}

func TestMask(t *testing.T) {
	so := build(t, "watcher.so", "tests/plugins/testdata/watcher.c", "-DV=6")
	for _, c := range []struct {
		mask string
		want []int
	}{
		{"0", nil},
		{"256", []int{groupAPI}},
		{"2", []int{groupAPI, collAPI, group, coll}},
		{"1024", []int{groupAPI, p2pAPI}},
		{"2048", []int{groupAPI, launch}},
		{"64", []int{groupAPI, collAPI, p2pAPI, group, coll, p2p, channel}},
	} {
		t.Run(c.mask, func(t *testing.T) {
			dir := t.TempDir()
			program.Check(t, spec("work", "threads", 2, "NCCL_PROFILER_PLUGIN="+so, "WATCHER_FILE="+filepath.Join(dir, "w"), "WATCHER_MASK="+c.mask))
			w := check(t, watchers(t, dir, "watcher")[0], 6)
			for _, kind := range c.want {
				if w.count[kind] == 0 {
					t.Errorf("no event of type %d: %v", kind, w.count)
				}
				delete(w.count, kind)
			}
			if len(w.count) > 0 {
				t.Errorf("events that nobody wants: %v", w.count)
			}
		})
	}
}

// Aborted operations end for the plugins too.
func TestProfilerSeesAborts(t *testing.T) {
	dir := t.TempDir()
	so := build(t, "watcher.so", "tests/plugins/testdata/watcher.c", "-DV=5")
	program.Check(t, spec("aborted", "procs", 2, "NCCL_PROFILER_PLUGIN="+so, "WATCHER_FILE="+filepath.Join(dir, "w")))
	n := 0
	for _, f := range watchers(t, dir, "watcher") {
		n += check(t, f, 5).count[coll]
	}
	if n != 3 {
		t.Errorf("%d collectives, want 3", n)
	}
}

// A plugin that has left its context NULL is not told of the end of the communicator.
func TestProfilerWithoutContext(t *testing.T) {
	for _, v := range []string{"-DV=3", "-DV=6"} {
		so := build(t, "watcher.so", "tests/plugins/testdata/watcher.c", v)
		program.Check(t, spec("work", "threads", 2, "NCCL_PROFILER_PLUGIN="+so, "WATCHER_FILE="+filepath.Join(t.TempDir(), "w"),
			"WATCHER_MASK=0", "WATCHER_NO_CONTEXT=1"))
	}
}

func TestProfilerThatFails(t *testing.T) {
	so := build(t, "watcher.so", "tests/plugins/testdata/watcher.c", "-DV=5")
	r := program.Check(t, spec("left", "threads", 2, "NCCL_PROFILER_PLUGIN="+so, "WATCHER_FILE="+filepath.Join(t.TempDir(), "w"),
		"WATCHER_FAILS=1"))
	if !strings.Contains(r.Stderr, "is left out: its init has returned 3") {
		t.Errorf("stderr: %s", r.Stderr)
	}
	r = program.Run(t, spec("left", "threads", 2, "NCCL_PROFILER_PLUGIN=/none/such.so"))
	if !r.Failed() || !strings.Contains(r.Stdout+r.Stderr, "NCCL_PROFILER_PLUGIN names the profiler plugin") {
		t.Errorf("a plugin that is not there: %v", r)
	}
}

// plans lists the names of plans in the traces of a folder, a line each.
func plans(t *testing.T, dir string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "t.*.json"))
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := probe.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range tr.Events {
			if e.Cat == "plan" {
				fmt.Fprintln(&b, e.Name)
			}
		}
	}
	return b.String()
}

func tuned(t *testing.T, ranks int, launch string, env ...string) (names string, r rankrun.Result) {
	t.Helper()
	dir := t.TempDir()
	r = program.Check(t, spec("work", launch, ranks, append(env, "GCCL_TRACE="+filepath.Join(dir, "t.json"))...))
	return plans(t, dir), r
}

func TestTunerVersions(t *testing.T) {
	for v := 2; v <= 6; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			so := build(t, "tuner.so", "tests/plugins/testdata/tuner.c", fmt.Sprintf("-DV=%d", v))
			names, r := tuned(t, 3, "threads", "NCCL_TUNER_PLUGIN="+so, "NCCL_DEBUG=INFO")
			if n := strings.Count(names, "all-reduce ring\n"); n != 3*60 {
				t.Errorf("%d all-reduces by ring, want all %d: %s", n, 3*60, names)
			}
			if !strings.Contains(r.Stderr, "has decided") || (v >= 5) != strings.Contains(r.Stderr, "has changed constants") {
				t.Errorf("log: %s", r.Stderr)
			}
		})
	}
}

func TestTunerThatFails(t *testing.T) {
	so := build(t, "tuner.so", "tests/plugins/testdata/tuner.c", "-DV=4")
	for _, how := range []string{"fail_init", "fail_ask"} {
		names, r := tuned(t, 2, "threads", "NCCL_TUNER_PLUGIN="+so, "TUNER_DOES="+how)
		if strings.Contains(names, "ring") || !strings.Contains(names, "all-reduce direct") {
			t.Errorf("%s: plans %s", how, names)
		}
		if n := strings.Count(r.Stderr, "is ignored by all ranks"); n != 2 && n != 1 { // rank 0, and whoever has failed
			t.Errorf("%s: said %d times: %s", how, n, r.Stderr)
		}
	}
	r := program.Run(t, spec("work", "threads", 2, "NCCL_TUNER_PLUGIN=/none/such.so"))
	if !r.Failed() || !strings.Contains(r.Stdout+r.Stderr, "NCCL_TUNER_PLUGIN names the tuner plugin") {
		t.Errorf("a plugin that is not there: %v", r)
	}
}

// Ranks whose tuners differ are named, and nothing hangs.
func TestTunersThatDiffer(t *testing.T) {
	so := build(t, "tuner.so", "tests/plugins/testdata/tuner.c", "-DV=4")
	r := program.Run(t, spec("work", "procs", 2, "NCCL_TUNER_PLUGIN="+so, "TUNER_DOES=differ"))
	all := r.Stdout + r.Stderr
	if r.TimedOut || !r.Failed() || !strings.Contains(all, "decides differently on ranks: rank 0") || !strings.Contains(all, "ring") ||
		!strings.Contains(all, "tree") {
		t.Errorf("%v", r)
	}
}

func TestTunerExample(t *testing.T) {
	so := build(t, "libnccl-tuner-csv.so", "examples/06_plugins/tuner/tuner.c")
	root, _ := rankrun.Root()
	rules := filepath.Join(root, "examples/06_plugins/tuner/rules.csv")
	names, _ := tuned(t, 3, "threads", "NCCL_TUNER_PLUGIN="+so, "EXAMPLE_TUNER_FILE="+rules)
	if n := strings.Count(names, "all-reduce tree\n"); n != 3*60 { // up to 64 KiB
		t.Errorf("%d all-reduces by tree: %s", n, names)
	}
	if strings.Contains(names, "broadcast tree") { // no rule
		t.Errorf("plans: %s", names)
	}
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("allreduce,1,2,ring\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names, r := tuned(t, 2, "threads", "NCCL_TUNER_PLUGIN="+so, "EXAMPLE_TUNER_FILE="+bad)
	if strings.Contains(names, "ring") || !strings.Contains(r.Stderr, "is no rule") || !strings.Contains(r.Stderr, "is ignored by all ranks") {
		t.Errorf("plans %s, log %s", names, r.Stderr)
	}
}

func TestProfilerExample(t *testing.T) {
	so := build(t, "libnccl-profiler-counting.so", "examples/06_plugins/profiler/profiler.c")
	out := filepath.Join(t.TempDir(), "counts")
	program.Check(t, spec("work", "procs", 2, "NCCL_PROFILER_PLUGIN="+so, "EXAMPLE_PROFILER_FILE="+out))
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		for _, want := range []string{"collective 80 times", "message 40 times", "collective call 80 times", "channel 120 times", "proxy step "} {
			found := false
			for _, line := range strings.Split(string(data), "\n") {
				found = found || strings.Contains(line, fmt.Sprintf("rank %d of 2: %s", rank, want))
			}
			if !found {
				t.Errorf("rank %d: no %q in\n%s", rank, want, data)
			}
		}
	}
}

func TestEnvExample(t *testing.T) {
	so := build(t, "libnccl-env-file.so", "examples/06_plugins/env/env.c")
	file := filepath.Join(t.TempDir(), "cluster.env")
	if err := os.WriteFile(file, []byte("# of the cluster\nNCCL_ALGO=ring\nGCCL_EAGER_BYTES=0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names, r := tuned(t, 2, "threads", "NCCL_ENV_PLUGIN="+so, "EXAMPLE_ENV_FILE="+file, "NCCL_ALGO=tree", "NCCL_DEBUG=INFO")
	if strings.Count(names, "all-reduce ring\n") != 2*60 || strings.Contains(names, "tree") {
		t.Errorf("plans: %s", names)
	}
	if !strings.Contains(r.Stderr, "env plugin file-example ncclEnvPlugin_v1 of") {
		t.Errorf("log: %s", r.Stderr)
	}
	r = program.Run(t, spec("work", "threads", 2, "NCCL_ENV_PLUGIN="+so, "EXAMPLE_ENV_FILE=/none/such"))
	if !r.Failed() || !strings.Contains(r.Stdout+r.Stderr, "its init has returned 2") {
		t.Errorf("a plugin that cannot start: %v", r)
	}
}

// Its log function speaks before there are settings, and so a log: nothing comes of that, and nothing breaks.
func TestEnvVersion2(t *testing.T) {
	so := build(t, "env2.so", "tests/plugins/testdata/env2.c")
	dir := t.TempDir()
	program.Check(t, spec("work", "threads", 2, "NCCL_ENV_PLUGIN="+so, "ENV2_TRACE="+filepath.Join(dir, "t.json"), "NCCL_ALGO=tree"))
	if names := plans(t, dir); strings.Count(names, "all-reduce ring\n") != 2*60 {
		t.Errorf("plans: %s", names)
	}
	none := t.TempDir()
	program.Check(t, spec("work", "threads", 2, "NCCL_ENV_PLUGIN="+so, "GCCL_TRACE="+filepath.Join(none, "t.json")))
	if files, _ := filepath.Glob(filepath.Join(none, "*")); len(files) != 0 { // what the plugin does not have is not set
		t.Errorf("traces: %v", files)
	}
}
