package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/topo/discover"
)

func value(t *testing.T, list []fact, name string) string {
	t.Helper()
	for _, f := range list {
		if f.Name == name {
			return f.Value
		}
	}
	t.Errorf("nothing about %s in %v", name, list)
	return ""
}

func TestLibraryFacts(t *testing.T) {
	dir := t.TempDir()
	me, err := os.Executable()
	if err == nil {
		err = os.Symlink(me, filepath.Join(dir, "libgccl_core.so")) // a Go program is as good
	}
	if err != nil {
		t.Fatal(err)
	}
	list := libraryFacts(func([]string, ...string) (string, error) {
		return "version 23007\npath " + dir + "/libgccl.so\ndevice host: no driver\n", nil
	})
	if got := value(t, list, "device"); got != "host: no driver" {
		t.Errorf("device: %s", got)
	}
	if got := value(t, list, "library build"); !strings.Contains(got, "go1.") {
		t.Errorf("build: %s", got)
	}
	if got := value(t, list, "cuda kernels"); !strings.HasPrefix(got, "unknown: ") {
		t.Errorf("kernels of a library that is not there: %s", got)
	}
	list = libraryFacts(func([]string, ...string) (string, error) { return "", errors.New("it is gone") })
	if got := value(t, list, "library"); got != "unknown: it is gone" {
		t.Errorf("library: %s", got)
	}
}

func TestMachineFacts(t *testing.T) {
	list := machineFacts(&discover.Facts{GPUs: []discover.GPU{{Index: 0, Name: "NVIDIA H200", BusID: "0000:1a:00.0", SM: 90}},
		Nodes: []discover.Node{{ID: 0, CPUs: discover.CPUSet{0xf}}}})
	if got := value(t, list, "gpu 0"); got != "NVIDIA H200 at 0000:1a:00.0, compute capability 9.0" {
		t.Error(got)
	}
	if got := value(t, list, "numa nodes"); got != "0 (CPUs 0-3)" {
		t.Error(got)
	}
	list = machineFacts(&discover.Facts{Notes: []string{"something else", "GPUs: no driver: libnvidia-ml.so.1"}})
	if got := value(t, list, "gpus"); got != "none: no driver: libnvidia-ml.so.1" {
		t.Error(got)
	}
}

func TestNetworkFacts(t *testing.T) {
	s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "=lo"}})
	if err != nil {
		t.Fatal(err)
	}
	list := networkFacts(s)
	if got := value(t, list, "network socket"); !strings.HasPrefix(got, "lo") {
		t.Errorf("socket: %s", got)
	}
	if got := value(t, list, "network ib"); !strings.HasPrefix(got, "not used: NCCL_NET") {
		t.Errorf("ib: %s", got)
	}
}

// The built command asks the built library.
func TestBuiltCommand(t *testing.T) {
	path := filepath.Join("..", "..", "build", "bin", "gccl-info")
	if _, err := os.Stat(path + "-probe"); err != nil {
		t.Fatalf("%v: make build", err)
	}
	run := func(args ...string) string {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "GCCL_DEVICE=host")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	for _, want := range []string{"build/lib/libgccl.so", "host: GCCL_DEVICE=host", "network socket", "library build"} {
		if got := run(); !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if got := run("--run"); !strings.Contains(got, "communicator ready: rank 1 of 2") {
		t.Errorf("the log of two ranks:\n%s", got)
	}
}
