// Package late tests what the library says of operations that do not end, in its log, at a signal and to gccl-top, through the public C
// interface and the built commands.
//
// It looks for the built library in $GCCL_LIB_DIR, or build/lib, and fails when it is not there.
package late

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/tests/internal/rankrun"
)

// patience is for slow machines: nothing here takes more than some seconds.
const patience = 40 * time.Second

var program string

func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	lib, err := rankrun.LibDir()
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "gccl-late-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "late")
	out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I../../include", "prog/late.c", "-o", program,
		"-L"+lib, "-lnccl", "-Wl,-rpath,"+lib).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	return m.Run(), nil
}

// job is a run of the program.
type job struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	dir    string // of the sockets
	mu     sync.Mutex
	stdout []string
	stderr []string
	ended  chan error
}

func start(t *testing.T, env []string, args ...string) *job {
	t.Helper()
	j := &job{t: t, cmd: exec.Command(program, args...), dir: filepath.Join(t.TempDir(), "top"), ended: make(chan error, 1)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NCCL_") && !strings.HasPrefix(v, "GCCL_") {
			j.cmd.Env = append(j.cmd.Env, v)
		}
	}
	j.cmd.Env = append(append(j.cmd.Env, "GCCL_TOP_DIR="+j.dir), env...)
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := j.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	j.in = in
	var readers sync.WaitGroup
	for _, s := range []struct {
		open  func() (io.ReadCloser, error)
		lines *[]string
	}{{j.cmd.StdoutPipe, &j.stdout}, {j.cmd.StderrPipe, &j.stderr}} {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		readers.Add(1)
		go func() {
			defer readers.Done()
			for sc := bufio.NewScanner(r); sc.Scan(); {
				j.mu.Lock()
				*s.lines = append(*s.lines, sc.Text())
				j.mu.Unlock()
			}
		}()
	}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-j.cmd.Process.Pid, syscall.SIGKILL) })
	go func() {
		readers.Wait()
		j.ended <- j.cmd.Wait()
	}()
	return j
}

// lines gives those that fit a pattern.
func (j *job) lines(from *[]string, pattern string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	re := regexp.MustCompile(pattern)
	var out []string
	for _, l := range *from {
		if re.MatchString(l) {
			out = append(out, l)
		}
	}
	return out
}

// await waits for n lines.
func (j *job) await(from *[]string, n int, pattern string) []string {
	j.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := j.lines(from, pattern)
		if len(got) >= n {
			return got
		}
		if time.Now().After(end) {
			j.t.Fatalf("no %d lines like %q:\n%s\n%s", n, pattern, strings.Join(j.stdout, "\n"), strings.Join(j.stderr, "\n"))
		}
	}
}

// pids waits until all ranks have said who they are.
func (j *job) pids(n int) map[int]int {
	j.t.Helper()
	out := map[int]int{}
	for _, l := range j.await(&j.stdout, n, `^rank \d+ pid \d+$`) {
		var r, p int
		if _, err := fmt.Sscanf(l, "rank %d pid %d", &r, &p); err != nil {
			j.t.Fatal(err)
		}
		out[r] = p
	}
	return out
}

// finish lets the absent rank go on and expects a good end.
func (j *job) finish() {
	j.t.Helper()
	if _, err := j.in.Write([]byte("x")); err != nil {
		j.t.Fatal(err)
	}
	j.end()
}

func (j *job) end() {
	j.t.Helper()
	select {
	case err := <-j.ended:
		if err != nil {
			j.t.Errorf("%v\n%s", err, strings.Join(j.stderr, "\n"))
		}
	case <-time.After(patience):
		j.t.Fatalf("it does not end:\n%s", strings.Join(j.stderr, "\n"))
	}
	if left, _ := filepath.Glob(filepath.Join(j.dir, "*")); len(left) != 0 {
		j.t.Errorf("left behind: %v", left)
	}
}

const late = `warn COLL .*collective 4 \(all-reduce of 1000 float32\) is late, after \d+s: `

// One process of those that wait says who is missing; the others say nothing.
func TestAbsentRank(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     []string
		args    []string
		absent  []int // ranks of the absent process
		speaker int   // lowest rank of the process that reports
	}{
		{"processes", nil, []string{"4", "2"}, []int{2}, 0},
		{"first", nil, []string{"3", "0"}, []int{0}, 1},
		{"one thread", nil, []string{"6", "2", "2"}, []int{2, 3}, 0},
		{"hosts", []string{"HOSTS=2"}, []string{"4", "1"}, []int{1}, 0},
		{"every rank a host", []string{"HOSTS=3"}, []string{"3", "0"}, []int{0}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ranks, _ := strconv.Atoi(c.args[0])
			j := start(t, append(c.env, "GCCL_LATE=1s"), c.args...)
			pids := j.pids(ranks)
			got := j.await(&j.stderr, 1, late)[0]
			want := fmt.Sprintf("%d of %d ranks have not joined it: ", len(c.absent), ranks)
			for i, r := range c.absent {
				if i > 0 {
					want += "; "
				}
				want += fmt.Sprintf(`rank %d of %d \(host [^,]+, pid %d\) finished 3, its process is alive`, r, ranks, pids[r])
			}
			if !regexp.MustCompile(late + want + "$").MatchString(got) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			j.finish()
			seen := map[string]bool{}
			for _, l := range j.lines(&j.stderr, "is late") { // a slow machine comes to the second time
				pid := regexp.MustCompile(`\] [^ ]+:(\d+) `).FindStringSubmatch(l)
				if len(pid) != 2 || pid[1] != strconv.Itoa(pids[c.speaker]) {
					t.Errorf("process %d is to speak: %s", pids[c.speaker], l)
				}
				after := regexp.MustCompile(`after \d+s`).FindString(l)
				if seen[after] {
					t.Errorf("twice: %s", l)
				}
				seen[after] = true
			}
		})
	}
}

