package main

// #include "core.h"
import "C"

import (
	"sync"

	"github.com/gccl/gccl/internal/xlog"
)

var process struct {
	mu  sync.Mutex
	log *xlog.Logger
}

// logger is the log of the process, made at the first line.
func logger() *xlog.Logger {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.log == nil {
		process.log = xlog.New(logConfig())
	}
	return process.log
}

//export gcclgo_log_reset
func gcclgo_log_reset() {
	guard(nil, func() error { return nil })
}

//export gcclgo_log
func gcclgo_log(level, rank C.int32_t, text *C.char) {
	guard(nil, func() error {
		l := logger()
		if rank >= 0 {
			l = l.WithRank(int(rank))
		}
		s := C.GoString(text)
		switch {
		case level <= 2: // NCCL_LOG_WARN
			l.Warn(xlog.All, "%s", s)
		case level == 3:
			l.Info(xlog.Init, "%s", s)
		default:
			l.Debug(xlog.Init, "%s", s)
		}
		return nil
	})
}
