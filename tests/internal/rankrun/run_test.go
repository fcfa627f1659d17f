package rankrun

import (
	"strings"
	"testing"
	"time"
)

// A program that hangs, with a grandchild that holds the pipes, is ended at the deadline; its output is kept.
func TestRunEndsAtDeadline(t *testing.T) {
	p := &Program{Path: "/bin/sh"}
	r := p.Run(t, Spec{Args: []string{"-c", "echo before; sleep 60 & wait"}, Deadline: 300 * time.Millisecond})
	if !r.TimedOut || !r.Failed() {
		t.Errorf("want a timeout, got %v", r)
	}
	if !strings.Contains(r.Stdout, "before") {
		t.Errorf("output before the deadline is lost: %q", r.Stdout)
	}
}

func TestRunReportsCodeAndSignal(t *testing.T) {
	p := &Program{Path: "/bin/sh"}
	if r := p.Run(t, Spec{Args: []string{"-c", "echo out; echo err >&2; exit 3"}}); r.Code != 3 || r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("want code 3 and both outputs, got %v", r)
	}
	if r := p.Run(t, Spec{Args: []string{"-c", "kill -KILL $$"}}); r.Code != -1 || r.Signal.String() != "killed" {
		t.Errorf("want a kill, got %v", r)
	}
}

func TestRunCleansTheEnvironment(t *testing.T) {
	t.Setenv("NCCL_DEBUG", "TRACE")
	t.Setenv("GCCL_CHECK", "0")
	p := &Program{Path: "/bin/sh"}
	r := p.Run(t, Spec{Args: []string{"-c", "echo ${NCCL_DEBUG-none} ${GCCL_CHECK-none} $GCCL_X"}, Env: []string{"GCCL_X=1"}})
	if r.Stdout != "none none 1\n" {
		t.Errorf("environment of the run: %q", r.Stdout)
	}
}
