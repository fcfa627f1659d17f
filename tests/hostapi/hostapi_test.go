// Package hostapi runs the conformance program in prog/ over suites, numbers of ranks and ways to launch them. The
// program is plain C, linked with -lnccl, and compares every function of the host API with an oracle of its own.
//
// This package must not import any package of the library: it sees what a foreign program sees.
package hostapi

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

var program *rankrun.Program

func TestMain(m *testing.M) {
	p, err := rankrun.Build("hostapi", "tests/hostapi/prog")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = p
	code := m.Run()
	p.Close()
	os.Exit(code)
}

var (
	allRanks    = []int{1, 2, 3, 5, 8}
	allLaunches = []string{"threads", "procs", "group"}
)

func TestHostAPI(t *testing.T) {
	suites := []struct {
		name     string
		ranks    []int
		launches []string
	}{
		{"numbers", allRanks, allLaunches},
		{"matrix", allRanks, allLaunches},
		{"pairs", allRanks, allLaunches},
		{"large", allRanks, allLaunches},
		{"groups", allRanks, allLaunches},
		{"streams", allRanks, allLaunches},
		{"nonblocking", allRanks, allLaunches},
		{"making", allRanks, allLaunches},
		{"children", allRanks, allLaunches},
		{"ending", allRanks, allLaunches},
		{"windows", allRanks, allLaunches},
		{"onesided", allRanks, allLaunches},
		{"memory", allRanks, allLaunches},
		{"library", []int{1, 2, 5}, allLaunches},
		{"params", []int{1, 2}, []string{"threads", "procs"}},
		{"badargs", []int{1, 3}, allLaunches},
		{"deviceapi", []int{1, 2}, allLaunches},
		{"interrupt", []int{1, 3}, []string{"threads", "procs"}},
	}
	for _, s := range suites {
		for _, launch := range s.launches {
			for _, n := range s.ranks {
				t.Run(fmt.Sprintf("%s/%s/%d", s.name, launch, n), func(t *testing.T) {
					program.Check(t, rankrun.Spec{
						Args:     []string{"--suite", s.name, "--launch", launch, "--ranks", strconv.Itoa(n), "--limit", "40"},
						Deadline: 50 * time.Second,
					})
				})
			}
		}
	}
}
