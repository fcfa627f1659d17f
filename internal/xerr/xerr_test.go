package xerr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestErrorLine(t *testing.T) {
	root := New(Remote, "read", "connection lost").WithObject("peer 10.0.0.2:4711").WithRank(2)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"all fields", New(InvalidArgument, "ncclAllReduce", "count %d is negative", -1).
			WithObject("communicator %x", 0x5f3a).WithRank(3).WithHint("pass the number of elements"),
			"ncclAllReduce: communicator 5f3a, rank 3: count -1 is negative (invalid argument); pass the number of elements"},
		{"rank 0 is shown", New(Timeout, "init", "no answer").WithRank(0), "init: rank 0: no answer (operation did not finish in time)"},
		{"no args keeps percent signs", New(Internal, "op", "100%"), "op: 100% (internal error of the library)"},
		{"chain says code and hint once", Wrap(Remote, "ncclCommInitRank", root.WithHint("look at its log"), "bootstrap failed").WithRank(0),
			"ncclCommInitRank: rank 0: bootstrap failed: read: peer 10.0.0.2:4711, rank 2: connection lost (a peer process ended or the network failed); look at its log"},
		{"outer hint wins", Wrap(Remote, "a", root.WithHint("inner"), "").WithHint("outer"),
			"a: read: peer 10.0.0.2:4711, rank 2: connection lost (a peer process ended or the network failed); outer"},
		{"foreign cause", Wrap(System, "mmap", syscall.ENOMEM, "window of 4 GiB"), "mmap: window of 4 GiB: cannot allocate memory (a system call failed)"},
		{"stays one line", New(Remote, "op", "peer said a\nb\x00c"), "op: peer said a b c (a peer process ended or the network failed)"},
		{"hint behind a foreign wrapper", Wrap(System, "op", fmt.Errorf("foreign: %w", root.WithHint("look")), ""),
			"op: foreign: read: peer 10.0.0.2:4711, rank 2: connection lost (a peer process ended or the network failed); look (a system call failed)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

type timeoutError struct{ error }

func (timeoutError) Timeout() bool { return true }

func TestCodeOf(t *testing.T) {
	var nilError *Error
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name string
		err  error
		want Code
	}{
		{"nil", nil, Success},
		{"typed nil", nilError, Success},
		{"own", New(InvalidUsage, "op", "x"), InvalidUsage},
		{"own, wrapped by fmt", fmt.Errorf("a: %w", New(Timeout, "op", "x")), Timeout},
		{"own, joined", errors.Join(io.ErrShortWrite, New(Remote, "op", "x")), Remote},
		{"outermost wins", Wrap(System, "op", New(Remote, "op", "x"), ""), System},
		{"bare code", fmt.Errorf("a: %w", InProgress), InProgress},
		{"deadline", context.DeadlineExceeded, Timeout},
		{"i/o deadline", &fs.PathError{Op: "read", Path: "x", Err: os.ErrDeadlineExceeded}, Timeout},
		{"cancelled", ctx.Err(), InvalidUsage},
		{"eof", io.ErrUnexpectedEOF, Remote},
		{"reset", os.NewSyscallError("read", syscall.ECONNRESET), Remote},
		{"errno timeout", syscall.ETIMEDOUT, Timeout},
		{"eagain is no timeout", syscall.EAGAIN, System},
		{"file", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, System},
		{"timeout by interface", timeoutError{errors.New("x")}, Timeout},
		{"unknown", errors.New("x"), Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CodeOf(tt.err); got != tt.want {
				t.Errorf("got %v, want %v", got.Name(), tt.want.Name())
			}
		})
	}
}

func TestWrapKeepsTheCodeOfTheCause(t *testing.T) {
	cause := New(Remote, "read", "gone")
	for _, err := range []*Error{Wrap(Internal, "op", cause, ""), Annotate("op", cause, "x"), Annotate("op", io.EOF, "")} {
		if err.Code != Remote {
			t.Errorf("%v has code %v, want remote", err, err.Code.Name())
		}
	}
	if err := Wrap(Internal, "op", nil, "x"); err.Code != Internal {
		t.Errorf("no cause: code %v", err.Code.Name())
	}
}

func TestIsAndAs(t *testing.T) {
	cause := New(Remote, "read", "gone").WithRank(5)
	err := fmt.Errorf("outer: %w", Wrap(System, "op", cause, ""))
	for target, want := range map[error]bool{Remote: true, System: true, Timeout: false, cause: true, io.EOF: false} {
		if got := errors.Is(err, target); got != want {
			t.Errorf("Is %v: got %v", target, got)
		}
	}
	var e *Error
	if !errors.As(err, &e) || e.Op != "op" || e.Rank != NoRank {
		t.Errorf("As found %+v", e)
	}
}

func TestWithReturnsACopy(t *testing.T) {
	e := New(Internal, "op", "x")
	_, _, _ = e.WithRank(1), e.WithObject("o"), e.WithHint("h")
	if e.Rank != NoRank || e.Object != "" || e.Hint != "" {
		t.Errorf("the original changed: %+v", e)
	}
}

func TestEveryIntegerHasAText(t *testing.T) {
	for i, e := range Entries() {
		if int(e.Code) != i || e.Code.String() != e.Text || e.Code.Name() != e.Name {
			t.Errorf("entry %d is %+v", i, e)
		}
		if strings.ContainsAny(e.Text, "\"\\%\n") {
			t.Errorf("text %q does not fit into a C string as it is", e.Text)
		}
	}
	for _, c := range []Code{-1, 9, math.MaxInt32, math.MinInt32} {
		if c.String() != UnknownText || c.Name() == "" {
			t.Errorf("code %d: %q %q", int(c), c.String(), c.Name())
		}
	}
}
