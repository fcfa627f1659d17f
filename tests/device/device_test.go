package device

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// build compiles the program with options of its own.
func build(t *testing.T, options ...string) *rankrun.Program {
	t.Helper()
	options = append(options, strings.Fields(os.Getenv("GCCL_TEST_CXXFLAGS"))...)
	p, err := rankrun.BuildCXX("device", "tests/device/prog", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func run(t *testing.T, p *rankrun.Program, suite, launch string, ranks int, more ...string) {
	t.Run(fmt.Sprintf("%s/%s/%d", suite, launch, ranks)+strings.Join(more, ""), func(t *testing.T) {
		var env []string
		if suite == "old" {
			env = []string{"GCCL_DEVICE_HEADER=2.28.3"}
		}
		if len(more) == 2 && more[0] == "--lsa" {
			env = []string{"NCCL_LSA_TEAM_SIZE=" + more[1]}
		}
		p.Check(t, rankrun.Spec{
			Args:     append([]string{"--suite", suite, "--launch", launch, "--ranks", strconv.Itoa(ranks)}, more...),
			Env:      env,
			Deadline: 3 * time.Minute,
		})
	})
}

func TestKernels(t *testing.T) {
	p := build(t)
	for _, suite := range []string{"cuda", "coops", "reduce"} { // no other rank matters
		run(t, p, suite, "threads", 1)
	}
	for _, suite := range []string{"teams", "pointers", "barriers", "failures", "a2a", "allreduce", "debug"} {
		for _, ranks := range []int{1, 2, 3, 8} {
			run(t, p, suite, "threads", ranks)
		}
		for _, ranks := range []int{2, 3, 8} {
			run(t, p, suite, "procs", ranks)
		}
	}
	run(t, p, "old", "procs", 2)
	for _, suite := range []string{"teams", "barriers", "a2a"} { // several LSA teams: by order, and because hosts divide them
		run(t, p, suite, "threads", 6, "--lsa", "2")
		run(t, p, suite, "procs", 6, "--hosts", "2")
	}
}

// The same over memory and streams of CUDA, whose stand-in's memory kernels on the CPU reach.
func TestKernelsOverCuda(t *testing.T) {
	p := build(t)
	environment, err := rankrun.FakeCUDA()
	if err != nil {
		t.Fatal(err)
	}
	check := func(suite, launch string, ranks int, more ...string) {
		t.Run(fmt.Sprintf("%s/%s/%d", suite, launch, ranks), func(t *testing.T) {
			args := []string{"--memory", "cuda", "--suite", suite, "--launch", launch, "--ranks", strconv.Itoa(ranks)}
			p.Check(t, rankrun.Spec{Args: append(args, more...), Env: environment, Deadline: 3 * time.Minute})
		})
	}
	for _, suite := range []string{"teams", "pointers", "barriers", "failures", "a2a", "allreduce"} {
		check(suite, "threads", 1)
		check(suite, "threads", 3)
		check(suite, "procs", 2)
		check(suite, "procs", 8)
	}
	for _, suite := range []string{"teams", "barriers", "a2a"} { // an LSA team is of one host
		check(suite, "procs", 6, "--hosts", "2")
	}
}

// What kernels do in order of their barriers is in order for ThreadSanitizer, and what is not is reported.
func TestThreadSanitizer(t *testing.T) {
	if os.Getenv("GCCL_TEST_CXXFLAGS") != "" {
		t.Skip("another sanitizer was asked for")
	}
	p := build(t, "-fsanitize=thread")
	run(t, p, "coops", "threads", 1)
	for _, suite := range []string{"barriers", "a2a", "allreduce"} {
		run(t, p, suite, "threads", 2)
	}
	r := p.Run(t, rankrun.Spec{Args: []string{"--suite", "race", "--launch", "threads", "--ranks", "1"}, Deadline: 3 * time.Minute})
	if !strings.Contains(r.Stderr, "data race") || !strings.Contains(r.Stderr, "forgotten_barrier") {
		t.Errorf("a kernel without its __syncthreads is no data race: %v", r)
	}
}

// The header in the languages that are promised: C and C++ for hosts, C++14 and later with kernels.
func TestHeaderCompiles(t *testing.T) {
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	const host = "#include <nccl_device.h>\nint main(void) { ncclDevCommRequirements_t r = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;\n" +
		"  ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;\n  return r.lsaBarrierCount + p.nRanks; }\n"
	kernel := "#define GCCL_DEVICE_CPU 1\n#include \"kernels.h\"\n"
	for _, c := range []struct {
		compiler, ext, text string
		flags               []string
	}{
		{"gcc -std=c99", "c", host, nil}, {"gcc -std=c17", "c", host, nil}, {"clang -std=c11", "c", host, nil},
		{"g++ -std=c++11", "cc", host, nil}, {"clang++ -std=c++20", "cc", host, nil},
		{"g++ -std=c++14", "cc", kernel, nil}, {"g++ -std=c++20", "cc", kernel, []string{"-DGCCL_DEVICE_DEBUG"}},
		{"clang++ -std=c++14", "cc", kernel, []string{"-DGCCL_DEVICE_DEBUG"}}, {"clang++ -std=c++20", "cc", kernel, nil},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			src := filepath.Join(t.TempDir(), "use."+c.ext)
			if err := os.WriteFile(src, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(strings.Fields(c.compiler), "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-I", filepath.Join(root, "include"),
				"-I", filepath.Join(root, "tests/device/prog"))
			args = append(append(args, c.flags...), src)
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
}

// The structures have NCCL's layout, field by field.
func TestLayouts(t *testing.T) {
	table, err := os.ReadFile("testdata/layouts.tsv")
	if err != nil {
		t.Fatal(err)
	}
	root, err := rankrun.Root()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("#include <gccl_device.h>\n")
	sized, fields := map[string]bool{}, 0
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		f := strings.Split(line, "\t") // struct, version, sizeof, field, offset, size, type
		if len(f) < 7 {
			t.Fatalf("a line of %d cells: %q", len(f), line)
		}
		name := f[0]
		if !strings.HasSuffix(name, "_t") {
			name = "struct " + name
		}
		if !sized[name] {
			sized[name] = true
			fmt.Fprintf(&b, "_Static_assert(sizeof(%s) == %s, \"sizeof %s\");\n", name, f[2], name)
		}
		if f[3] == "" {
			continue
		}
		if f[3] == "reserved1" {
			f[3] = "gcclOwn" // this library's use of it
		}
		fmt.Fprintf(&b, "_Static_assert(offsetof(%s, %s) == %s, \"offset of %s.%s\");\n", name, f[3], f[4], name, f[3])
		fmt.Fprintf(&b, "_Static_assert(sizeof(((%s *)0)->%s) == %s, \"size of %s.%s\");\n", name, f[3], f[5], name, f[3])
		fields++
	}
	if len(sized) < 15 || fields < 80 {
		t.Fatalf("the table has %d structures and %d fields", len(sized), fields)
	}
	src := filepath.Join(t.TempDir(), "layouts.c")
	if err := os.WriteFile(src, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-std=c11", "-fsyntax-only", "-I", filepath.Join(root, "include"), src).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
