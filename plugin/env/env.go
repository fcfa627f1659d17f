// Package env owns NCCL's env plugins: one is loaded for the life of the process and asked for settings by name.
package env

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include <stdlib.h>
#include "abi.h"

static int init_v1(const void *t, int major, int minor, int patch) {
  return ((const env_table_v1 *)t)->init((uint8_t)major, (uint8_t)minor, (uint8_t)patch, "");
}
static int init_v2(const void *t, int major, int minor, int patch, void *log) {
  return ((const env_table_v2 *)t)->init((uint8_t)major, (uint8_t)minor, (uint8_t)patch, "", log);
}
static const char *ask(const void *t, const char *name) { return ((const env_table_v2 *)t)->getEnv(name); }
static void finish(const void *t) { ((const env_table_v2 *)t)->finalize(); }
static const char *name_of(const void *t) { return ((const env_table_v2 *)t)->name; }
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/plugin"
)

// Plugin is an env plugin that has been started.
type Plugin struct{ table plugin.Table }

// Open finds and starts the plugin that settings lead to; nil if there is none. version is NCCL's, as major, minor, patch.
func Open(s *param.Settings, version [3]int, log *xlog.Logger) (*Plugin, error) {
	tables, err := plugin.Find(plugin.Env, s, log)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	p := &Plugin{tables[0]}
	a, b, c := C.int(version[0]), C.int(version[1]), C.int(version[2])
	plugin.LogTo(log)
	var rc C.int
	if p.table.Version == 1 {
		rc = C.init_v1(p.table.Addr, a, b, c)
	} else {
		rc = C.init_v2(p.table.Addr, a, b, c, plugin.LogFunction())
	}
	if rc != 0 {
		return nil, xerr.New(xerr.Code(rc), "env plugin", "%s: its init has returned %d", p, int(rc)).
			WithHint("correct NCCL_ENV_PLUGIN, or set it to none")
	}
	return p, nil
}

func (p *Plugin) String() string {
	return fmt.Sprintf("%s %s", C.GoString(C.name_of(p.table.Addr)), p.table)
}

// Get is the plugin's value of a name; ok is false if it has none. Any goroutine.
func (p *Plugin) Get(name string) (value string, ok bool) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	v := C.ask(p.table.Addr, n)
	if v == nil {
		return "", false
	}
	return C.GoString(v), true
}

// Close ends it: nobody may ask any more.
func (p *Plugin) Close() { C.finish(p.table.Addr) }
