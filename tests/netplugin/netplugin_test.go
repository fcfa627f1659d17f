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

	"github.com/gccl/gccl/internal/netns"
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

// run starts a program over a plugin and looks for its last word.
func run(t *testing.T, env []string, args ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ": ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A C program that calls as NCCL does, in two processes: over each table of our plugin, with a thread for each connection, with several
// streams, and over the example.
func TestCallingPattern(t *testing.T) {
	dir := t.TempDir()
	for name, p := range map[string]struct {
		so       string
		versions []int
		env      []string
	}{
		"gccl":    {ours(t), []int{8, 9, 10, 11}, nil},
		"helped":  {ours(t), []int{11}, []string{"NCCL_SOCKET_NTHREADS=1"}},
		"streams": {ours(t), []int{11}, []string{"NCCL_SOCKET_NTHREADS=2", "NCCL_NSOCKS_PERTHREAD=2"}},
		"example": {examplePlugin(t), []int{8, 11}, nil},
	} {
		for _, v := range p.versions {
			t.Run(fmt.Sprintf("%s/v%d", name, v), func(t *testing.T) {
				prog := filepath.Join(dir, fmt.Sprint("pattern", v))
				gcc(t, fmt.Sprint("-DV=", v), "-o", prog, "prog/pattern.c", "-ldl")
				run(t, p.env, prog, p.so)
			})
		}
	}
}

// NCCL joins two interfaces to one device, as its settings for merging have it do; what it sends goes over both.
func TestJoinedDevices(t *testing.T) {
	for _, v := range []int{9, 10, 11} {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			if !netns.Enter(t, "") {
				return
			}
			pid := netns.TwoHosts(t)
			prog := filepath.Join(t.TempDir(), "joined")
			gcc(t, fmt.Sprint("-DV=", v), "-o", prog, "prog/joined.c", "-ldl")
			run(t, nil, prog, ours(t), fmt.Sprint(pid))
			got := received(t)
			if sum := got["eth0"] + got["eth1"]; sum < 64<<20 || 4*got["eth0"] < sum || 4*got["eth1"] < sum {
				t.Errorf("received over eth0 %d bytes, over eth1 %d", got["eth0"], got["eth1"])
			}
		})
	}
}

// received is what the interfaces here have received (proc(5), /proc/net/dev).
func received(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, l := range strings.Split(string(text), "\n") {
		name, counts, ok := strings.Cut(l, ":")
		var n int
		if _, err := fmt.Sscan(counts, &n); ok && err == nil {
			out[strings.TrimSpace(name)] = n
		}
	}
	return out
}

// Receives that are posted after their messages have left: the sender does not wait for them.
func TestLateReceives(t *testing.T) {
	prog := filepath.Join(t.TempDir(), "late")
	gcc(t, "-DV=11", "-o", prog, "prog/late.c", "-ldl")
	for name, env := range map[string][]string{"gccl": nil, "helped": {"NCCL_SOCKET_NTHREADS=1"}} {
		t.Run(name, func(t *testing.T) { run(t, env, prog, ours(t)) })
	}
}

// The program that measures; here its bytes count: 16 MiB each way at once.
func TestSpeedProgram(t *testing.T) {
	prog := filepath.Join(t.TempDir(), "speed")
	gcc(t, "-o", prog, "prog/speed.c", "-ldl")
	run(t, nil, prog, ours(t), "1")
}

// The script that compares on a GPU machine, with this library in NCCL's place and the stand-in for the driver: its checks of results run,
// its figures mean nothing here.
func TestComparisonScript(t *testing.T) {
	driver, err := rankrun.FakeDriver()
	if err != nil {
		t.Fatal(err)
	}
	so := ours(t)
	lib := filepath.Dir(so)
	kernels := filepath.Join(lib, "libgccl_kernels_cpu.so")
	if _, err := os.Stat(kernels); err != nil {
		t.Fatalf("%v; run make kernels-cpu", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "../gpu/nccl_net.py", filepath.Join(lib, "libnccl.so.2"), so, filepath.Join(t.TempDir(), "out.json"), "1")
	cmd.Env = append(os.Environ(), "GCCL_NET_DRIVER="+driver, "GCCL_CUDA_LIBRARY="+driver, "LD_LIBRARY_PATH="+filepath.Dir(driver), "GCCL_FAKE_KERNELS="+kernels,
		"GCCL_NET_MARK=", "GCCL_NET_MAX=32768", "GCCL_NET_DEADLINE=60")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "every result right") != 4 || !strings.Contains(string(out), "| all_reduce | 32768 |") {
		t.Errorf("%v\n%s", err, out)
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
