package comm

import (
	"fmt"
	"os"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/topo"
)

// obeyGraphFile replaces what the search has found by what the user's file says. The error says why the file cannot be used.
func (c *Comm) obeyGraphFile(m *machine) (*machine, error) {
	name := c.set.Str(param.NCCLGraphFile)
	if name == "" {
		return m, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.set.Describe(param.NCCLGraphFile), err)
	}
	file, err := topo.ReadGraphs(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.set.Describe(param.NCCLGraphFile), err)
	}
	found, given := *m.found, 0
	for _, g := range file.Graphs {
		at := map[int]**topo.Graph{topo.RingID: &found.Ring, topo.TreeID: &found.Tree, topo.NVLSID: &found.NVLS}[g.ID]
		if at == nil {
			continue // of methods that are not here
		}
		if *at, err = g.Resolve(m.found.System); err != nil {
			return nil, fmt.Errorf("%s: %w", c.set.Describe(param.NCCLGraphFile), err)
		}
		given++
	}
	if given == 0 {
		return nil, fmt.Errorf("%s has no ring, tree or NVLS graph", c.set.Describe(param.NCCLGraphFile))
	}
	out := *m
	out.found, out.channels = &found, channelsText(&found)
	return &out, nil
}

// graphText is the decision as a graph file.
func graphText(d *topo.Decision) (string, error) {
	var b strings.Builder
	err := topo.WriteGraphs(&b, d.Ring, d.Tree, d.NVLS)
	return b.String(), err
}
