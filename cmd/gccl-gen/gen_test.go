package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

var update = flag.Bool("update", false, "rewrite the derived files")

// root is the repository's, seen from this package.
const root = "../.."

func TestDerivedFilesAreFresh(t *testing.T) {
	for _, a := range artefacts {
		t.Run(a.name, func(t *testing.T) {
			path := filepath.Join(root, a.path)
			if *update {
				if err := writeFile(path, a.write); err != nil {
					t.Fatal(err)
				}
			}
			var want bytes.Buffer
			if err := a.write(&want); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s is stale: run go run ./cmd/gccl-gen %s", a.path, a.name)
			}
		})
	}
}

func TestWriteFileKeepsTheOldFileOnFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "x")
	if err := writeFile(path, writeResultText); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if err := writeFile(filepath.Join(path, "y"), writeEnv); err == nil {
		t.Error("a file below a file was written")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Error("the old file changed")
	}
	left, _ := filepath.Glob(path + "*")
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestResultTextInC compiles the table with a compiler's warnings on and prints
// what a C program sees.
func TestResultTextInC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Fatal("no C compiler named cc on this machine; the build needs one too")
	}
	dir := t.TempDir()
	src := `#include <stdio.h>
#include "result_text.gen.h"
#define CASE(name, number, text) case number: return text;
static const char *text(int r) { switch (r) { GCCL_RESULTS(CASE) default: return GCCL_RESULT_UNKNOWN_TEXT; } }
int main(void) { for (int r = 0; r <= GCCL_RESULT_COUNT; r++) puts(text(r)); return 0; }
`
	prog := filepath.Join(dir, "main.c")
	if err := os.WriteFile(prog, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "main")
	inc := filepath.Join(root, "capi/front")
	if out, err := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", inc, "-o", bin, prog).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(xerr.Entries())+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, l := range lines {
		if want := xerr.Code(i).String(); l != want {
			t.Errorf("%d: C says %q, Go says %q", i, l, want)
		}
	}
}
