// Package fakecuda checks device/fake, the stand-in for libcuda.so.1: that it does what the driver promises, refuses what the
// driver refuses, and blocks where the driver blocks. Each case is a process of its own with a deadline.
package fakecuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

func compile(t *testing.T, out, glob string, flags ...string) string {
	t.Helper()
	out = filepath.Join(t.TempDir(), out)
	sources, err := filepath.Glob(glob)
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources in %s (%v)", glob, err)
	}
	for _, s := range sources { // the test cache must see them
		if _, err := os.ReadFile(s); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", out}, sources...)
	if text, err := exec.Command("gcc", append(args, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", glob, err, text)
	}
	return out
}

func TestFake(t *testing.T) {
	driver, err := rankrun.FakeDriver()
	if err != nil {
		t.Fatal(err)
	}
	kernels := compile(t, "libkernels.so", "kernels/*.c", "-shared", "-fPIC")
	program := &rankrun.Program{Path: compile(t, "fakecuda", "prog/*.c", "-ldl")}
	for _, c := range []struct {
		name string
		env  string
	}{
		{"devices", "GCCL_FAKE_DEVICES=2,mig3"}, {"contexts", "GCCL_FAKE_DEVICES=2"}, {"memory", ""}, {"pointers", ""}, {"vmm", ""}, {"ipc", ""},
		{"streams", ""}, {"events", ""}, {"memops", ""}, {"queues", ""}, {"queues", "CUDA_DEVICE_MAX_CONNECTIONS=32"}, {"blocking", ""},
		{"kernels", ""}, {"room", ""}, {"sticky", ""}, {"capture", ""}, {"broken", ""}, {"graphs", ""}, {"branches", ""},
		{"script", "GCCL_FAKE_FAIL=cuMemAlloc_v2:2:2,cuStreamCreate:0:304"}, {"forked", ""}, {"protected", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := []string{"GCCL_FAKE_KERNELS=" + kernels}
			if c.env != "" {
				env = append(env, c.env)
			}
			r := program.Check(t, rankrun.Spec{Args: []string{driver, c.name}, Env: env, Deadline: 30 * time.Second})
			if strings.HasPrefix(r.Stdout, "skip: ") {
				t.Skip(strings.TrimSpace(r.Stdout))
			}
		})
	}
}
