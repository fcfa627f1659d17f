package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// netPlugin builds testdata/netevents.c with the table of a version.
func netPlugin(t *testing.T, version int) string {
	t.Helper()
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	return build(t, "libnccl-net-events.so", "tests/plugins/testdata/netevents.c", fmt.Sprintf("-DV=%d", version),
		filepath.Join(root, "examples/06_plugins/net/net.c"))
}

// overPlugin runs the suite in two processes that are two hosts, over a net plugin. It gives the log and what the plugin has
// counted: messages for steps, sent and received.
func overPlugin(t *testing.T, dir, so, name, suite string, env ...string) (log string, sent, received int) {
	t.Helper()
	counted := filepath.Join(dir, "n")
	r := program.Check(t, rankrun.Spec{Args: []string{"--suite", suite, "--launch", "procs", "--ranks", "2", "--hosts", "2", "--limit", "80"},
		Env: append([]string{"NCCL_DEBUG=WARN", "NCCL_NET_PLUGIN=" + so, "NCCL_NET=" + name, "NETEVENTS_FILE=" + counted,
			"WATCHER_FILE=" + filepath.Join(dir, "w")}, env...),
		Deadline: 90 * time.Second})
	files, _ := filepath.Glob(counted + ".*")
	for _, f := range files {
		var s, r int
		data, err := os.ReadFile(f)
		if _, scan := fmt.Sscan(string(data), &s, &r); err != nil || scan != nil {
			t.Fatal(err, scan)
		}
		sent, received = sent+s, received+r
	}
	return r.Stdout + r.Stderr, sent, received
}

// A net plugin has a step for what it sends, and for what it receives where an operation waits for that already. Every profiler
// whose table has such events sees one for each message, below that step.
func TestNetPluginEvents(t *testing.T) {
	for _, c := range []struct {
		net       int
		profilers []int
		eager     string // 0: also the smallest collectives have steps, whose bytes travel in frames, several perhaps in one
		does      string
	}{{10, []int{3}, "0", "slow"}, {11, []int{1, 4, 5, 6}, "4K", ""}, {12, []int{6}, "4K", "slow"}} {
		t.Run(fmt.Sprintf("v%d", c.net), func(t *testing.T) {
			dir := t.TempDir()
			var libs []string
			for _, v := range c.profilers {
				libs = append(libs, build(t, fmt.Sprintf("w%d.so", v), "tests/plugins/testdata/watcher.c", fmt.Sprintf("-DV=%d", v),
					fmt.Sprintf(`-DNAME="v%d"`, v)))
			}
			log, sent, received := overPlugin(t, dir, netPlugin(t, c.net), "Events", "work", "NCCL_PROFILER_PLUGIN="+strings.Join(libs, ","),
				"GCCL_EAGER_BYTES="+c.eager, "NETEVENTS_DOES="+c.does)
			if strings.Contains(log, "called the profiler") { // as when its events were closed before its requests had ended
				t.Errorf("log: %s", log)
			}
			for _, v := range c.profilers {
				seen, steps, texts := 0, 0, ""
				for _, f := range watchers(t, dir, fmt.Sprintf("v%d", v)) {
					w := check(t, f, v)
					seen += w.count[network]
					steps += w.sends
					texts += strings.Join(w.texts, "\n")
				}
				switch {
				case v < 3 && seen != 0:
					t.Errorf("v%d, which has no such events, saw %d", v, seen)
				case v >= 3 && seen != sent+received:
					t.Errorf("v%d saw %d events, the plugin had a step for %d messages sent and %d received", v, seen, sent, received)
				case v >= 3 && !strings.Contains(texts, "net id 20001 data 1"):
					t.Errorf("v%d: no event with the plugin's id and data", v)
				}
				if c.eager != "0" && sent < steps || 2*sent < steps || received == 0 {
					t.Errorf("%d messages sent for %d steps, %d received", sent, steps, received)
				}
			}
		})
	}
}