// A rank whose process is stopped is named as that, also when it was the one to speak.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	j := start(t, []string{"GCCL_LATE=1s"}, "3", "2")
	pids := j.pids(3)
	if err := syscall.Kill(pids[2], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	j.await(&j.stderr, 1, late+`.*rank 2 of 3 .* finished 3, its process is stopped`)
	if err := syscall.Kill(pids[2], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	j.finish()
}

// At the signal every process says what it is doing, and the program's own handler is called.
func TestSignal(t *testing.T) {
	t.Parallel()
	j := start(t, []string{"GCCL_LATE=0", "GCCL_REPORT_SIGNAL=USR2"}, "3", "1")
	pids := j.pids(3)
	waits := func(r int) string {
		return fmt.Sprintf(`report: rank %d of 3 .* has finished collective 3 and is in 4 \(all-reduce of 1000 float32\): `+
			`1 of 3 ranks have not joined it: rank 1 of 3 \(.*\) finished 3, its process is alive$`, r)
	}
	for r, want := range map[int]string{0: waits(0), 2: waits(2), 1: `report: rank 1 of 3 .* has finished collective 3, none is in flight$`} {
		for n := 1; ; n++ { // rank 0 and 2 may not be in the collective yet
			before := len(j.lines(&j.stderr, fmt.Sprintf("report: rank %d ", r)))
			if err := syscall.Kill(pids[r], syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			got := j.await(&j.stderr, before+1, fmt.Sprintf("report: rank %d ", r))
			if regexp.MustCompile(want).MatchString(got[len(got)-1]) {
				break
			}
			if n == 100 {
				t.Fatalf("got  %s\nwant %s", got[len(got)-1], want)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	j.finish()
	if got := j.lines(&j.stdout, "^handled [1-9]"); len(got) != 3 {
		t.Errorf("the handler of the program: %v", j.lines(&j.stdout, "handled"))
	}
}

// A healthy run says nothing.
func TestHealthyRun(t *testing.T) {
	t.Parallel()
	j := start(t, []string{"GCCL_LATE=30s", "GCCL_REPORT_SIGNAL=USR2"}, "4", "-1")
	j.end()
	if got := j.lines(&j.stderr, "."); len(got) != 0 {
		t.Errorf("in the log: %s", strings.Join(got, "\n"))
	}
}

// gccl-top sees all ranks, how far they are, and the one that the others wait for.
func TestTop(t *testing.T) {
	t.Parallel()
	testTop(t)
}

// The same of ranks on CUDA, over the stand-in for the driver: how far their streams are.
func TestTopCUDA(t *testing.T) {
	t.Parallel()
	cuda, err := rankrun.FakeCUDA()
	if err != nil {
		t.Fatal(err)
	}
	testTop(t, append(cuda, "GCCL_DEVICE=cuda")...)
}

func testTop(t *testing.T, env ...string) {
	lib, err := rankrun.LibDir()
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(lib, "..", "bin", "gccl-top")
	j := start(t, append(env, "GCCL_LATE=0"), "4", "2", "2")
	pids := j.pids(4)
	var v struct {
		Communicators []struct {
			ID      string
			Ranks   int
			Members []struct {
				Rank, PID int
				Asked     bool
				Finished  uint64
				Running   uint64
				What      string
				Straggler bool
				Process   string
			}
		}
		Problems []string
	}
	ask := func() string {
		out, err := exec.Command(top, "--once", "--json", "--interval", "100ms", "--dir", j.dir).Output()
		if err != nil {
			t.Fatalf("%v: make build", err)
		}
		v.Communicators = nil
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	right := func() bool {
		if len(v.Communicators) != 1 || v.Communicators[0].Ranks != 4 || len(v.Communicators[0].Members) != 4 || len(v.Problems) != 0 {
			return false
		}
		for r, m := range v.Communicators[0].Members {
			running := uint64(4)
			if r >= 2 {
				running = 0
			}
			if m.Rank != r || m.PID != pids[r] || !m.Asked || m.Finished != 3 || m.Running != running || m.Straggler != (r >= 2) {
				return false
			}
			if running != 0 && m.What != "all-reduce of 1000 float32" {
				return false
			}
		}
		return true
	}
	text := ""
	for end := time.Now().Add(patience); ; { // the others may not be in the collective yet
		if text = ask(); right() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("gccl-top says %s", text)
		}
	}
	j.finish()
	if ask(); len(v.Communicators) != 0 {
		t.Errorf("after the end: %+v", v)
	}
}

// With GCCL_TOP=0 there is no socket.
func TestTopOff(t *testing.T) {
	t.Parallel()
	j := start(t, []string{"GCCL_TOP=0"}, "2", "1")
	j.pids(2)
	if _, err := os.Stat(j.dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
	j.finish()
}
