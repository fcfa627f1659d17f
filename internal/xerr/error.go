// Package xerr owns the error type of the library and the only list of result
// codes and their texts.
//
// It must not know any other package of the library: everything imports it.
package xerr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// NoRank is the Rank of an error that belongs to no particular rank.
const NoRank = -1

//go:generate go run github.com/gccl/gccl/cmd/gccl-gen result-text --out ../../capi/front/result_text.gen.h

// Error says which call failed, on what, at which rank, why, and what to do.
//
// Make one with New, Wrap or Annotate: they set Rank to NoRank. An Error is not
// changed after it was made; the With methods return a changed copy.
type Error struct {
	Code   Code
	Op     string // the call, as the user knows it: "ncclAllReduce", "bootstrap connect"
	Object string // what it acted on: "communicator 5f3a", "peer 10.0.0.2:4711"
	Rank   int    // the rank it speaks of; NoRank if none
	Text   string // what is wrong, with argument and value
	Cause  error  // what made it fail; nil if this is the first cause
	Hint   string // the likely remedy; empty if there is none
}

// New makes a first cause. The text names argument and value.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Rank: NoRank, Text: sprintf(format, args)}
}

// Wrap makes an error with a cause. Internal is only a guess of the caller: a
// cause that already carries a more exact code keeps it, so that for example a
// remote failure is never re-labelled on its way up.
//
// Wrap never returns nil, also when cause is nil.
func Wrap(code Code, op string, cause error, format string, args ...any) *Error {
	if code == Internal && cause != nil {
		code = CodeOf(cause)
	}
	return &Error{Code: code, Op: op, Rank: NoRank, Text: sprintf(format, args), Cause: cause}
}

// Annotate wraps cause under its own code, adding the call and a text.
//
// Preconditions: cause is not nil.
func Annotate(op string, cause error, format string, args ...any) *Error {
	return Wrap(Internal, op, cause, format, args...)
}

func sprintf(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// WithRank returns a copy that speaks of rank.
func (e *Error) WithRank(rank int) *Error {
	c := *e
	c.Rank = rank
	return &c
}

// WithObject returns a copy that names the object the call acted on.
func (e *Error) WithObject(format string, args ...any) *Error {
	c := *e
	c.Object = sprintf(format, args)
	return &c
}

// WithHint returns a copy with a remedy.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = sprintf(format, args)
	return &c
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, code) true for the code of this error.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Error returns one line:
//
//	call: object, rank 3: text: cause (code text); remedy
//
// The code text and the remedy are said once, however deep the chain is.
func (e *Error) Error() string {
	if e == nil {
		return Success.String()
	}
	var b strings.Builder
	e.write(&b)
	said := oneLine(b.String())
	if text := e.Code.String(); !strings.Contains(said, text) {
		said += " (" + text + ")"
	}
	if h := oneLine(e.hint()); !strings.Contains(said, h) {
		said += "; " + h
	}
	return said
}

// write appends call, object, rank, text and cause.
func (e *Error) write(b *strings.Builder) {
	sep := ""
	put := func(part string) {
		if part != "" {
			b.WriteString(sep)
			b.WriteString(part)
			sep = ": "
		}
	}
	put(e.Op)
	where := e.Object
	if e.Rank != NoRank {
		if where != "" {
			where += ", "
		}
		where += "rank " + strconv.Itoa(e.Rank)
	}
	put(where)
	put(e.Text)
	if e.Cause == nil {
		return
	}
	inner, ok := e.Cause.(*Error)
	if !ok {
		put(e.Cause.Error())
		return
	}
	if inner == nil {
		return
	}
	var c strings.Builder
	inner.write(&c)
	put(c.String())
}

// hint returns the outermost remedy of the chain: the outer call knows more.
func (e *Error) hint() string {
	for e != nil {
		if e.Hint != "" {
			return e.Hint
		}
		var inner *Error
		if e.Cause == nil || !errors.As(e.Cause, &inner) {
			return ""
		}
		e = inner
	}
	return ""
}

// oneLine keeps text of peers and files from breaking the line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// CodeOf returns the code of err. Errors from elsewhere are sorted by what
// broke: a deadline is Timeout, a cancelled wait is InvalidUsage (the caller
// aborted or revoked), a lost connection is Remote, another failed system call
// is System, the rest is Internal.
func CodeOf(err error) Code {
	if err == nil {
		return Success
	}
	var e *Error
	if errors.As(err, &e) {
		if e == nil {
			return Success
		}
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return InvalidUsage
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Remote
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return codeOfErrno(no)
	}
	var t interface{ Timeout() bool }
	if errors.As(err, &t) && t.Timeout() {
		return Timeout
	}
	return Internal
}

// codeOfErrno does not use Errno.Timeout: that also calls EAGAIN a timeout,
// which for a thread or memory shortage is wrong.
func codeOfErrno(no syscall.Errno) Code {
	switch no {
	case syscall.ETIMEDOUT:
		return Timeout
	case syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN:
		return Remote
	}
	return System
}
