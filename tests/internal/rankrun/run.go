package rankrun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Spec says how to run a program.
type Spec struct {
	Args     []string
	Env      []string      // added to an environment without NCCL_, GCCL_ and LD_ variables
	Wrap     []string      // a command that gets the program and its arguments appended, such as unshare
	Dir      string        // working directory; the test's own when empty
	Deadline time.Duration // 60 s when 0
}

// Result is what a run left behind.
type Result struct {
	Stdout, Stderr string
	Code           int // exit code; -1 after a signal
	Signal         syscall.Signal
	TimedOut       bool
	Elapsed        time.Duration
}

// Failed tells whether anything but a clean end was seen.
func (r Result) Failed() bool { return r.TimedOut || r.Code != 0 }

func (r Result) String() string {
	how := fmt.Sprintf("exit code %d", r.Code)
	if r.TimedOut {
		how = "killed at the deadline"
	} else if r.Code < 0 {
		how = "ended by " + r.Signal.String()
	}
	return fmt.Sprintf("%s after %.2f s\n%s%s", how, r.Elapsed.Seconds(), r.Stdout, tail(r.Stderr, 6000))
}

func tail(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	if s != "" {
		s = "stderr:\n" + s
	}
	return s
}

// lockedBuffer is written by the command's copiers and read after a kill.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func cleanEnv(extra []string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "NCCL_") || strings.HasPrefix(kv, "GCCL_") || strings.HasPrefix(kv, "LD_") {
			continue
		}
		env = append(env, kv)
	}
	return append(env, extra...)
}

// Run runs the program in a process group of its own. At the deadline the state of every process of the group goes
// to the test's log, and the group is killed.
func (p *Program) Run(t testing.TB, s Spec) Result {
	t.Helper()
	argv := append(append(append([]string{}, s.Wrap...), p.Path), s.Args...)
	if s.Deadline == 0 {
		s.Deadline = 60 * time.Second
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = cleanEnv(s.Env)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second // a grandchild that keeps a pipe open does not hold up the test
	var stdout, stderr lockedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	pgid := cmd.Process.Pid
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	r := Result{}
	var err error
	timer := time.NewTimer(s.Deadline)
	defer timer.Stop()
	select {
	case err = <-done:
	case <-timer.C:
		r.TimedOut = true
		t.Logf("deadline of %v is over; processes of the group:\n%s", s.Deadline, groupState(pgid))
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
		err = <-done
	}
	_ = syscall.Kill(-pgid, syscall.SIGKILL) // what the program left behind
	r.Elapsed = time.Since(start)
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.Code = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.Signal = ws.Signal()
		}
	} else if err != nil && !r.TimedOut && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return r
}

// Check runs the program and fails the test when it did not end cleanly.
func (p *Program) Check(t testing.TB, s Spec) Result {
	t.Helper()
	r := p.Run(t, s)
	if r.Failed() {
		t.Errorf("%s: %s", strings.Join(append([]string{filepath.Base(p.Path)}, s.Args...), " "), r)
	}
	return r
}

// groupState lists the threads of a process group with what the kernel tells about each.
func groupState(pgid int) string {
	var b strings.Builder
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		// "pid (name) state ppid pgrp …": the name may hold anything, so look behind the last bracket.
		rest := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(rest) < 3 || rest[2] != strconv.Itoa(pgid) {
			continue
		}
		dir := filepath.Dir(f)
		fmt.Fprintf(&b, "process %s state %s\n", filepath.Base(dir), rest[0])
		tasks, _ := filepath.Glob(dir + "/task/*")
		for _, task := range tasks {
			comm, _ := os.ReadFile(task + "/comm")
			wchan, _ := os.ReadFile(task + "/wchan")
			call, _ := os.ReadFile(task + "/syscall")
			fmt.Fprintf(&b, "  thread %s %s waits in %s, system call %s\n", filepath.Base(task), bytes.TrimSpace(comm), wchan, bytes.TrimSpace(call))
		}
	}
	return b.String()
}
