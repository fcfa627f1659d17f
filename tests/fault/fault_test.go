// Package fault runs the fault scenarios of prog/: ranks that are killed or stopped, aborts from other threads, limits,
// forks. Each checks what the surviving ranks see and how fast.
//
// This package must not import any package of the library: it sees what a foreign program sees.
package fault

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

var program *rankrun.Program

func TestMain(m *testing.M) {
	p, err := rankrun.Build("fault", "tests/fault/prog")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = p
	code := m.Run()
	p.Close()
	os.Exit(code)
}

func TestFault(t *testing.T) {
	env := map[string][]string{"missing": {"GCCL_INIT_TIMEOUT=3s"}, "descriptors": {"GCCL_INIT_TIMEOUT=3s"}}
	for _, s := range []struct {
		name, launch string
		ranks        int
	}{
		{"init-kill", "procs", 4},
		{"init-kill", "procs", 3},
		{"init-kill-root", "procs", 3},
		{"missing", "procs", 3},
		{"missing", "threads", 2},
		{"coll-kill", "procs", 3},
		{"coll-kill", "procs", 5},
		{"coll-kill-stream", "procs", 3},
		{"coll-stop", "procs", 3},
		{"abort-waiting", "procs", 2},
		{"abort-waiting", "threads", 3},
		{"abort-recv", "procs", 2},
		{"abort-recv", "threads", 2},
		{"abort-alone", "procs", 1},
		{"abort-busy", "threads", 3},
		{"abort-busy", "procs", 2},
		{"abort-queued", "procs", 2},
		{"abort-queued", "threads", 2},
		{"abort-init", "procs", 3},
		{"abort-init", "threads", 2},
		{"descriptors", "procs", 2},
		{"fork-after", "procs", 2},
		{"fork-after", "threads", 2},
		{"fork-before", "procs", 2},
	} {
		t.Run(fmt.Sprintf("%s/%s/%d", s.name, s.launch, s.ranks), func(t *testing.T) {
			program.Check(t, rankrun.Spec{
				Env:      env[s.name],
				Args:     []string{"--suite", s.name, "--launch", s.launch, "--ranks", strconv.Itoa(s.ranks), "--limit", "30"},
				Deadline: 40 * time.Second,
			})
		})
	}
}
