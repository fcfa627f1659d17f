// Package profiler owns NCCL's profiler plugins: it gives them to the probe of a communicator, whose event points call them
// (device/host/exec/probe.c). The data path sees the newest table only (device/layout/profiler.h); here is one adapter file for
// each version. It must not know communicators beyond what a plugin is told of them.
package profiler

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include <stdlib.h>
#include "adapt.h"
#include "../../device/layout/probe.h"

static profiler_open *const openers[] = {NULL, profiler_open_v1, profiler_open_v2, profiler_open_v3, profiler_open_v4, profiler_open_v5,
                                         profiler_open_v6};

// Gives a plugin to a probe; 0, what its init has returned, or -1 for one plugin too many.
static int attach(gccl_probe *p, int version, const void *table, const profiler_comm *comm, int *mask) {
  if (p->nprofilers == GCCL_PROFILERS) return -1;
  int rc = openers[version](table, comm, mask, &p->profiler[p->nprofilers]);
  if (!rc) p->nprofilers++;
  return rc;
}
static void settle(gccl_probe *p) {
  if (p->settle) p->settle(p);
}
static const char *name_of(const void *table) { return ((const profiler_table_v6 *)table)->name; }
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/plugin"
)

// Comm is what a plugin is told of a communicator.
type Comm struct {
	Name               string
	Hash               uint64
	Nodes, Ranks, Rank int
	Probe              unsafe.Pointer // gccl_probe, without plugins yet
}

// Set is the plugins that settings lead to.
type Set struct{ tables []plugin.Table }

// Find finds plugins; the set may be empty.
func Find(s *param.Settings, log *xlog.Logger) (*Set, error) {
	t, err := plugin.Find(plugin.Profiler, s, log)
	return &Set{t}, err
}

// Empty says whether there are none.
func (s *Set) Empty() bool { return s == nil || len(s.tables) == 0 }

// masks are the plugins' activation masks, one for each table of the process: C memory that is never given back, because a
// plugin may keep its address.
var masks struct {
	sync.Mutex
	of map[unsafe.Pointer]*C.int
}

func maskOf(table unsafe.Pointer) *C.int {
	masks.Lock()
	defer masks.Unlock()
	if masks.of == nil {
		masks.of = map[unsafe.Pointer]*C.int{}
	}
	if masks.of[table] == nil {
		masks.of[table] = (*C.int)(C.calloc(1, C.sizeof_int))
	}
	return masks.of[table]
}

// Attached is a set at work for one communicator.
type Attached struct {
	probe    *C.gccl_probe
	versions []C.int
	name     *C.char
}

// Attach starts the plugins for a communicator. One that fails is left out, and the log says so, as with NCCL.
func (s *Set) Attach(c Comm, log *xlog.Logger) *Attached {
	a := &Attached{probe: (*C.gccl_probe)(c.Probe)}
	if c.Name != "" {
		a.name = C.CString(c.Name)
	}
	plugin.LogTo(log)
	told := C.profiler_comm{name: a.name, hash: C.uint64_t(c.Hash), nodes: C.int(c.Nodes), ranks: C.int(c.Ranks), rank: C.int(c.Rank),
		log: plugin.LogFunction()}
	for _, t := range s.tables {
		switch rc := C.attach(a.probe, C.int(t.Version), t.Addr, &told, maskOf(t.Addr)); rc {
		case 0:
			a.versions = append(a.versions, C.int(t.Version))
			log.Info(xlog.Init, "profiler plugin %s, %s", C.GoString(C.name_of(t.Addr)), t)
		case -1:
			log.Warn(xlog.Init, "profiler plugin %s is left out: there are %d already", t, int(C.GCCL_PROFILERS))
		default:
			log.Warn(xlog.Init, "profiler plugin %s is left out: its init has returned %d", t, int(rc))
		}
	}
	return a
}

// Detach ends the plugins of the communicator. Preconditions: nothing of it is in flight.
func (a *Attached) Detach() {
	if a == nil {
		return
	}
	n := int(a.probe.nprofilers)
	C.settle(a.probe)
	a.probe.nprofilers = 0
	for i := range n {
		C.profiler_close(a.versions[i], &a.probe.profiler[i])
	}
	C.free(unsafe.Pointer(a.name))
	a.name = nil
}
