package main

// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/gccl/gccl/comm"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

var core struct {
	mu     sync.Mutex
	front  *C.gccl_front_api // C memory of the front, valid for the life of the process
	engine *comm.Engine
}

// gcclgo_open is the only symbol that the front looks up. The front's table must live as long as the process.
//
//export gcclgo_open
func gcclgo_open(front *C.gccl_front_api, out *C.gccl_core_api) C.int32_t {
	return guard(nil, func() error {
		if front == nil || out == nil || front.abi != C.GCCL_CORE_ABI || uint32(front.size) < uint32(C.sizeof_gccl_front_api) {
			return argument("open", "the front speaks another version of the core's interface")
		}
		core.mu.Lock()
		defer core.mu.Unlock()
		core.front = front
		if core.engine == nil {
			trace := control.TraceAt(unsafe.Pointer(front.trace))
			core.engine = comm.NewEngine(comm.Options{
				Build: buildID(),
				Log:   logger(),
				Front: comm.Front{Quiesce: quiesce, Retire: retire, CUDA: cuda(front), Trace: trace, AtExit: sync.OnceFunc(func() { trace.AtExit(unsafe.Pointer(C.gccl_bridge_leave)) }), SIMD: strings.Split(C.GoString(front.simd), ",")},
			})
			logger().Version(fmt.Sprintf("GCCL %s (NCCL ABI %s) %s built %s", comm.Version, comm.ABIVersion(), C.GoString(front.path), revision()))
		}
		out.abi, out.size = C.GCCL_CORE_ABI, C.sizeof_gccl_core_api
		C.gccl_bridge_fill(out)
		return nil
	})
}

// gcclgo_leave is called when the process ends in order.
//
//export gcclgo_leave
func gcclgo_leave() {
	guard(nil, func() error {
		engine().AtExit()
		return nil
	})
}

func engine() *comm.Engine {
	core.mu.Lock()
	defer core.mu.Unlock()
	return core.engine
}

func quiesce(c control.Comm, timeout time.Duration) xerr.Code {
	return xerr.Code(C.gccl_bridge_quiesce(core.front, (*C.struct_ncclComm)(c.Pointer()), C.uint64_t(timeout)))
}

func retire(c control.Comm, idle bool) {
	p := (*C.struct_ncclComm)(c.Pointer())
	handles.drop(uint64(p.core))
	if idle {
		C.gccl_bridge_retire(core.front, p)
	}
}

// buildID tells builds apart: ranks must not mix private formats.
func buildID() string {
	id := fmt.Sprintf("api %d core %d shared %d lowered %d", comm.APIVersion, uint32(C.GCCL_CORE_ABI), uint32(C.GCCL_SHARED_VERSION), uint32(C.GCCL_LOWERED_VERSION))
	return id + " " + revision()
}

// revision is the version of the source that the core was built from; "+" stands for changes on top of it.
func revision() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "from unknown source"
	}
	text := ""
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision":
			text = s.Value + text
		case s.Key == "vcs.modified" && s.Value == "true":
			text += "+"
		}
	}
	if text == "" {
		return "from unknown source"
	}
	return text
}

func structOf(p unsafe.Pointer) control.Comm { return control.At(p) }
