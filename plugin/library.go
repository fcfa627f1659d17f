package plugin

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "library.h"
#include "log.h"

static void call_logger(void *f) { ((void (*)(void *))f)(gccl_plugin_log_function()); }
*/
import "C"

import (
	"sync"
	"unsafe"
)

// Library is an opened library. It stays loaded as long as the process lives: communicators come and go, and NCCL's own
// NCCL_NET_PLUGIN_REF_COUNT=1 does the same.
type Library struct {
	Name   string // for the dynamic loader; "" is the main program
	Path   string // of the file, as far as the loader tells
	handle unsafe.Pointer
}

func (l *Library) String() string {
	switch {
	case l.Name == "":
		return "the main program"
	case l.Path == "":
		return l.Name
	}
	return l.Path
}

var (
	opened   = map[string]*Library{} // by Name
	openedMu sync.Mutex
)

// openLibrary opens a library, or gives the dynamic loader's own words.
func openLibrary(name string) (l *Library, why string) {
	openedMu.Lock()
	defer openedMu.Unlock()
	if l := opened[name]; l != nil {
		return l, ""
	}
	var cname *C.char
	if name != "" {
		cname = C.CString(name)
		defer C.free(unsafe.Pointer(cname))
	}
	var text, path [C.GCCL_PLUGIN_TEXT]C.char
	h := C.gccl_plugin_open(cname, &path[0], &text[0])
	if h == nil {
		return nil, C.GoString(&text[0])
	}
	l = &Library{Name: name, Path: C.GoString(&path[0]), handle: h}
	opened[name] = l
	return l, ""
}

// Symbol is the address of a data symbol, nil without one.
func (l *Library) Symbol(name string) unsafe.Pointer {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.dlsym(l.handle, c)
}

// Table is a plugin's table: the newest of its kind in its library.
type Table struct {
	Kind    Kind
	Version int
	Symbol  string
	Addr    unsafe.Pointer // of the struct, which may be in read-only memory
	Library *Library
}

func (t Table) String() string { return t.Symbol + " of " + t.Library.String() }

// Table looks for the newest table of a kind.
func (l *Library) Table(k Kind) (Table, bool) {
	for _, s := range k.symbols() {
		if p := l.Symbol(s.name); p != nil {
			return Table{k, s.version, s.name, p, l}, true
		}
	}
	return Table{}, false
}

// callLogger gives the log function to a C function that says something, for tests.
func callLogger(f unsafe.Pointer) { C.call_logger(f) }
