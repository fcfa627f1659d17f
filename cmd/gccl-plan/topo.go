package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/topo"
)

// fromTopology makes the world of a topology file: nodes equal machines of it, each a clique, with what the ring search finds.
func fromTopology(file string, nodes int) (m *cost.Machine, cliques *plan.Cliques, err error) {
	if nodes < 1 {
		return nil, nil, fmt.Errorf("--nodes %d is less than 1", nodes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	machine, err := topo.Read(file, text)
	if err != nil {
		return nil, nil, err
	}
	o := topo.DefaultOptions()
	o.Nodes = nodes
	system, err := topo.Build(machine, o)
	if err != nil {
		return nil, nil, err
	}
	d, err := topo.Search(system, o)
	if err != nil {
		return nil, nil, err
	}
	base, err := cost.Builtin("dgx") // the latencies of GPUs; what links carry is the file's
	if err != nil {
		return nil, nil, err
	}
	ranks := len(system.Ranks)
	c := cost.Channels{N: d.Ring.N(), Inside: d.Ring.BWIntra, Latency: d.Ring.LatencyInter * 1e3}
	if nodes > 1 {
		c.Beyond = d.Ring.BWInter
	}
	return base.WithChannels(filepath.Base(file), ranks, c), plan.EqualCliques(ranks*nodes, ranks), nil
}
