package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernels looks into small libraries with and without the section.
func TestKernels(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"int x;", "none: host mode only"},
		{`__attribute__((section(".gccl_fatbin"))) const char k[100] = "x";`, "100 bytes"},
	} {
		lib := filepath.Join(t.TempDir(), "lib.so")
		cmd := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", lib)
		cmd.Stdin = strings.NewReader(c.source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := kernels(lib); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.source, got, c.want)
		}
	}
	if got := kernels(filepath.Join(t.TempDir(), "none.so")); !strings.HasPrefix(got, "unknown: ") {
		t.Errorf("a missing library: got %q", got)
	}
}
