// Package cuda runs the library's CUDA device over device/fake, a stand-in for the driver: the suites of the host API with CUDA
// memory and streams, and the suites of prog/ for what only a GPU has: user kernels that fill it, hardware queues that
// streams share, graphs, killed peers. The stand-in blocks where the driver blocks, so a deadlock of the real thing is a
// deadline here. On a GPU machine the same programs run over the real driver (tests/gpu).
package cuda

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

var (
	hostapi, own *rankrun.Program
	environment  []string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	fail := func() int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if hostapi, err = rankrun.Build("hostapi", "tests/hostapi/prog"); err != nil {
		return fail()
	}
	defer hostapi.Close()
	if own, err = rankrun.Build("cuda", "tests/cuda/prog"); err != nil {
		return fail()
	}
	defer own.Close()
	dir, err := os.MkdirTemp("", "gccl-cuda-")
	if err != nil {
		return fail()
	}
	defer os.RemoveAll(dir)
	user := filepath.Join(dir, "libuser.so")
	if out, e := exec.Command("gcc", "-O1", "-g", "-Wall", "-Werror", "-shared", "-fPIC", "-o", user, "kernels/kernels.c").CombinedOutput(); e != nil {
		err = fmt.Errorf("kernels/kernels.c: %w\n%s", e, out)
		return fail()
	}
	driver, err := rankrun.FakeDriver()
	if err != nil {
		return fail()
	}
	kernels := filepath.Join(own.LibDir, "libgccl_kernels_cpu.so")
	if _, err = os.Stat(kernels); err != nil {
		err = fmt.Errorf("the kernels are not built for the CPU: %w; run make kernels-cpu", err)
		return fail()
	}
	environment = []string{"LD_LIBRARY_PATH=" + filepath.Dir(driver), "GCCL_CUDA_LIBRARY=" + filepath.Join(filepath.Dir(driver), "libcuda.so.1"),
		"GCCL_FAKE_KERNELS=" + user + ":" + kernels}
	return m.Run()
}

var (
	allRanks    = []int{1, 2, 3, 5, 8}
	allLaunches = []string{"threads", "procs", "group"}
)

type suite struct {
	name     string
	ranks    []int
	launches []string
	args     []string
	env      []string
}

func check(t *testing.T, p *rankrun.Program, s suite) {
	for _, launch := range s.launches {
		for _, n := range s.ranks {
			t.Run(fmt.Sprintf("%s/%s/%d", s.name, launch, n), func(t *testing.T) {
				for _, name := range []string{s.name, s.name + "/" + launch, s.name + "/" + strconv.Itoa(n)} {
					if why := pending[name]; why != "" && os.Getenv("GCCL_TEST_PENDING") == "" {
						t.Skipf("not yet (GCCL_TEST_PENDING=1 runs it): %s", why)
					}
				}
				args := append([]string{"--memory", "cuda", "--suite", s.name, "--launch", launch, "--ranks", strconv.Itoa(n), "--limit", "40"}, s.args...)
				p.Check(t, rankrun.Spec{Args: args, Env: append(append([]string{}, environment...), s.env...), Deadline: 50 * time.Second})
			})
		}
	}
}

// pending are suites that the device does not pass yet. An entry goes with the change that makes it pass.
var pending = map[string]string{}

func TestHostAPI(t *testing.T) {
	// All numbers of ranks as processes; threads and one thread share them between themselves.
	ranks := map[string][]int{"threads": {1, 2, 5}, "procs": allRanks, "group": {3, 8}}
	for _, name := range []string{"numbers", "matrix", "pairs", "large", "groups", "streams", "nonblocking", "making", "children", "ending",
		"windows", "onesided", "memory", "library", "badargs"} {
		for _, launch := range allLaunches {
			check(t, hostapi, suite{name: name, ranks: ranks[launch], launches: []string{launch}})
		}
	}
}

// The per-thread default stream of CUDA, where a test names no stream.
func TestPerThreadStream(t *testing.T) {
	for _, name := range []string{"matrix", "groups", "streams"} {
		check(t, hostapi, suite{name: name, ranks: []int{3}, launches: []string{"threads", "procs"}, args: []string{"--null", "thread"}})
	}
}

