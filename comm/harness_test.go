package comm

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

// testEngine makes an engine with its own environment. Each engine has its own bootstrap, as a process would; the arena
// is shared by all engines of the test binary, so they count as threads of one process.
func testEngine(t *testing.T, env ...string) *Engine {
	t.Helper()
	e := NewEngine(Options{Build: "test", Load: func() (*param.Settings, []param.Warning, error) {
		m := param.MapEnv{Vars: map[string]string{"GCCL_INIT_TIMEOUT": "20s"}}
		for i := 0; i+1 < len(env); i += 2 {
			m.Vars[env[i]] = env[i+1]
		}
		return param.LoadFrom(m)
	}})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func defaultConfig(t *testing.T, e *Engine) Config {
	t.Helper()
	cfg := UndefConfig()
	if err := e.Resolve(&cfg, nil); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// newComm makes a communicator over a structure that lives until the end of the test.
func newComm(t *testing.T, e *Engine) *Comm {
	t.Helper()
	ctl := control.New()
	t.Cleanup(ctl.Delete)
	return e.New(ctl)
}

// each runs f for ranks 0 … n-1 side by side and returns their errors.
func each(n int, f func(r int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[r] = f(r)
		}()
	}
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, what string, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("%s: rank %d: %v", what, r, err)
		}
	}
}

// initAll makes a communicator of n ranks in this process.
func initAll(t *testing.T, e *Engine, n int) []*Comm {
	t.Helper()
	id, err := e.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	cfg := defaultConfig(t, e)
	cs := make([]*Comm, n)
	for r := range cs {
		cs[r] = newComm(t, e)
	}
	noErrors(t, "init", each(n, func(r int) error { return cs[r].Init(n, r, [][bootstrap.IDBytes]byte{id}, cfg) }))
	return cs
}

// initOver makes a communicator with one rank on each engine.
func initOver(t *testing.T, es []*Engine) []*Comm {
	t.Helper()
	id, err := es[0].UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	cs := make([]*Comm, len(es))
	for r := range cs {
		cs[r] = newComm(t, es[r])
	}
	noErrors(t, "init", each(len(es), func(r int) error {
		return cs[r].Init(len(es), r, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, es[r]))
	}))
	return cs
}

func destroyAll(t *testing.T, cs []*Comm) {
	t.Helper()
	noErrors(t, "destroy", each(len(cs), func(r int) error {
		if cs[r] == nil {
			return nil
		}
		return cs[r].Destroy()
	}))
}

// within fails the test if f has not returned in time.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s did not return within %v", what, d)
	}
}

func wantCode(t *testing.T, what string, err error, code xerr.Code) {
	t.Helper()
	if xerr.CodeOf(err) != code {
		t.Fatalf("%s: got %v, want %v", what, err, code)
	}
}

func rankName(r int) string { return fmt.Sprintf("rank %d", r) }
