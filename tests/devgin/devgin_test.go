// Package devgin runs kernels on the CPU that use GIN: the suites of prog/ over every backend and transport, the mistakes of
// mistakes/, and in old/ what kernels do that were compiled with another header.
//
// This package must not import any package of the library: it sees what a foreign program sees.
package devgin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

var suites, mistakes, checked, old *rankrun.Program

func TestMain(m *testing.M) {
	for _, b := range []struct {
		p       **rankrun.Program
		folder  string
		options []string
	}{
		{&suites, "tests/devgin/prog", nil},
		{&mistakes, "tests/devgin/mistakes", nil},
		{&checked, "tests/devgin/mistakes", []string{"-DGCCL_DEVICE_DEBUG"}},
		{&old, "tests/devgin/old", nil},
	} {
		p, err := rankrun.BuildCXX("devgin", b.folder, b.options...)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		*b.p = p
	}
	code := m.Run()
	for _, p := range []*rankrun.Program{suites, mistakes, checked, old} {
		p.Close()
	}
	os.Exit(code)
}

// run returns what a program prints. The deadline is for a broken library only.
func run(t *testing.T, p *rankrun.Program, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env = append(os.Environ(), "GCCL_DEVICE=host")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The suites: every backend, every transport, some shapes of LSA teams. NCCL_LSA_TEAM_SIZE makes teams out of ranks that memory joins.
func TestGin(t *testing.T) {
	const all = 9
	for _, c := range []struct {
		ranks string
		env   string
	}{
		{"3", ""},
		{"1", ""},
		{"1", "GCCL_GIN=proxy"},
		{"1", "GCCL_GIN=gdaki"},
		{"3", "GCCL_GIN=proxy NCCL_NET=loop"},
		{"3", "GCCL_GIN=proxy NCCL_NET=shm"},
		{"3", "GCCL_GIN=proxy NCCL_NET=socket"},
		{"3", "GCCL_GIN=gdaki NCCL_NET=loop"},
		{"3", "GCCL_GIN=gdaki NCCL_NET=shm"},
		{"3", "GCCL_GIN=gdaki NCCL_NET=socket"},
		{"4", "NCCL_LSA_TEAM_SIZE=2"},
		{"4", "NCCL_LSA_TEAM_SIZE=2 GCCL_SOFTNIC=1"},
		{"2", "NCCL_LSA_TEAM_SIZE=1 NCCL_GIN_TYPE=3"},
		{"2", "NCCL_LSA_TEAM_SIZE=1 NCCL_GIN_TYPE=2"},
	} {
		t.Run(c.ranks+" "+c.env, func(t *testing.T) {
			out, err := run(t, suites, strings.Fields(c.env), c.ranks)
			if err != nil || strings.Count("\n"+out, "\nok ") != all {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Kernels that were compiled with an older header of NVIDIA's: each form of the structures and of the descriptors. With LSA teams of one rank GIN
// is there without being asked for, as between nodes.
func TestOldHeaders(t *testing.T) {
	for _, version := range []string{"2.28.9", "2.29.3", "2.29.7", "2.30.3"} {
		for _, c := range []struct{ ranks, env string }{
			{"1", ""}, {"3", ""}, {"2", "NCCL_NET=socket"}, {"4", "NCCL_LSA_TEAM_SIZE=2 NCCL_NET=shm"}, {"2", "NCCL_LSA_TEAM_SIZE=1 GCCL_GIN=direct,proxy"},
		} {
			t.Run(version+" "+c.ranks+" "+c.env, func(t *testing.T) {
				out, err := run(t, old, strings.Fields(c.env), c.ranks, version)
				if err != nil || !strings.Contains(out, "ok "+version) || strings.Contains(out, "not ok") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// What the user has forbidden, and what there is not.
func TestChoices(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"NCCL_GIN_ENABLE=0", "NCCL_GIN_ENABLE=0"},
		{"NCCL_GIN_TYPE=4", "GPI"},
		{"GCCL_GIN=direct NCCL_LSA_TEAM_SIZE=1", "neither"},
		{"GCCL_GIN=dirct", "no backend"},
	} {
		out, err := run(t, mistakes, strings.Fields(c.env), "nothing")
		if err == nil || !strings.Contains(out, "not ok") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s", c.env, err, out)
		}
	}
}

// A mistake in a kernel fails the communicator of the rank that made it, with a text, and ends the waits of all ranks.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ name, env, want string }{
		{"source", "GCCL_GIN=proxy", "its source is in no window"},
		{"destination", "GCCL_GIN=proxy", "its destination is in no window of the peer"},
		{"signal", "GCCL_GIN=proxy", "a signal that its context does not have"},
		{"unaligned", "GCCL_GIN=proxy", "its signal is in no window of the peer"},
		{"source", "GCCL_GIN=gdaki", "local key or range"},
		{"destination", "GCCL_GIN=gdaki", "remote key or range"},
		{"signal", "GCCL_GIN=gdaki", "remote key or range"},
		{"unaligned", "GCCL_GIN=gdaki", "multiple of 8"},
	} {
		t.Run(c.name+" "+c.env, func(t *testing.T) {
			t.Parallel() // they wait for the watchdog
			out, err := run(t, mistakes, strings.Fields(c.env), c.name)
			// ncclRemoteError: the wait ended because the communicator had failed.
			if err != nil || !strings.Contains(out, "rank 0 launch 6") || !strings.Contains(out, "rank 1 launch 6") ||
				!strings.Contains(out, c.want) || strings.Contains(out, "communicator 0") {
				t.Errorf("%v, want %q\n%s", err, c.want, out)
			}
		})
	}
}

// With GCCL_DEVICE_DEBUG the kernel itself stops, and says what it is about.
func TestMistakesAreTrapped(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"source", "a range past the end of the window"},
		{"signal", "no such signal"},
		{"unaligned", "not aligned"},
		{"window", "not a window"},
		{"context", "no such GIN context"},
		{"barrier", "the GIN barrier's index"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, checked, []string{"GCCL_GIN=proxy"}, c.name)
			// ncclInvalidUsage. The other rank waits until its deadline or the failure.
			if err != nil || !strings.Contains(out, "rank 0 launch 5") || !strings.Contains(out, c.want) {
				t.Errorf("%v, want %q\n%s", err, c.want, out)
			}
		})
	}
}

// A wait that nothing ends says who waited for what.
func TestWaitsEnd(t *testing.T) {
	out, err := run(t, mistakes, nil, "nothing")
	if err != nil || !strings.Contains(out, "rank 0 launch 8") || !strings.Contains(out, "GIN signal 0") || !strings.Contains(out, "waited for 1") {
		t.Errorf("%v\n%s", err, out)
	}
}
