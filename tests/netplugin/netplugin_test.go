// Package netplugin tests the net plugin that gives this library's network to NCCL, and the example, as a user of plugins
// sees them: by their files.
package netplugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
	plugin "github.com/gccl/gccl/plugin/net"
	"github.com/gccl/gccl/tests/internal/rankrun"
)

const examples = "../../examples/06_plugins/"

// gcc compiles, and looks at the sources so that the cache of the test sees a change.
func gcc(t *testing.T, args ...string) {
	t.Helper()
	for _, a := range args {
		if strings.HasSuffix(a, ".c") {
			if _, err := os.Stat(a); err != nil {
				t.Fatal(err)
			}
		}
	}
	args = append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"}, args...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}

func examplePlugin(t *testing.T) string {
	so := filepath.Join(t.TempDir(), "libnccl-net-example.so")
	gcc(t, "-shared", "-fPIC", "-fvisibility=hidden", "-o", so, examples+"net/net.c", examples+"net/tables.c")
	return so
}

// ours is the plugin of this library.
func ours(t testing.TB) string {
	t.Helper()
	lib, err := rankrun.LibDir()
	if err != nil {
		t.Fatal(err)
	}
	so := filepath.Join(lib, "libnccl-net-gccl.so")
	if _, err := os.Stat(so); err != nil {
		t.Fatalf("%v; run make build", err)
	}
	return so
}

// A C program that calls as NCCL does, in two processes: over each table of our plugin, and over the example.
func TestCallingPattern(t *testing.T) {
	dir := t.TempDir()
	for name, p := range map[string]struct {
		so       string
		versions []int
	}{"gccl": {ours(t), []int{8, 9, 10, 11}}, "example": {examplePlugin(t), []int{8, 11}}} {
		for _, v := range p.versions {
			t.Run(fmt.Sprintf("%s/v%d", name, v), func(t *testing.T) {
				prog := filepath.Join(dir, fmt.Sprint("pattern", v))
				gcc(t, fmt.Sprint("-DV=", v), "-o", prog, "prog/pattern.c", "-ldl")
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
				defer cancel()
				out, err := exec.CommandContext(ctx, prog, p.so).CombinedOutput()
				if err != nil || !strings.Contains(string(out), ": ok\n") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// Our plugin under our own loader: the network of this library over itself, with two Go runtimes in the process.
func TestOurNetworkAsPlugin(t *testing.T) {
	so := ours(t)
	tr := conformance.NewTraffic(t, conformance.Maker{Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{"NCCL_NET_PLUGIN": so}})
		if err != nil {
			t.Fatal(err)
		}
		tr, err := plugin.FromSettings(s, "gccl", nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := tr.Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}}, 11)
	for range 5 {
		tr.Round()
	}
	tr.Reconnect()
	tr.Round()
}
