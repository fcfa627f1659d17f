// Package cases holds reproducible cases from the field, those that a machine without a GPU can run. Each test has the
// number of its case in its name and says what it checks; the steps are C, in prog/.
//
// This package must not import any package of the library: it sees what a foreign program sees.
package cases

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

var program *rankrun.Program

func TestMain(m *testing.M) {
	p, err := rankrun.Build("cases", "tests/cases/prog")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = p
	code := m.Run()
	p.Close()
	os.Exit(code)
}

// spec runs one suite of the program.
func spec(suite, launch string, ranks int, env ...string) rankrun.Spec {
	return rankrun.Spec{
		Args:     []string{"--suite", suite, "--launch", launch, "--ranks", strconv.Itoa(ranks), "--limit", "45"},
		Env:      env,
		Deadline: 55 * time.Second,
	}
}

func check(t *testing.T, suite, launch string, ranks int, env ...string) rankrun.Result {
	t.Helper()
	return program.Check(t, spec(suite, launch, ranks, env...))
}

// each runs one suite with several launches and numbers of ranks.
func each(t *testing.T, suite string, launches []string, ranks []int, env ...string) {
	t.Helper()
	for _, l := range launches {
		for _, n := range ranks {
			t.Run(fmt.Sprintf("%s/%s/%d", suite, l, n), func(t *testing.T) { check(t, suite, l, n, env...) })
		}
	}
}

// probe skips the test when the command, which proves a capability of the machine, fails.
func probe(t *testing.T, what string, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%s is not available: %s: %v %s", what, strings.Join(argv, " "), err, out)
	}
}

// memAvailable is the kernel's estimate of memory that can be used without swapping, in bytes.
func memAvailable(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no MemAvailable in /proc/meminfo")
	return 0
}
