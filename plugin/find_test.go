package plugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// library builds a shared library of some C.
func library(t *testing.T, dir, name, source string) string {
	t.Helper()
	c, so := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", so, c).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return so
}

func settings(t *testing.T, vars map[string]string) *param.Settings {
	t.Helper()
	s, _, err := param.LoadFrom(param.MapEnv{Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func found(tables []Table) string {
	var names []string
	for _, t := range tables {
		names = append(names, fmt.Sprintf("%s@%s", t.Symbol, filepath.Base(t.Library.Name)))
	}
	return strings.Join(names, " ")
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	net := library(t, dir, "net.so",
		"long ncclNetPlugin_v8[20], ncclNetPlugin_v11[22], ncclNetPlugin_v5[20], ncclGinPlugin_v13[21], ncclTunerPlugin_v4[4];")
	tuner := library(t, dir, "tuner.so", "long ncclTunerPlugin_v2[4], ncclProfiler_v1[6];")
	empty := library(t, dir, "empty.so", "long ncclNetPlugin_v5[20];")
	rma := library(t, dir, "rma.so", "long ncclRmaPlugin_v13[21], ncclGinPlugin_v14[17];")
	for _, c := range []struct {
		kind Kind
		vars map[string]string
		want string
	}{
		{Net, nil, ""},
		{Net, map[string]string{"NCCL_NET_PLUGIN": net}, "ncclNetPlugin_v11@net.so"},
		{Net, map[string]string{"NCCL_NET_PLUGIN": empty + "," + net}, "ncclNetPlugin_v11@net.so"},
		{Net, map[string]string{"NCCL_NET_PLUGIN": empty}, ""},
		{CollNet, map[string]string{"NCCL_NET_PLUGIN": net}, ""},
		{Tuner, map[string]string{"NCCL_NET_PLUGIN": net}, "ncclTunerPlugin_v4@net.so"},
		{Tuner, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_TUNER_PLUGIN": tuner}, "ncclTunerPlugin_v2@tuner.so"},
		{Tuner, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_TUNER_PLUGIN": "none"}, ""},
		{Tuner, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_TUNER_PLUGIN": ""}, "ncclTunerPlugin_v4@net.so"},
		{Profiler, map[string]string{"NCCL_PROFILER_PLUGIN": tuner}, "ncclProfiler_v1@tuner.so"},
		{Gin, map[string]string{"NCCL_NET_PLUGIN": net}, "ncclGinPlugin_v13@net.so"},
		{Gin, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_GIN_PLUGIN": "none"}, "ncclGinPlugin_v13@net.so"},
		{Gin, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_GIN_PLUGIN": rma}, "ncclGinPlugin_v14@rma.so ncclGinPlugin_v13@net.so"},
		{Rma, map[string]string{"NCCL_NET_PLUGIN": net, "NCCL_RMA_PLUGIN": rma}, "ncclRmaPlugin_v13@rma.so ncclGinPlugin_v13@net.so"},
		{Rma, map[string]string{"NCCL_GIN_PLUGIN": rma}, "ncclRmaPlugin_v13@rma.so"},
		{Env, map[string]string{"NCCL_ENV_PLUGIN": "static"}, ""},
	} {
		tables, err := Find(c.kind, settings(t, c.vars), nil)
		if err != nil {
			t.Errorf("%v %v: %v", c.kind, c.vars, err)
		}
		if got := found(tables); got != c.want {
			t.Errorf("%v %v: %q, want %q", c.kind, c.vars, got, c.want)
		}
	}
}

// What the user has named and is not there is an error with the loader's words for each try.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.so")
	if err := os.WriteFile(broken, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	undefined := library(t, dir, "undefined.so", "extern int not_there(void); int ncclEnvPlugin_v1[4]; int call(void) { return not_there(); }")
	for value, parts := range map[string][]string{
		"no-such-plugin": {"NCCL_ENV_PLUGIN",
			"no-such-plugin", "libnccl-env-no-such-plugin.so", "cannot open shared object file", "NCCL_ENV_PLUGIN=none"},
		broken:    {broken, "file too short"},
		undefined: {"undefined symbol: not_there"},
	} {
		_, err := Find(Env, settings(t, map[string]string{"NCCL_ENV_PLUGIN": value}), nil)
		if !errors.Is(err, xerr.InvalidUsage) {
			t.Errorf("%s: %v", value, err)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q does not speak of %q", value, err, p)
			}
		}
	}
}

// Bare names are looked for in the loader's path, which is read when a process starts.
func TestSearchPath(t *testing.T) {
	const marker = "GCCL_TEST_PLUGIN_PATH"
	if os.Getenv(marker) != "" {
		for _, c := range []struct {
			kind Kind
			vars map[string]string
		}{{Net, nil}, {Net, map[string]string{"NCCL_NET_PLUGIN": "mine"}}, {Tuner, nil}} {
			tables, err := Find(c.kind, settings(t, c.vars), nil)
			fmt.Printf("%v: %s %v\n", c.kind, found(tables), err)
		}
		return
	}
	dir := t.TempDir()
	library(t, dir, "libnccl-net.so", "long ncclNetPlugin_v9[20];")
	library(t, dir, "libnccl-net-mine.so", "long ncclNetPlugin_v10[20];")
	library(t, dir, "libnccl-tuner.so", "long ncclTunerPlugin_v5[4];")
	cmd := exec.Command(os.Args[0], "-test.run=^TestSearchPath$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"=1", "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"net: ncclNetPlugin_v9@libnccl-net.so <nil>\n",
		"net: ncclNetPlugin_v10@libnccl-net-mine.so <nil>\n",
		"tuner: ncclTunerPlugin_v5@libnccl-tuner.so <nil>\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// Lines of plugins come out with level, part and text; those that nobody wants are not made.
func TestLog(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	log := xlog.New(xlog.Config{LevelSet: true, Level: xlog.Info, Subsys: xlog.All, Sink: func(r xlog.Record) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf("%v %v %s", r.Level, r.Subsys, r.Text))
	}})
	defer log.Close()
	LogTo(log)
	defer LogTo(nil)
	so := library(t, t.TempDir(), "say.so", `
typedef void (*logger)(int, unsigned long, const char *, int, const char *, ...);
void say(logger log) {
  log(3, 16, "/a/b/c.c", 7, "device %s has %d ports", "eth0", 2);
  log(2, 1, "/a/b/c.c", 8, "odd");
  log(5, 16, "/a/b/c.c", 9, "chunk %d", 1);
  log(3, 0, 0, 0, "no part");
  log(99, 1, 0, 0, "no level");
}
`)
	l, why := openLibrary(so)
	if l == nil {
		t.Fatal(why)
	}
	callLogger(l.Symbol("say"))
	want := "info NET plugin: device eth0 has 2 ports|warn INIT plugin: odd (c.c:8)|info NET plugin: no part"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
