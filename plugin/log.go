package plugin

/*
#include "log.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/gccl/gccl/internal/xlog"
)

// sink is where the lines of plugins go: they have one log function for the whole process.
var sink atomic.Pointer[xlog.Logger]

// LogTo sends the lines of plugins to a logger.
func LogTo(log *xlog.Logger) {
	sink.Store(log)
	level := C.int(0)
	for n, l := range levels {
		if log.Enabled(l, xlog.All) {
			level = C.int(n)
		}
	}
	C.gccl_plugin_log_limit(level)
}

// LogFunction is the ncclDebugLogger_t for plugins. It may be called from any thread, at any time.
func LogFunction() unsafe.Pointer { return C.gccl_plugin_log_function() }

// levels are ours by the numbers of ncclDebugLogLevel (NCCL 2.30.7, src/include/plugin/nccl_common.h). The subsystems have
// the same bits.
var levels = [...]xlog.Level{xlog.None, xlog.Version, xlog.Warn, xlog.Info, xlog.Debug, xlog.Trace}

//export gcclPluginSay
func gcclPluginSay(level C.int, flags C.ulong, text *C.char) {
	log := sink.Load()
	if log == nil || level <= 0 || int(level) >= len(levels) {
		return
	}
	sub := xlog.Subsys(flags)
	if sub == 0 || sub&(sub-1) != 0 {
		sub = xlog.Net
	}
	switch l := levels[level]; {
	case l <= xlog.Warn:
		log.Warn(sub, "plugin: %s", C.GoString(text))
	case l == xlog.Info:
		log.Info(sub, "plugin: %s", C.GoString(text))
	case l == xlog.Debug:
		log.Debug(sub, "plugin: %s", C.GoString(text))
	default:
		log.Trace(sub, "plugin: %s", C.GoString(text))
	}
}
