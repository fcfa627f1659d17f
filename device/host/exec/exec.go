// Package exec compiles the host executor (C) into Go programs: tests and tools drive it through package world.
//
// The library's front compiles the same C files itself. Nothing here has global state, so two copies never meet.
package exec

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files
*/
import "C"

import _ "github.com/gccl/gccl/device/host/reduce" // the kernels that the executor calls
