// Package tuner owns NCCL's tuner plugins: one is loaded, started for a communicator and asked with tables of costs. It must
// not know what a cost is for, nor what becomes of the answers.
package tuner

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include "adapt.h"

static tuner_open *const openers[] = {NULL, NULL, tuner_open_v2, tuner_open_v3, tuner_open_v4, tuner_open_v5, tuner_open_v6};

static int open_tuner(int version, const void *table, const tuner_comm *c, tuner *out) { return openers[version](table, c, out); }
static int ask(const tuner *t, int coll, size_t bytes, float *costs, int *channels) {
  return t->ask(t, coll, bytes, (float(*)[TUNER_PROTOS])costs, channels);
}
static int close_tuner(const tuner *t) { return t->close(t); }
static const char *name_of(const void *table) { return ((const tuner_table_v6 *)table)->name; }
*/
import "C"

import (
	"fmt"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/plugin"
)

// Costs is a table of NCCL's: predicted microseconds by algorithm (tree, ring, collnet direct and chain, NVLS, NVLS tree, PAT) and
// protocol (LL, LL128, simple); -1 where a way cannot be taken.
type Costs [C.TUNER_ALGOS][C.TUNER_PROTOS]float32

// Comm is what a tuner is told of a communicator. Domains are sets of ranks that NVLink joins.
type Comm struct {
	Hash                                   uint64
	Ranks, Nodes                           int
	Domains, SmallestDomain, LargestDomain int
}

// Plugin is a tuner that is loaded.
type Plugin struct{ table plugin.Table }

// Find finds the tuner that settings lead to; nil if there is none.
func Find(s *param.Settings, log *xlog.Logger) (*Plugin, error) {
	t, err := plugin.Find(plugin.Tuner, s, log)
	if err != nil || len(t) == 0 {
		return nil, err
	}
	return &Plugin{t[0]}, nil
}

// String names the plugin for messages; ID for comparison with that of other ranks.
func (p *Plugin) String() string { return fmt.Sprintf("%s (%s)", p.ID(), p.table.Library) }
func (p *Plugin) ID() string     { return C.GoString(C.name_of(p.table.Addr)) + " " + p.table.Symbol }

// Tuner is a plugin at work for a communicator. One call at a time.
type Tuner struct {
	p *Plugin
	t C.tuner
	// ConstantsChanged: the plugin has changed constants of NCCL's model, which has no effect.
	ConstantsChanged bool
}

// Open starts the plugin for a communicator.
func (p *Plugin) Open(c Comm, log *xlog.Logger) (*Tuner, error) {
	plugin.LogTo(log)
	told := C.tuner_comm{hash: C.uint64_t(c.Hash), ranks: C.size_t(c.Ranks), nodes: C.size_t(c.Nodes), log: plugin.LogFunction(),
		nvl: C.tuner_nvl_v5{C.int(c.Domains), C.int(c.SmallestDomain), C.int(c.LargestDomain)}}
	t := &Tuner{p: p}
	if rc := C.open_tuner(C.int(p.table.Version), p.table.Addr, &told, &t.t); rc != 0 {
		return nil, fmt.Errorf("its init has returned %d", int(rc))
	}
	t.ConstantsChanged = t.t.constants_changed != 0
	return t, nil
}

// Ask asks about a collective (ncclFunc_t) of so many bytes. The plugin changes the costs; channels is 0 if it has no wish.
func (t *Tuner) Ask(coll int, bytes int64, costs *Costs) (channels int, err error) {
	var ch C.int
	if rc := C.ask(&t.t, C.int(coll), C.size_t(bytes), (*C.float)(&costs[0][0]), &ch); rc != 0 {
		return 0, fmt.Errorf("its getCollInfo has returned %d", int(rc))
	}
	return int(ch), nil
}

// Close ends it.
func (t *Tuner) Close() { C.close_tuner(&t.t) }