// Data moved by copies of the driver: all types, sizes, offsets, in place, groups.
func TestZeroCTA(t *testing.T) {
	env := []string{"NCCL_CTA_POLICY=ZERO"}
	for _, name := range []string{"numbers", "matrix", "pairs", "large", "groups", "streams"} {
		check(t, hostapi, suite{name: name, ranks: []int{1, 5}, launches: []string{"procs"}, env: env})
		check(t, hostapi, suite{name: name, ranks: []int{3}, launches: []string{"threads", "group"}, env: env})
	}
	env = append(env, "GCCL_FAKE_DEVICES=2", "GCCL_TEST_DEVICES=2")
	check(t, hostapi, suite{name: "pairs", ranks: []int{4}, launches: []string{"threads", "procs"}, env: env})
	check(t, own, suite{name: "zerocta", ranks: []int{4}, launches: []string{"threads", "procs"}, env: env})
}

// An executor that waits says for whom.
func TestLateReport(t *testing.T) {
	for _, launch := range []string{"threads", "procs"} {
		r := own.Run(t, rankrun.Spec{Args: []string{"--memory", "cuda", "--suite", "tardy", "--launch", launch, "--ranks", "3", "--limit", "20"},
			Env: append([]string{"NCCL_DEBUG=WARN", "GCCL_LATE=1s"}, environment...), Deadline: 30 * time.Second})
		const want = "rank 0 of 3 waits since 1 s for 2 ranks: 1, 2, in all-reduce of 1000 int32"
		if r.Failed() || strings.Count(r.Stdout+r.Stderr, "waits since") != 1 || !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("%s: want one report, %q: %s", launch, want, r)
		}
	}
}

// A kernel that waits on the GPU is seen too.
func TestLateKernel(t *testing.T) {
	r := own.Run(t, rankrun.Spec{Args: []string{"--memory", "cuda", "--suite", "tardy", "--launch", "procs", "--ranks", "3", "--limit", "20"},
		Env: append([]string{"NCCL_DEBUG=WARN", "GCCL_LATE=1s", "GCCL_CUDA_EXECUTOR=spin"}, environment...), Deadline: 30 * time.Second})
	for _, want := range []string{"(all-reduce of 1000 int32) is late, after", "2 of 3 ranks have not joined it: "} {
		if r.Failed() || strings.Count(r.Stdout+r.Stderr, want) != 1 {
			t.Errorf("want one report with %q: %s", want, r)
		}
	}
}

// The log says what moves data, and why.
func TestExecutorLine(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "data moves by kernels, because the CTA policy is not ZERO"},
		{[]string{"NCCL_CTA_POLICY=ZERO"}, "data moves by copies of the driver, because the CTA policy is ZERO"},
		{[]string{"NCCL_CTA_POLICY=ZERO", "GCCL_CUDA_EXECUTOR=kernels"}, "data moves by kernels, because GCCL_CUDA_EXECUTOR"},
		{[]string{"GCCL_CUDA_EXECUTOR=copies"}, "data moves by copies of the driver, because GCCL_CUDA_EXECUTOR"},
		{[]string{"GCCL_CUDA_EXECUTOR=spin"}, "a kernel of each rank for up to 16384 bytes of a rank for another one and any size in symmetric windows"},
		{[]string{"GCCL_CUDA_EXECUTOR=spin", "GCCL_FAKE_SMS=1"}, "not a kernel of each rank, because 2 ranks share the 1 multiprocessors"},
		{[]string{"GCCL_FAKE_DEVICES=2", "GCCL_TEST_DEVICES=2"}, "a kernel of each rank for up to 32768 bytes"},
		{[]string{"GCCL_FAKE_DEVICES=2", "GCCL_TEST_DEVICES=2", "GCCL_CUDA_EXECUTOR=kernels"}, "executor: one rank for all"},
	} {
		r := own.Run(t, rankrun.Spec{Args: []string{"--memory", "cuda", "--suite", "probe", "--launch", "procs", "--ranks", "2", "--limit", "20"},
			Env: append(append([]string{"NCCL_DEBUG=INFO"}, environment...), c.env...), Deadline: 30 * time.Second})
		if r.Failed() || strings.Count(r.Stdout+r.Stderr, "executor: ") != 2 || !strings.Contains(r.Stdout+r.Stderr, c.want) {
			t.Errorf("%v: want two lines with %q: %s", c.env, c.want, r)
		}
	}
}

