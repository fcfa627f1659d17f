package world_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/device/lower"
)

// planFile writes the plans of n ranks in the form that testdata/tsan reads.
func planFile(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	for coll := plan.Coll(0); coll < plan.SendRecv; coll++ {
		k := 0
		for _, method := range planner.Methods(coll) {
			if !planner.Fits(coll, method, n) {
				continue
			}
			roots := 1
			switch coll {
			case plan.Broadcast, plan.Reduce, plan.Gather, plan.Scatter:
				roots = n
			}
			for root := range roots {
				for r := range n {
					p, err := planner.Make(coll, method, n, r, root)
					if err != nil {
						t.Fatal(err)
					}
					block, err := lower.Lower(p)
					if err != nil {
						t.Fatal(err)
					}
					for _, v := range []int{int(coll), k, n, r, root, len(block), 0, 0} {
						_ = binary.Write(&b, binary.NativeEndian, uint32(v))
					}
					b.Write(block)
				}
			}
			k++
		}
	}
	path := filepath.Join(t.TempDir(), "plans")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustRun(t *testing.T, what string, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		if len(out) > 8000 {
			out = out[:8000]
		}
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
}

// TestThreads runs ranks as C threads over a row of operations with nothing between them, under ThreadSanitizer, which
// knows the atomic operations and so finds every access that they do not order.
func TestThreads(t *testing.T) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	sources := []string{"testdata/tsan/main.c", "world.c"}
	for _, dir := range []string{"..", "../../reduce"} {
		files, err := filepath.Glob(dir + "/*.c")
		if err != nil || len(files) == 0 {
			t.Fatalf("no C files in %s", dir)
		}
		sources = append(sources, files...)
	}
	dir := t.TempDir()
	build := func(name string, flags ...string) string {
		program := filepath.Join(dir, name)
		argv := append([]string{cc, "-std=gnu11", "-g", "-Wall", "-Wextra", "-pthread"}, flags...)
		mustRun(t, "compiler", append(append(argv, sources...), "-o", program)...)
		return program
	}
	programs := map[string][]string{}
	if runtime.GOARCH == "amd64" {
		// Its memory layout needs the usual address randomisation of 28 bits or none; kernels now use up to 32.
		programs["tsan"] = []string{"setarch", "-R", build("tsan", "-O1", "-fsanitize=thread", "-Wno-tsan")}
	} else { // the sanitizer wants address space that an emulator does not give
		programs["plain"] = []string{build("plain", "-O2")}
	}
	ops := "1500"
	if testing.Short() {
		ops = "400"
	}
	for name, program := range programs {
		for _, n := range []int{2, 3, 5} {
			t.Run(name+"/"+strconv.Itoa(n), func(t *testing.T) {
				plans := planFile(t, n)
				for seed := range 2 {
					argv := append(strings.Fields(os.Getenv("GCCL_TEST_WRAP")), program...)
					mustRun(t, "seed "+strconv.Itoa(seed), append(argv, plans, strconv.Itoa(seed), ops)...)
				}
			})
		}
	}
}
