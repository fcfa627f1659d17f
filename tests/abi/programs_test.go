package abi

import (
	"path/filepath"
	"testing"
)

func programs(t *testing.T) []string {
	t.Helper()
	noteInputs(t, filepath.Join("testdata", "c"))
	files, err := filepath.Glob(filepath.Join("testdata", "c", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs in testdata/c: %v", err)
	}
	return files
}

// The programs of the library tests compile against the headers alone, so that an error in one of them is not taken
// for a fault of the library.
func TestProgramsCompile(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			cc := tool(t, compiler)
			for _, src := range programs(t) {
				r := runProgram(t, cleanEnv(), "", cc, "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
					"-fsyntax-only", "-I", includeDir(t), src)
				if r.err != nil {
					t.Errorf("%s: %v\n%s", src, r.err, r.stderr)
				}
			}
		})
	}
}
