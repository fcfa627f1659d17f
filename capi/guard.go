package main

// #include "core.h"
import "C"

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// guard runs the body of an export. A panic becomes ncclInternalError with a text and the stack in the log; the host
// program does not see it. It must be the only way from C into the library.
func guard(text *C.char, body func() error) (rc C.int32_t) {
	defer func() {
		if p := recover(); p != nil {
			rc = fail(text, panicked(p))
		}
	}()
	if err := body(); err != nil {
		return fail(text, err)
	}
	return C.int32_t(xerr.Success)
}

func panicked(p any) error {
	logger().Error(xlog.Init, "internal error: %v\n%s", p, debug.Stack())
	return xerr.New(xerr.Internal, "core", "unexpected state: %v", p).WithHint("this is a mistake in the library; please report it with the log")
}

// fail is the only place where an error becomes a code and a text.
func fail(text *C.char, err error) C.int32_t {
	code := xerr.CodeOf(err)
	if code <= xerr.Success || code > xerr.Timeout {
		code = xerr.Internal
	}
	putText(text, C.GCCL_TEXT, err.Error())
	return C.int32_t(code)
}

// putText copies s with a closing NUL into room bytes, cut where a character begins.
func putText(dst *C.char, room int, s string) {
	if dst == nil || room < 1 {
		return
	}
	n := min(len(s), room-1)
	for n > 0 && n < len(s) && s[n]&0xc0 == 0x80 {
		n--
	}
	out := unsafe.Slice((*byte)(unsafe.Pointer(dst)), room)
	copy(out, s[:n])
	out[n] = 0
}

func argument(op, format string, args ...any) error {
	return xerr.New(xerr.InvalidArgument, op, "%s", fmt.Sprintf(format, args...))
}