// A plugin that calls from a thread of its own, after its request, or with handles that never were harms nobody: what it opened
// is closed with its step, and the log says once that something was wrong.
func TestNetPluginEventsMisused(t *testing.T) {
	so, watcher := netPlugin(t, 11), build(t, "w.so", "tests/plugins/testdata/watcher.c", "-DV=6")
	for _, how := range []string{"thread", "late"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			log, sent, _ := overPlugin(t, dir, so, "Events", "work", "NCCL_PROFILER_PLUGIN="+watcher, "NETEVENTS_DOES="+how)
			seen := 0
			for _, f := range watchers(t, dir, "watcher") {
				seen += check(t, f, 6).count[network]
			}
			if seen == 0 || sent == 0 {
				t.Errorf("%d events of %d messages", seen, sent)
			}
			said := regexp.MustCompile(`a net plugin \(id 0x90007\) called the profiler (with|for) `).FindAllString(log, -1)
			if how == "late" && len(said) != 2 || len(said) > 2 { // once in each process
				t.Errorf("said %d times: %s", len(said), log)
			}
		})
	}
}

// Steps that the network still has when a communicator is aborted end before its profilers do.
func TestNetPluginEventsOfAborts(t *testing.T) {
	dir := t.TempDir()
	watcher := build(t, "w.so", "tests/plugins/testdata/watcher.c", "-DV=5")
	overPlugin(t, dir, netPlugin(t, 12), "Events", "aborted", "NCCL_PROFILER_PLUGIN="+watcher, "NETEVENTS_DOES=stuck",
		"GCCL_EAGER_BYTES=4K") // eager collectives have no steps
	seen := 0
	for _, f := range watchers(t, dir, "watcher") {
		seen += check(t, f, 5).count[network]
	}
	if seen == 0 {
		t.Error("no event")
	}
}

// A plugin that needs many calls of test for what it sends has them: also while ranks show each other that they are connected, when
// one knows already and the other does not.
func TestLazyNetPlugin(t *testing.T) {
	dir := t.TempDir()
	overPlugin(t, dir, netPlugin(t, 11), "Events", "left", "NETEVENTS_DOES=lazy", "NETEVENTS_ALONE="+filepath.Join(dir, "first"))
}

// Without a profiler that wants them there are no steps, whatever the plugin would say.
func TestNetPluginEventsUnwanted(t *testing.T) {
	so, watcher := netPlugin(t, 11), build(t, "w.so", "tests/plugins/testdata/watcher.c", "-DV=6")
	dir := t.TempDir()
	if _, sent, received := overPlugin(t, dir, so, "Events", "work"); sent+received != 0 {
		t.Errorf("messages for steps of nobody: %d, %d", sent, received)
	}
	overPlugin(t, dir, so, "Events", "work", "NCCL_PROFILER_PLUGIN="+watcher, "WATCHER_MASK=16")
	for _, f := range watchers(t, dir, "watcher") {
		if w := check(t, f, 6); w.count[network] != 0 || w.count[proxyStep] == 0 {
			t.Errorf("the mask has steps and nothing of the network: %v", w.count)
		}
	}
}

// The two examples together.
func TestNetAndProfilerExamples(t *testing.T) {
	root, _ := rankrun.Root()
	dir := t.TempDir()
	net := build(t, "libnccl-net-example.so", "examples/06_plugins/net/tables.c", filepath.Join(root, "examples/06_plugins/net/net.c"))
	counting := build(t, "libnccl-profiler-counting.so", "examples/06_plugins/profiler/profiler.c")
	out := filepath.Join(dir, "counts")
	overPlugin(t, dir, net, "Example", "work", "NCCL_PROFILER_PLUGIN="+counting, "EXAMPLE_PROFILER_FILE="+out)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		if !regexp.MustCompile(fmt.Sprintf(`rank %d of 2: network \d+ times`, rank)).Match(data) {
			t.Errorf("rank %d: no events of the network in\n%s", rank, data)
		}
	}
}
