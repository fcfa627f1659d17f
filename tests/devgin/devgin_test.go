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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
	"github.com/gccl/gccl/tests/internal/stubnic"
)

var suites, mistakes, checked, old *rankrun.Program

var stub string // a folder with libraries of a card that a thread executes

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
		p, err := rankrun.BuildCXX("devgin", b.folder, append(b.options, strings.Fields(os.Getenv("GCCL_TEST_CXXFLAGS"))...)...)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		*b.p = p
	}
	var err error
	if stub, err = os.MkdirTemp("", "gccl-stubnic-"); err == nil {
		err = stubnic.Build(stub)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(stub)
	for _, p := range []*rankrun.Program{suites, mistakes, checked, old} {
		p.Close()
	}
	os.Exit(code)
}

// run returns what a program prints. The deadline is for a broken library only.
func run(t *testing.T, p *rankrun.Program, env []string, args ...string) (string, error) {
	t.Helper()
	return runFor(t, 5*time.Minute, p, env, args...)
}

func runFor(t *testing.T, limit time.Duration, p *rankrun.Program, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env = append(os.Environ(), "GCCL_DEVICE=host")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// suiteCount is how many suites a program runs that is not told which.
const suiteCount = 12

// The suites: every backend, every transport, some shapes of LSA teams. NCCL_LSA_TEAM_SIZE makes teams out of ranks that memory joins.
func TestGin(t *testing.T) {
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
		{"3", "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5 NCCL_NET=loop"},
		{"3", "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5-relay NCCL_NET=loop"},
		{"1", "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5"},
		{"4", "NCCL_LSA_TEAM_SIZE=2 GCCL_GIN=direct,gdaki"},
		{"4", "NCCL_LSA_TEAM_SIZE=2"},
		{"4", "NCCL_LSA_TEAM_SIZE=2 GCCL_SOFTNIC=1"},
		{"2", "NCCL_LSA_TEAM_SIZE=1 NCCL_GIN_TYPE=3"},
		{"2", "NCCL_LSA_TEAM_SIZE=1 NCCL_GIN_TYPE=2"},
	} {
		t.Run(c.ranks+" "+c.env, func(t *testing.T) {
			env := strings.Fields(c.env)
			if strings.Contains(c.env, "NIC=mlx5") || strings.HasSuffix(c.env, "direct,gdaki") {
				env = append(env, "LD_LIBRARY_PATH="+stub)
			}
			out, err := run(t, suites, env, c.ranks)
			if err != nil || strings.Count("\n"+out, "\nok ") != suiteCount || strings.Contains(out, "stubnic:") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Kernels with GIN under ThreadSanitizer: among themselves (direct), with the rings and queues that they share, and with the stand-in for the card,
// which is compiled for it too. The library is not, so what it does is not looked at; nor does it order anything: a wait for the library
// orders nothing for the sanitizer.
func TestThreadSanitizer(t *testing.T) {
	if os.Getenv("GCCL_TEST_CXXFLAGS") != "" {
		t.Skip("another sanitizer was asked for")
	}
	p, err := rankrun.BuildCXX("devgin", "tests/devgin/prog", "-fsanitize=thread")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir := t.TempDir()
	if err := stubnic.Build(dir, "-fsanitize=thread"); err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(dir, "known")
	if err := os.WriteFile(known, []byte("called_from_lib:libgccl_core.so\ncalled_from_lib:libnccl.so\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TSAN_OPTIONS=suppressions=" + known, "LD_LIBRARY_PATH=" + dir, "GCCL_TEST_SOAK=300", "GCCL_TEST_PUTS=300", "GCCL_TEST_SIGNALS=40"}
	for _, backend := range []string{"GCCL_GIN=direct", "GCCL_GIN=proxy", "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5"} {
		out, err := run(t, p, append(strings.Fields(backend), env...), "2")
		if err != nil || strings.Count("\n"+out, "\nok ") != suiteCount || strings.Contains(out, "WARNING: ThreadSanitizer") {
			t.Errorf("%s: %v\n%s", backend, err, out)
		}
	}
	if out, _ := run(t, p, append([]string{"GCCL_GIN=direct"}, env...), "2", "race"); !strings.Contains(out, "data race") || !strings.Contains(out, "raceKernel") {
		t.Errorf("a word that is read without a wait is no data race:\n%s", out)
	}
}

// Many signals behind numbered payload, every word read back, through each backend and transport: GCCL_TEST_SOAK says how many (the suite above sends
// 3000), GCCL_TEST_SEED what. The log says what was seen.
func TestSoak(t *testing.T) {
	if os.Getenv("GCCL_TEST_SOAK") == "" {
		t.Skip("the long form of a suite of TestGin: GCCL_TEST_SOAK=1000000")
	}
	for _, env := range []string{"GCCL_GIN=direct", "GCCL_GIN=proxy NCCL_NET=loop", "GCCL_GIN=proxy NCCL_NET=shm", "GCCL_GIN=proxy NCCL_NET=socket",
		"GCCL_GIN=gdaki GCCL_GIN_NIC=soft NCCL_NET=loop", "GCCL_GIN=gdaki GCCL_GIN_NIC=soft NCCL_NET=shm", "GCCL_GIN=gdaki GCCL_GIN_NIC=soft NCCL_NET=socket",
		"GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5", "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5-relay"} {
		t.Run(env, func(t *testing.T) {
			start := time.Now()
			out, err := runFor(t, 15*time.Minute, suites, append(strings.Fields(env), "GCCL_TEST_SECONDS=800", "LD_LIBRARY_PATH="+stub), "2", "soak")
			if err != nil || !strings.Contains(out, "ok soak") || strings.Contains(out, "stubnic:") {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%.1f s\n%s", time.Since(start).Seconds(), out)
		})
	}
}

// standIn is the environment of programs over CUDA's stand-in.
func standIn(t *testing.T, more string) []string {
	t.Helper()
	cuda, err := rankrun.FakeCUDA()
	if err != nil {
		t.Fatal(err)
	}
	return append(append(strings.Fields(more), "GCCL_DEVICE=cuda"), cuda...)
}

// The same in memory of CUDA's stand-in, which the network reaches by the driver's copies and stream writes alone. kind: of the contexts, 2 proxy, 3 gdaki.
func TestGinOverCuda(t *testing.T) {
	for _, c := range []struct{ ranks, env, kind string }{
		{"1", "", ""},
		{"3", "", ""},
		{"1", "GCCL_GIN=proxy", "2"},
		{"2", "GCCL_GIN=proxy NCCL_NET=loop", "2"},
		{"4", "GCCL_GIN=proxy", "2"},
		{"1", "GCCL_GIN=gdaki", "3"},
		{"2", "GCCL_GIN=gdaki NCCL_NET=loop", "3"},
		{"4", "GCCL_GIN=gdaki", "3"},
		{"2", "NCCL_LSA_TEAM_SIZE=1 NCCL_GIN_TYPE=3", "3"},
		{"4", "NCCL_LSA_TEAM_SIZE=2", "2"},
		{"4", "NCCL_LSA_TEAM_SIZE=2 GCCL_GIN=direct,gdaki", "3"},
		{"2", "GCCL_GIN=proxy GCCL_GIN_SM_COPY=1", "2"},
		{"--procs 2", "GCCL_GIN=proxy NCCL_NET=shm", "2"},
		{"--procs 2", "GCCL_GIN=gdaki NCCL_NET=socket", "3"},
		{"--procs 4", "NCCL_LSA_TEAM_SIZE=2", "2"},
	} {
		t.Run(c.ranks+" "+c.env, func(t *testing.T) {
			out, err := run(t, suites, standIn(t, c.env), append([]string{"--memory", "cuda"}, strings.Fields(c.ranks)...)...)
			if err != nil || strings.Count("\n"+out, "\nok ") != suiteCount || !strings.Contains(out, "ok soak type "+c.kind) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The same between hosts, as NCCL_HOSTID says: windows of other hosts are not mapped, and what is for them goes through bounce memory.
func TestGinBetweenHosts(t *testing.T) {
	for _, c := range []struct{ ranks, env, kind string }{
		{"--hosts 2 2", "", "2"},
		{"--hosts 2 2", "GCCL_GIN=proxy NCCL_NET=shm", "2"},
		{"--hosts 2 2", "GCCL_GIN=gdaki NCCL_NET=socket", "3"},
		{"--hosts 2 4", "NCCL_NET=socket", "2"},
		{"--hosts 2 4", "GCCL_GIN=proxy NCCL_NET=socket", "2"},
		{"--hosts 2 4", "GCCL_GIN=gdaki NCCL_NET=shm", "3"},
		{"--hosts 2 4", "GCCL_GIN=direct,gdaki", "3"},
		{"--hosts 2 3", "", "2"}, // LSA teams of one rank, though two share a host
		{"--hosts 3 3", "GCCL_GIN=proxy GCCL_GIN_SM_COPY=1", "2"},
	} {
		t.Run(c.ranks+" "+c.env, func(t *testing.T) {
			out, err := run(t, suites, standIn(t, c.env), append([]string{"--memory", "cuda"}, strings.Fields(c.ranks)...)...)
			if err != nil || strings.Count("\n"+out, "\nok ") != suiteCount || !strings.Contains(out, "ok soak type "+c.kind) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A process that dies in the middle of puts through bounce memory.
func TestKilledBetweenHosts(t *testing.T) {
	for _, c := range []struct{ ranks, env string }{
		{"--hosts 2 2", "NCCL_NET=socket"}, {"--hosts 2 4", "NCCL_NET=socket"}, {"--hosts 2 2", "NCCL_NET=shm"}, {"--hosts 2 4", "GCCL_GIN=gdaki"},
	} {
		out, err := run(t, suites, standIn(t, c.env), append(append([]string{"--memory", "cuda"}, strings.Fields(c.ranks)...), "killed")...)
		n := int(c.ranks[len(c.ranks)-1] - '0')
		if err != nil || strings.Count("\n"+out, "\nsurvivor ") != n-1 {
			t.Errorf("%s %s: %v\n%s", c.ranks, c.env, err, out)
		}
	}
}

// The suites that are for a GPU first of all, so that their text runs here too.
func TestSuitesByName(t *testing.T) {
	for _, backend := range []string{"proxy", "gdaki"} {
		out, err := run(t, suites, standIn(t, "GCCL_GIN="+backend), "--memory", "cuda", "2", "behind", "full")
		if err != nil || strings.Count("\n"+out, "\nok ") != 2 {
			t.Errorf("%s: %v\n%s", backend, err, out)
		}
	}
}

// A copy that the driver refuses fails the communicator with a text, and ends the kernels' waits.
func TestCopyFails(t *testing.T) {
	for _, backend := range []string{"proxy", "gdaki"} {
		out, err := run(t, suites, standIn(t, "GCCL_FAKE_FAIL=cuMemcpyAsync:300:1 GCCL_GIN="+backend), "--memory", "cuda", "2", "soak")
		if err == nil || !strings.Contains(out, "a copy for kernels on device 0: error 1 (invalid argument)") {
			t.Errorf("%s: %v\n%s", backend, err, out)
		}
	}
}

// Kernels that were compiled with an older header of NVIDIA's: each form of the structures and of the descriptors. With LSA teams of one rank GIN
// is there without being asked for, as between nodes.
func TestOldHeaders(t *testing.T) {
	for _, version := range []string{"2.28.9", "2.29.3", "2.29.7", "2.30.3"} {
		t.Run(version+" over cuda", func(t *testing.T) {
			for _, c := range []struct{ ranks, env string }{{"1", ""}, {"3", ""}, {"4", "NCCL_LSA_TEAM_SIZE=2"}} {
				out, err := run(t, old, standIn(t, c.env), "--memory", "cuda", c.ranks, version)
				if err != nil || !strings.Contains(out, "ok "+version) || strings.Contains(out, "not ok") {
					t.Errorf("%s %s: %v\n%s", c.ranks, c.env, err, out)
				}
			}
		})
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
		{"GCCL_GIN=gdaki GCCL_GIN_NIC=mlx4", "names no NIC"},
		{"GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5 LD_LIBRARY_PATH=", "cannot be met: rank 0"},
	} {
		out, err := run(t, mistakes, strings.Fields(c.env), "nothing")
		if err == nil || !strings.Contains(out, "not ok") || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s", c.env, err, out)
		}
	}
}

// A card is used if each step of its way works at all ranks. What does not is one line of the log, and the choice falls to proxy, which the kernel's
// device communicator and the properties say too.
func TestCard(t *testing.T) {
	const used = "kernels: gdaki (mlx5dv)"
	for _, c := range []struct{ env, want string }{
		{"GCCL_GIN_NIC=mlx5", used},
		{"GCCL_GIN_NIC=mlx5-relay", "the CPU rings the doorbells of mlx5_stub:1"},
		{"", used},
		{"GCCL_GIN_NIC=soft", "kernels: gdaki (software NIC)"},
		{"STUBNIC_FAIL=device", "kernels: gdaki (software NIC): GCCL_GIN=gdaki,proxy; no card: rank 0"},
		{"STUBNIC_FAIL=device GCCL_GIN_NIC=mlx5", "there is no verbs port that is up"},
		{"STUBNIC_FAIL=supported GCCL_GIN_NIC=mlx5", "mlx5_stub is no mlx5 device"},
		{"STUBNIC_FAIL=atomics GCCL_GIN_NIC=mlx5", "mlx5_stub has no atomics"},
		{"STUBNIC_FAIL=iova GCCL_GIN_NIC=mlx5", "mlx5_stub: ibv_reg_mr_iova of 4096 bytes: Invalid argument"},
		{"STUBNIC_FAIL=cq GCCL_GIN_NIC=mlx5", "mlx5_stub: ibv_create_cq: Cannot allocate memory"},
		{"STUBNIC_FAIL=qp GCCL_GIN_NIC=mlx5-relay", "mlx5_stub: ibv_create_qp: Invalid argument"},
		{"STUBNIC_FAIL=init GCCL_GIN_NIC=mlx5", "mlx5_stub: mlx5dv_init_obj: Operation not supported"},
		{"STUBNIC_FAIL=stride GCCL_GIN_NIC=mlx5", "32 entries of 128 bytes"},
		{"STUBNIC_FAIL=cqe GCCL_GIN_NIC=mlx5", "completions of 128 bytes"},
		{"STUBNIC_FAIL=rtr GCCL_GIN_NIC=mlx5", "mlx5_stub: queue pair to RTR: Invalid argument"},
		{"STUBNIC_FAIL=deaf GCCL_GIN_NIC=mlx5", "is the doorbell heard?"},
	} {
		t.Run(c.env, func(t *testing.T) {
			t.Parallel()
			env := append(strings.Fields(c.env), "GCCL_GIN=gdaki,proxy", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=NET", "LD_LIBRARY_PATH="+stub)
			out, err := run(t, suites, env, "2", "contexts")
			kind := "type 2"
			if !strings.Contains(c.env, "FAIL") || !strings.Contains(c.env, "mlx5") {
				kind = "type 3"
			}
			if err != nil || !strings.Contains(out, "ok contexts "+kind) || !strings.Contains(out, c.want) || strings.Contains(out, "stubnic:") ||
				kind == "type 2" && !strings.Contains(out, "kernels: proxy: GCCL_GIN=gdaki,proxy, but GCCL_GIN_NIC=mlx5") {
				t.Errorf("%v, want %q and %s\n%s", err, c.want, kind, out)
			}
		})
	}
}

// A mistake in a kernel fails the communicator of the rank that made it, with a text, and ends the waits of all ranks.
func TestMistakesAreFound(t *testing.T) {
	card := "GCCL_GIN=gdaki GCCL_GIN_NIC=mlx5 LD_LIBRARY_PATH=" + stub
	for _, c := range []struct{ name, env, want string }{
		{"source", "GCCL_GIN=proxy", "its source is in no window"},
		{"destination", "GCCL_GIN=proxy", "its destination is in no window of the peer"},
		{"signal", "GCCL_GIN=proxy", "a signal that its context does not have"},
		{"unaligned", "GCCL_GIN=proxy", "its signal is in no window of the peer"},
		{"source", "GCCL_GIN=gdaki", "local key or range"},
		{"destination", "GCCL_GIN=gdaki", "remote key or range"},
		{"signal", "GCCL_GIN=gdaki", "remote key or range"},
		{"unaligned", "GCCL_GIN=gdaki", "multiple of 8"},
		{"source", card, "local key or range (syndrome 0x04)"},
		{"destination", card, "remote key or range (syndrome 0x13)"},
		{"signal", card, "remote key or range (syndrome 0x13)"},
		{"unaligned", card, "the entry makes no sense (syndrome 0x02)"},
	} {
		found := func(t *testing.T, env []string, args ...string) {
			t.Parallel() // they wait for the watchdog
			out, err := run(t, mistakes, env, args...)
			// ncclRemoteError: the wait ended because the communicator had failed.
			if err != nil || !strings.Contains(out, "rank 0 launch 6") || !strings.Contains(out, "rank 1 launch 6") ||
				!strings.Contains(out, c.want) || strings.Contains(out, "communicator 0") {
				t.Errorf("%v, want %q\n%s", err, c.want, out)
			}
		}
		t.Run(c.name+" "+c.env, func(t *testing.T) { found(t, strings.Fields(c.env), c.name) })
		if c.env != card {
			t.Run(c.name+" "+c.env+" over cuda", func(t *testing.T) { found(t, standIn(t, c.env), "--memory", "cuda", c.name) })
		}
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
