// Command gccl-topo shows a machine as the library sees it and the channels that it would use: of this machine or of a topology
// file, as text, JSON or a drawing; and how two files differ.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/discover/bus"
	"github.com/gccl/gccl/topo/discover/nvml"
)

func main() {
	local := &discover.Local{Sources: discover.Sources{GPUs: nvml.GPUs, Devices: bus.Devices}}
	cmd := command(local)
	err := cmd.Execute()
	if errors.Is(err, errDiffer) {
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gccl-topo:", err)
		os.Exit(2)
	}
}
