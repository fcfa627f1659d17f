// Package endings tests what happens when ranks die, leave too early or run into limits, through the public C interface.
//
// It looks for the built library in $GCCL_LIB_DIR, or build/lib, and fails when it is not there.
package endings

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// program compiles testdata/NAME.c against the public header and the built library.
func program(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("GCCL_LIB_DIR")
	if dir == "" {
		dir = filepath.Join(root, "build", "lib")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "libgccl.so"))
	}
	if err != nil {
		t.Fatalf("the library is not built: %v; run make build, or set GCCL_LIB_DIR", err)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	out := filepath.Join(t.TempDir(), name)
	args := []string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", filepath.Join(root, "include"), "-o", out,
		"testdata/" + name + ".c", "-L", dir, "-lnccl", "-Wl,-rpath," + dir}
	if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// run gives the lines that a program printed; it must end in time. before is put in front of the command in a shell.
func run(t *testing.T, before, path string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", before+" exec \"$0\" \"$@\"", path)
	cmd.Args = append(cmd.Args, args...)
	for _, v := range os.Environ() { // the caller's settings are not those of the test
		if !strings.HasPrefix(v, "NCCL_") && !strings.HasPrefix(v, "GCCL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.WaitDelay = time.Second
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, log.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// find gives the submatches of the lines that fit a pattern.
func find(lines []string, pattern string) [][]string {
	var out [][]string
	re := regexp.MustCompile(pattern)
	for _, l := range lines {
		if m := re.FindStringSubmatch(l); m != nil {
			out = append(out, m)
		}
	}
	return out
}

func TestKilledRank(t *testing.T) {
	path := program(t, "kill")
	for _, c := range []struct{ n, victim int }{{2, 1}, {3, 1}, {3, 0}, {4, 2}} {
		t.Run(fmt.Sprintf("%d of %d", c.victim, c.n), func(t *testing.T) {
			lines := run(t, "", path, strconv.Itoa(c.n), strconv.Itoa(c.victim))
			for _, want := range []string{
				fmt.Sprintf(`^rank \d: code 6, [0-4] s late: .*rank %d of %d \(host .*, pid \d+\)`, c.victim, c.n),
				`^rank \d: abort 0, [0-4] s$`,
				fmt.Sprintf(`^rank \d: child 0 of %d ranks, sum %d, destroy 0$`, c.n-1, c.n-1),
			} {
				if got := len(find(lines, want)); got != c.n-1 {
					t.Errorf("%d lines like %q instead of %d:\n%s", got, want, c.n-1, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

func TestRankLeavesEarly(t *testing.T) {
	path := program(t, "leave")
	for _, how := range []string{"destroy", "abort"} {
		lines := run(t, "", path, how)
		for _, want := range []string{`^rank [02]: code 6: rank 1 of 3 .*without taking part in collective 11`, `^rank [02]: abort 0$`} {
			if len(find(lines, want)) != 2 {
				t.Errorf("%s: no two lines like %q:\n%s", how, want, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestCyclesLeaveNothing(t *testing.T) {
	lines := run(t, "", program(t, "cycles"), "destroy", "1000")
	for r := range 2 {
		found := find(lines, fmt.Sprintf(`^rank %d: cycle (10|1000): files (\d+) threads (\d+) KiB (\d+)$`, r))
		if len(found) != 2 {
			t.Fatalf("rank %d:\n%s", r, strings.Join(lines, "\n"))
		}
		var v [2][3]int
		for i := range v {
			for k := range v[i] {
				v[i][k], _ = strconv.Atoi(found[i][k+2])
			}
		}
		// The Go heap settles above its first size; threads are made for calls that block and are kept by the runtime.
		if v[1][0] > v[0][0] || v[1][1] > v[0][1]+6 || v[1][2] > v[0][2]+24<<10 {
			t.Errorf("rank %d: files, threads and KiB were %v after 10 cycles and are %v after 1000", r, v[0], v[1])
		}
	}
}

func TestOutOfFiles(t *testing.T) {
	lines := run(t, "GCCL_INIT_TIMEOUT=5s; export GCCL_INIT_TIMEOUT; ulimit -n 40;", program(t, "cycles"), "keep", "100")
	if len(find(lines, `^rank \d: cycle \d+: code 2: .*(limit on open files|ulimit -n)`)) == 0 {
		t.Errorf("no error that names the limit:\n%s", strings.Join(lines, "\n"))
	}
}
