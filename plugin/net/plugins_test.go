package netplugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// libraries are built once for a run of the tests, and for the processes that it starts.
const librariesDir = "GCCL_TEST_PLUGINS"

var built sync.Map

// build compiles a plugin, with definitions, and returns its path. The name says what it is: the same sources and definitions.
func build(t testing.TB, name string, sources []string, defines ...string) string {
	t.Helper()
	so := filepath.Join(os.Getenv(librariesDir), "libnccl-net-"+name+".so")
	once, _ := built.LoadOrStore(so, &sync.Once{})
	once.(*sync.Once).Do(func() {
		if _, err := os.Stat(so); err == nil { // by the process that started this one
			return
		}
		args := []string{"-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-o", so}
		for _, d := range defines {
			args = append(args, "-D"+d)
		}
		if out, err := exec.Command("gcc", append(args, sources...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	})
	return so
}

const example = "../../examples/06_plugins/net/"

func examplePlugin(t testing.TB) string {
	return build(t, "example", []string{example + "net.c", example + "tables.c"})
}

// open makes an endpoint over a plugin's library.
func open(t testing.TB, so string, rank int, secret transport.Secret) transport.Endpoint {
	t.Helper()
	s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{"NCCL_NET_PLUGIN": so}})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := FromSettings(s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := tr.Open(transport.Options{Rank: rank, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func makerOf(so func(testing.TB) string) conformance.Maker {
	return conformance.Maker{Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		return open(t, so(t), rank, secret)
	}}
}

func TestMain(m *testing.M) {
	if conformance.Child(makerOf(examplePlugin)) {
		return
	}
	dir, err := os.MkdirTemp("", "gccl-plugins-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(librariesDir, dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestConformance(t *testing.T) { conformance.Run(t, makerOf(examplePlugin)) }
func TestEndings(t *testing.T)     { conformance.Endings(t, makerOf(examplePlugin)) }
func BenchmarkSpeed(b *testing.B)  { conformance.Speed(b, makerOf(examplePlugin)) }
