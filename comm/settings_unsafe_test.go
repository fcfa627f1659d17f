package comm

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/bootstrap"
)

// mixed makes a communicator of three ranks, of which rank 1 has an engine of its own, and returns the errors.
func mixed(t *testing.T, common, odd *Engine) ([]*Comm, []error) {
	t.Helper()
	id, err := common.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	es := []*Engine{common, odd, common}
	cs := make([]*Comm, len(es))
	for r := range cs {
		cs[r] = newComm(t, es[r])
	}
	return cs, each(len(es), func(r int) error {
		return cs[r].Init(len(es), r, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, es[r]))
	})
}

func wantAll(t *testing.T, what string, errs []error, parts ...string) {
	t.Helper()
	for r, err := range errs {
		if xerr.CodeOf(err) != xerr.InvalidUsage {
			t.Errorf("%s: rank %d: %v", what, r, err)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: rank %d: %q does not say %q", what, r, err, p)
			}
		}
	}
}

// A setting that rank 1 alone has is an error on all ranks with a table of ranks and values.
func TestDifferentSettings(t *testing.T) {
	for _, c := range []struct{ name, value, here, there string }{
		{"NCCL_ALGO", "Tree", "unset", "Tree"},
		{"NCCL_PROTO", "LL", "unset", "LL"},
		{"NCCL_BUFFSIZE", "64K", "4194304", "65536"},
		{"NCCL_MIN_NCHANNELS", "2", "auto", "2"},
		{"NCCL_MAX_CTAS", "1", "auto", "1"},
		{"NCCL_MAX_P2P_NCHANNELS", "3", "64", "3"},
		{"NCCL_WIN_ENABLE", "0", "1", "0"},
		{"GCCL_DETERMINISTIC", "1", "0", "1"},
		{"GCCL_LSA_STRIDE", "8GiB", "4294967296", "8589934592"},
	} {
		_, errs := mixed(t, testEngine(t), testEngine(t, c.name, c.value))
		id, _ := param.ByName(c.name)
		wantAll(t, c.name, errs, param.Lookup(id).Name, "ranks 0, 2: "+c.here, "rank 1: "+c.there)
	}
}

// What this build or this machine cannot do is told to all ranks.
func TestImpossibleSettings(t *testing.T) {
	for _, c := range []struct {
		name, value string
		parts       []string
	}{
		{"GCCL_DEVICE", "cuda", []string{"rank 1", "GCCL_DEVICE cuda (environment)", "this build has no CUDA device"}},
		{"GCCL_SIMD", "avx512", []string{"rank 1", "GCCL_SIMD is avx512", "this CPU has c"}},
	} {
		_, errs := mixed(t, testEngine(t), testEngine(t, c.name, c.value))
		wantAll(t, c.name, errs, c.parts...)
	}
	for _, env := range [][]string{{"GCCL_DEVICE", "host"}, {"GCCL_DEVICE", "auto"}, {"GCCL_SIMD", "c"}} {
		destroyAll(t, initAll(t, testEngine(t, env...), 2))
	}
	e := testEngine(t)
	id, _ := e.UniqueID()
	cfg := defaultConfig(t, e)
	cfg.DeviceKind = deviceCuda
	wantAll(t, "device kind", []error{newComm(t, e).Init(1, 0, [][bootstrap.IDBytes]byte{id}, cfg)}, "no CUDA device")
}

func TestDeterministicMethods(t *testing.T) {
	for _, c := range []struct {
		algo string
		ok   bool
	}{
		{"", true}, {"direct", true}, {"eager,direct", true}, {"allgather:ring", true},
		{"ring", false}, {"allreduce:rd", false}, {"^direct", false},
	} {
		e := testEngine(t, "GCCL_DETERMINISTIC", "1", "NCCL_ALGO", c.algo)
		if c.ok {
			destroyAll(t, initAll(t, e, 4))
			continue
		}
		_, errs := mixed(t, e, e)
		wantAll(t, c.algo, errs, "NCCL_ALGO "+c.algo, "GCCL_DETERMINISTIC 1")
	}
}

// Registration without windows succeeds with none, and one line says why.
func TestWindowsSwitchedOff(t *testing.T) {
	e := testEngine(t, "NCCL_WIN_ENABLE", "0")
	var lines []string
	e.SetLog(xlog.New(xlog.Config{Sink: func(r xlog.Record) { lines = append(lines, r.Text) }}))
	cs := initAll(t, e, 1)
	var x [8]byte
	for flags := range 3 {
		if w, err := cs[0].RegisterWindow(uintptr(unsafe.Pointer(&x)), 8, flags); err != nil || w.Pointer() != nil {
			t.Errorf("flags %d: window %v, error %v", flags, w.Pointer(), err)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "NCCL_WIN_ENABLE 0 (environment)") {
		t.Errorf("log %q", lines)
	}
	destroyAll(t, cs)
}

func TestChecksBuffers(t *testing.T) {
	for _, c := range []struct {
		name, value string
		on          bool
	}{
		{"NCCL_DEBUG", "WARN", false}, {"GCCL_CHECK", "1", true}, {"GCCL_CHECK", "0", false},
		{"NCCL_CHECK_POINTERS", "1", true}, {"NCCL_CHECK_MODE", "DEBUG_LOCAL", true}, {"NCCL_CHECK_MODE", "DEFAULT", false},
	} {
		s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{c.name: c.value}})
		if err != nil || checksBuffers(s) != c.on {
			t.Errorf("%s=%s: %v, error %v", c.name, c.value, !c.on, err)
		}
	}
}

// Shared resources are accepted and said to have no effect.
func TestShareHasNoEffect(t *testing.T) {
	e := testEngine(t)
	var lines []string
	e.SetLog(xlog.New(xlog.Config{Level: xlog.Info, LevelSet: true, Sink: func(r xlog.Record) { lines = append(lines, r.Text) }}))
	id, _ := e.UniqueID()
	cfg := defaultConfig(t, e)
	cfg.SplitShare = 1
	c := newComm(t, e)
	if err := c.Init(1, 0, [][bootstrap.IDBytes]byte{id}, cfg); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(lines, "\n"); strings.Count(text, "splitShare 1 and shrinkShare 0 have no effect") != 1 {
		t.Error(text)
	}
	destroyAll(t, []*Comm{c})
}
