// Package cudart builds ordinary CUDA host programs with NVIDIA's public runtime headers, of CUDA 12 and 13, and runs them on
// libgccl-cudart.so: as C and as C++, linked with the library's own name and with the runtime's.
//
// The headers are not in the tree: make cudart-headers fetches them. Where they are not there the tests are skipped, unless
// $GCCL_NEED_CUDART says that they have to be.
package cudart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

type toolkit struct{ version, headers string }

func toolkits(t *testing.T) []toolkit {
	t.Helper()
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	var out []toolkit
	for _, v := range []string{"12", "13"} {
		dir := filepath.Join(root, ".tools", "cudart-"+v, "include")
		if _, err := os.Stat(filepath.Join(dir, "cuda_runtime.h")); err == nil {
			out = append(out, toolkit{v, dir})
		} else if os.Getenv("GCCL_NEED_CUDART") != "" {
			t.Fatalf("%v: make cudart-headers", err)
		}
	}
	if len(out) == 0 {
		t.Skip("NVIDIA's runtime headers are not here: make cudart-headers fetches them")
	}
	return out
}

// build compiles prog/NAME.c. runtime is what -l names: gccl-cudart, or :libcudart.so.N of the folder cudart.
func build(t *testing.T, k toolkit, name, compiler, runtime string) *rankrun.Program {
	t.Helper()
	lib, err := rankrun.LibDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	args := []string{"-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-isystem", k.headers, "-I", filepath.Join(root, "include"),
		filepath.Join("prog", name+".c"), "-o", out, "-L" + lib, "-L" + filepath.Join(lib, "cudart"), "-lnccl", "-l" + runtime,
		"-Wl,-rpath," + lib + ":" + filepath.Join(lib, "cudart")}
	if compiler == "gcc" {
		args = append([]string{"-std=gnu11"}, args...)
	} else {
		args = append([]string{"-std=c++17", "-xc++"}, args...)
	}
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, text)
	}
	return &rankrun.Program{Path: out, LibDir: lib}
}

func TestRuntime(t *testing.T) {
	for _, k := range toolkits(t) {
		for _, runtime := range []string{"gccl-cudart", ":libcudart.so." + k.version} {
			t.Run(k.version+"/"+runtime, func(t *testing.T) {
				p := build(t, k, "api", "gcc", runtime)
				r := p.Check(t, rankrun.Spec{Env: []string{"GCCL_CUDART_DEVICES=3"}})
				if !strings.Contains(r.Stdout, "passed") || r.Stderr != "" { // the loader complains there about missing versions
					t.Errorf("%s", r)
				}
			})
		}
	}
}

func TestRanks(t *testing.T) {
	for _, k := range toolkits(t) {
		for _, compiler := range []string{"gcc", "g++"} {
			p := build(t, k, "ranks", compiler, ":libcudart.so."+k.version)
			for _, how := range []string{"one", "threads", "processes"} {
				t.Run(fmt.Sprintf("%s/%s/%s", k.version, compiler, how), func(t *testing.T) {
					r := p.Check(t, rankrun.Spec{Args: []string{how}, Deadline: 2 * time.Minute})
					if !strings.Contains(r.Stdout, "passed") {
						t.Errorf("%s", r)
					}
				})
			}
		}
	}
}
