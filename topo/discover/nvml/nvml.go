// Package nvml asks NVIDIA's management library about GPUs, for package discover. It owns how the library is opened and which of
// its answers are believed.
//
// The library is the driver's and is opened when it is asked for; without a driver the answer is an error that says so. It
// must not know what the facts are used for.
package nvml

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "names.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gccl/gccl/topo/discover"
)

const library = "libnvidia-ml.so.1"

var (
	once   sync.Once
	lib    nv.Interface
	libErr error
)

// GPUs asks the driver of this machine.
func GPUs() ([]discover.GPU, error) {
	once.Do(func() { lib, libErr = open(library) })
	if libErr != nil {
		return nil, libErr
	}
	return Read(lib)
}

// open makes the library's functions reachable. It stays open: a process asks once and drivers are not exchanged under it.
func open(name string) (nv.Interface, error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	runtime.LockOSThread() // dlerror's text belongs to the thread
	defer runtime.UnlockOSThread()
	if why := C.gccl_nvml_bind(s); why != nil {
		return nil, errors.New("no driver: " + C.GoString(why))
	}
	l := nv.New(nv.WithLibraryPath(name))
	if ret := l.Init(); ret != nv.SUCCESS {
		return nil, fmt.Errorf("the driver refuses: nvmlInit: %s", nv.ErrorString(ret))
	}
	return l, nil
}
