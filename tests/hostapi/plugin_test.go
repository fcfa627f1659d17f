package hostapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// netPlugin builds the example net plugin.
func netPlugin(t *testing.T) string {
	t.Helper()
	so := filepath.Join(t.TempDir(), "libnccl-net-example.so")
	const from = "../../examples/06_plugins/net/"
	out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", so, from+"net.c", from+"tables.c").CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, f := range []string{"net.c", "net.h", "tables.c"} { // so that the cache of the test sees a change
		if _, err := os.Stat(from + f); err != nil {
			t.Fatal(err)
		}
	}
	return so
}

// Ranks of three hosts that a net plugin joins. It is found by its name in the loader's path, and asked for by what it calls
// itself.
func TestHostAPIOverPlugin(t *testing.T) {
	so := netPlugin(t)
	for _, suite := range []string{"numbers", "groups", "children", "windows", "onesided"} {
		t.Run(suite, func(t *testing.T) {
			r := program.Check(t, rankrun.Spec{
				Env:      []string{"NCCL_NET_PLUGIN=example", "NCCL_NET=EXAMPLE", "LD_LIBRARY_PATH=" + filepath.Dir(so), "NCCL_DEBUG=INFO"},
				Args:     []string{"--suite", suite, "--launch", "procs", "--ranks", "5", "--hosts", "3", "--limit", "50"},
				Deadline: 60 * time.Second,
			})
			if log := r.Stdout + r.Stderr; !strings.Contains(log, "network plugin Example: ncclNetPlugin_v11") {
				t.Errorf("the log does not say which plugin was taken:\n%s", log)
			}
		})
	}
}

// A plugin that the user names and that is not there is an error that says so, not another network.
func TestMissingPlugin(t *testing.T) {
	for env, want := range map[string]string{
		"NCCL_NET_PLUGIN=not-there": "cannot open shared object file",
		"NCCL_NET=not-there":        "names no network that there is",
	} {
		r := program.Run(t, rankrun.Spec{
			Env:      []string{env},
			Args:     []string{"--suite", "numbers", "--launch", "procs", "--ranks", "2", "--hosts", "2", "--limit", "50"},
			Deadline: 60 * time.Second,
		})
		if !r.Failed() || r.TimedOut || !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("%s: %v", env, r)
		}
	}
}