func TestCuda(t *testing.T) {
	some := []int{1, 2, 5, 8}
	for _, s := range []suite{
		{name: "probe", ranks: allRanks, launches: allLaunches},
		{name: "fill", ranks: some, launches: allLaunches},
		{name: "between", ranks: some, launches: allLaunches},
		{name: "manystreams", ranks: some, launches: allLaunches},
		{name: "crossed", ranks: some, launches: allLaunches},
		{name: "later", ranks: some, launches: allLaunches},
		{name: "idle", ranks: some, launches: allLaunches},
		{name: "pool", ranks: some, launches: allLaunches},
		{name: "forkjoin", ranks: some, launches: []string{"group"}},
		{name: "replayabort", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "killed", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "bad", ranks: some, launches: allLaunches},
		{name: "signals", ranks: some, launches: allLaunches},
		{name: "signalsapart", ranks: []int{2, 5}, launches: []string{"threads", "group"}},
		{name: "signalabort", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "zerocta", ranks: some, launches: allLaunches},
		{name: "waits", ranks: []int{2, 5}, launches: allLaunches},
		{name: "killedleader", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "calls", ranks: allRanks, launches: []string{"procs", "group"}},
		{name: "footprint", ranks: []int{2, 8}, launches: allLaunches},
	} {
		check(t, own, s)
	}
	// Graphs of ranks of one process wait for each other by words: in as many queues as there are, so not with eight ranks
	// beside other streams (docs/testing.md).
	for _, name := range []string{"capture", "mixing", "firstcapture", "twocomms", "endings", "poolcapture"} {
		check(t, own, suite{name: name, ranks: some, launches: []string{"procs"}})
		check(t, own, suite{name: name, ranks: []int{1, 2, 3, 4}, launches: []string{"threads", "group"}})
	}
}

// Kernels of all ranks that wait for each other. Ranks of one process that share a GPU need streams and hardware queues of their own.
func TestSpin(t *testing.T) {
	env := []string{"GCCL_CUDA_EXECUTOR=spin", "CUDA_DEVICE_MAX_CONNECTIONS=32"}
	for _, s := range []suite{
		{name: "spin", ranks: []int{1, 2, 5}, launches: []string{"procs", "group"}},
		{name: "calls", ranks: []int{2, 8}, launches: []string{"procs", "group"}},
		{name: "footprint", ranks: []int{8}, launches: []string{"procs"}},
		{name: "capture", ranks: []int{3}, launches: []string{"procs", "group"}},
		{name: "mixing", ranks: []int{2}, launches: []string{"procs"}},
		{name: "firstcapture", ranks: []int{3}, launches: []string{"procs"}},
		{name: "twocomms", ranks: []int{2}, launches: []string{"threads", "procs"}},
		{name: "endings", ranks: []int{3}, launches: []string{"procs", "group"}},
		{name: "forkjoin", ranks: []int{5}, launches: []string{"group"}},
		{name: "replayabort", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "killed", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "killedleader", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "waits", ranks: []int{2, 5}, launches: []string{"procs"}},
		{name: "between", ranks: []int{2}, launches: []string{"procs"}},
		{name: "crossed", ranks: []int{2}, launches: []string{"threads", "procs"}},
		{name: "pool", ranks: []int{3}, launches: []string{"procs"}},
		{name: "bad", ranks: []int{3}, launches: []string{"procs"}},
	} {
		s.env = env
		check(t, own, s)
	}
	for _, name := range []string{"numbers", "matrix", "pairs", "groups", "streams", "windows", "nonblocking", "children", "ending"} {
		check(t, hostapi, suite{name: name, ranks: []int{3}, launches: []string{"procs"}, env: env})
	}
	// A GPU and a process for each rank: by default.
	devices := []string{"GCCL_FAKE_DEVICES=3", "GCCL_TEST_DEVICES=3"}
	for _, name := range []string{"numbers", "matrix", "groups", "streams"} {
		check(t, hostapi, suite{name: name, ranks: []int{3}, launches: []string{"procs"}, env: devices})
	}
	env = append(env, devices...)
	for _, name := range []string{"numbers", "matrix"} { // any stream of a GPU that is a thread's own
		check(t, hostapi, suite{name: name, ranks: []int{3}, launches: []string{"threads"}, env: env})
	}
	for _, name := range []string{"spin", "waits", "fill", "manystreams", "mixing"} {
		check(t, own, suite{name: name, ranks: []int{3}, launches: []string{"threads"}, env: env})
	}
	check(t, own, suite{name: "spin", ranks: []int{3}, launches: []string{"procs"}, env: env})
}

