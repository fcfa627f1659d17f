package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// TestCPUForm runs every kernel, compiled by g++, on random cases.
func TestCPUForm(t *testing.T) {
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	lib := os.Getenv("GCCL_LIB_DIR")
	if lib == "" {
		lib = filepath.Join(root, "build", "lib")
	}
	lib = filepath.Join(lib, "libgccl_kernels_cpu.so")
	check := filepath.Join(root, "build", "bin", "kernels-check")
	for _, f := range []string{lib, check} {
		if _, err := os.Stat(f); err != nil {
			t.Fatalf("%v; run make kernels-cpu build/bin/kernels-check", err)
		}
	}
	rounds := "2"
	if testing.Short() {
		rounds = "1"
	}
	out, err := exec.Command(check, "--cpu", lib, "1", rounds).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
