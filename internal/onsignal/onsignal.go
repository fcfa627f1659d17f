// Package onsignal owns the one signal handler that the library may install, when a setting asks for it: it passes the news on
// and calls the handler that was there before. os/signal does not do: it keeps a signal from the program's own handler.
package onsignal

// #include "handler.h"
import "C"

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

var installed struct {
	mu  sync.Mutex
	sig syscall.Signal
}

// Call has f called, from a goroutine, soon after each signal sig; signals that come close together count once. The handler stays for the
// life of the process, so there is one signal and one f: false says that an earlier call has the handler.
func Call(sig syscall.Signal, f func()) (bool, error) {
	installed.mu.Lock()
	defer installed.mu.Unlock()
	if installed.sig != 0 {
		return false, nil
	}
	fd, err := C.gccl_onsignal_install(C.int(sig))
	if fd < 0 {
		return false, fmt.Errorf("no handler for signal %d: %w", sig, err)
	}
	installed.sig = sig
	file := os.NewFile(uintptr(fd), "signal")
	go func() {
		count := make([]byte, 8)
		for {
			if _, err := file.Read(count); err != nil {
				return
			}
			f()
		}
	}()
	return true, nil
}