// Launches that return when they are done, as for debugging: one rank a process (CUDA_LAUNCH_BLOCKING).
func TestLaunchBlocking(t *testing.T) {
	for _, name := range []string{"fill", "between", "capture"} {
		check(t, own, suite{name: name, ranks: []int{2, 5}, launches: []string{"procs"}, env: []string{"CUDA_LAUNCH_BLOCKING=1"}})
	}
}

// Two hardware queues, as under MPS.
func TestTwoQueues(t *testing.T) {
	for _, name := range []string{"fill", "manystreams", "crossed"} {
		check(t, own, suite{name: name, ranks: []int{3}, launches: allLaunches, env: []string{"CUDA_DEVICE_MAX_CONNECTIONS=2"}})
	}
	check(t, own, suite{name: "capture", ranks: []int{3}, launches: []string{"procs"}, env: []string{"CUDA_DEVICE_MAX_CONNECTIONS=2"}})
	// A graph of each of three ranks of one process would need three; one graph of all of them needs none.
	for name, launches := range map[string][]string{"fewqueues": {"threads", "group"}, "forkjoin": {"group"}} {
		check(t, own, suite{name: name, ranks: []int{3}, launches: launches, env: []string{"CUDA_DEVICE_MAX_CONNECTIONS=2"}})
	}
}

// All streams of a process share a hardware queue: one that waits holds up the others.
func TestOneQueue(t *testing.T) {
	check(t, own, suite{name: "onequeue", ranks: []int{2}, launches: []string{"procs"}, env: []string{"CUDA_DEVICE_MAX_CONNECTIONS=1"}})
}

// Two GPUs: ranks in turn.
func TestDevices(t *testing.T) {
	for _, name := range []string{"probe", "fill", "capture"} {
		check(t, own, suite{name: name, ranks: []int{4}, launches: []string{"threads", "procs"}, env: []string{"GCCL_FAKE_DEVICES=2", "GCCL_TEST_DEVICES=2"}})
	}
}

// Two instances of one GPU have its place on the bus and cannot reach each other: said, and not tried.
func TestInstances(t *testing.T) {
	for _, launch := range []string{"threads", "procs"} {
		if why := pending["instances/"+launch]; why != "" && os.Getenv("GCCL_TEST_PENDING") == "" {
			t.Logf("not yet (GCCL_TEST_PENDING=1 runs it): %s: %s", launch, why)
			continue
		}
		r := own.Run(t, rankrun.Spec{Args: []string{"--memory", "cuda", "--suite", "probe", "--launch", launch, "--ranks", "2", "--limit", "20"},
			Env: append(append([]string{}, environment...), "GCCL_FAKE_DEVICES=mig2", "GCCL_TEST_DEVICES=2"), Deadline: 30 * time.Second})
		if !r.Failed() || r.TimedOut || !strings.Contains(r.Stdout, "cannot access the memory of device") {
			t.Errorf("%s: two instances: %s", launch, r)
		}
	}
}

// Ranks on several hosts, as NCCL_HOSTID says, each in a process of its own: buffers go through host memory and the network.
func TestBetweenHosts(t *testing.T) {
	for _, name := range []string{"numbers", "matrix", "pairs", "large", "groups", "streams", "nonblocking", "children", "ending"} {
		check(t, hostapi, suite{name: name, ranks: []int{5}, launches: []string{"procs"}, args: []string{"--hosts", "3"}})
	}
	for _, name := range []string{"probe", "fill", "between", "manystreams", "idle", "killed"} {
		check(t, own, suite{name: name, ranks: []int{2}, launches: []string{"procs"}, args: []string{"--hosts", "2"}})
	}
	check(t, own, suite{name: "farchunks", ranks: []int{2, 3}, launches: []string{"procs"}, args: []string{"--hosts", "2"}})
}

// What ranks of several hosts cannot do yet is refused, and the communicator goes on.
func TestRefusedBetweenHosts(t *testing.T) {
	check(t, own, suite{name: "farlimits", ranks: []int{2}, launches: []string{"procs"}, args: []string{"--hosts", "2"}})
}
