// Package core tests the Go core through its C seam (capi/core.h), without the front.
//
// It looks for the built library in $GCCL_LIB_DIR, or build/lib, and fails when it is not there.
package core

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const root = "../.."

func library(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GCCL_LIB_DIR")
	if dir == "" {
		dir = filepath.Join(root, "build", "lib")
	}
	path, err := filepath.Abs(filepath.Join(dir, "libgccl_core.so"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("the core is not built: %v; run make build, or set GCCL_LIB_DIR", err)
	}
	return path
}

// The seam as C sees it, with every symbol bound at loading.
func TestSeam(t *testing.T) {
	lib := library(t)
	program := filepath.Join(t.TempDir(), "seam")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	build := exec.Command(cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", filepath.Join(root, "capi"), "-o", program, "testdata/seam.c", "-ldl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, env := range []string{"LD_BIND_NOW=1", "GCCL_STAGE_BYTES=64KiB"} {
		run := exec.Command(program, lib)
		run.Env = append(os.Environ(), env)
		run.WaitDelay = time.Second
		stop := time.AfterFunc(time.Minute, func() { _ = run.Process.Kill() })
		out, err := run.CombinedOutput()
		stop.Stop()
		if err != nil {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
}

// The core shows the front one symbol, so that two copies of the Go runtime's helpers never meet.
func TestOneSymbol(t *testing.T) {
	f, err := elf.Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		if s.Section != elf.SHN_UNDEF && s.Name != "gcclgo_open" {
			t.Errorf("symbol %s is visible", s.Name)
		}
	}
	for _, lib := range must(f.ImportedLibraries()) {
		if lib == "libcuda.so.1" || lib == "libnvidia-ml.so.1" {
			t.Errorf("the core needs %s", lib)
		}
	}
}

func must(s []string, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	return s
}
