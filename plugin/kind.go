package plugin

import (
	"fmt"

	"github.com/gccl/gccl/internal/param"
)

// Kind is what a plugin is for.
type Kind int

// The kinds, in the order of NCCL 2.30.7's src/plugin.
const (
	Net Kind = iota
	CollNet
	Gin
	Rma
	Tuner
	Profiler
	Env
)

// kinds has what NCCL 2.30.7 knows of each: src/plugin/plugin_open.cc for prefixes, src/plugin/*/ for symbols.
var kinds = [...]struct {
	name, prefix, symbol string
	variable             param.ID
	newest, oldest       int
	list                 int  // most entries of the variable; 1: it takes one value. NCCL takes one profiler
	emptyIsNone          bool // NCCL's lists: an empty value is no library, not the default one, and long entries are skipped
}{
	Net:      {"net", "libnccl-net", "ncclNetPlugin_v%d", param.NCCLNetPlugin, 12, 6, 14, true},
	CollNet:  {"collnet", "libnccl-net", "ncclCollNetPlugin_v%d", param.NCCLNetPlugin, 12, 6, 14, true},
	Gin:      {"gin", "libnccl-gin", "ncclGinPlugin_v%d", param.NCCLGinPlugin, 14, 13, 13, true},
	Rma:      {"rma", "libnccl-rma", "ncclRmaPlugin_v%d", param.NCCLRmaPlugin, 14, 13, 13, true},
	Tuner:    {"tuner", "libnccl-tuner", "ncclTunerPlugin_v%d", param.NCCLTunerPlugin, 6, 2, 1, false},
	Profiler: {"profiler", "libnccl-profiler", "ncclProfiler_v%d", param.NCCLProfilerPlugin, 6, 1, 4, false},
	Env:      {"env", "libnccl-env", "ncclEnvPlugin_v%d", param.NCCLEnvPlugin, 2, 1, 1, false},
}

func (k Kind) String() string { return kinds[k].name }

// Variable is the setting that names plugins of the kind.
func (k Kind) Variable() param.ID { return kinds[k].variable }

// symbol is a name under which a table may be exported.
type symbol struct {
	name    string
	version int
}

// symbols lists the names of the kind's tables, newest first. The table ncclGinPlugin_v13 is an rma table as well.
func (k Kind) symbols() []symbol {
	var out []symbol
	for v := kinds[k].newest; v >= kinds[k].oldest; v-- {
		out = append(out, symbol{fmt.Sprintf(kinds[k].symbol, v), v})
	}
	if k == Rma {
		out = append(out, symbol{"ncclGinPlugin_v13", 13})
	}
	return out
}
