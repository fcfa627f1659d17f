package main

// #include "core.h"
import "C"

import (
	"sync"
	"time"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
)

var process struct {
	mu  sync.Mutex
	log *xlog.Logger
}

// logger is the log of the process, made at the first need from the environment of that moment.
func logger() *xlog.Logger {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.log == nil {
		set, warnings, _ := comm.LoadSettings() // a bad value is reported by the call that needs it
		cfg, more := set.LogConfig()
		process.log = xlog.New(cfg)
		param.LogWarnings(process.log, append(warnings, more...))
	}
	return process.log
}

// gcclgo_log_reset makes the next communicator read the log's settings again (ncclResetDebugInit).
//
//export gcclgo_log_reset
func gcclgo_log_reset() {
	guard(nil, func() error {
		process.mu.Lock()
		process.log = nil
		process.mu.Unlock()
		if e := engine(); e != nil {
			e.SetLog(logger())
		}
		return nil
	})
}

// gcclgo_late is called by an executor that waits.
//
//export gcclgo_late
func gcclgo_late(p *C.struct_ncclComm, seq C.uint64_t, turn C.int32_t, what *C.char, waited C.uint64_t) {
	guard(nil, func() error {
		c, err := find("late", p)
		if err == nil {
			c.Late(uint64(seq), int(turn), C.GoString(what), time.Duration(waited))
		}
		return nil // one that is just ending needs no report
	})
}

// gcclgo_log writes a line of the front. level is ncclDebugLogLevel.
//
//export gcclgo_log
func gcclgo_log(level, rank C.int32_t, text *C.char) {
	guard(nil, func() error {
		l := logger()
		if rank >= 0 {
			l = l.WithRank(int(rank))
		}
		s := C.GoString(text)
		switch level {
		case 0, 1:
			l.Version(s)
		case 2:
			l.Warn(xlog.Init, "%s", s)
		case 3:
			l.Info(xlog.Init, "%s", s)
		default:
			l.Debug(xlog.Init, "%s", s)
		}
		return nil
	})
}
