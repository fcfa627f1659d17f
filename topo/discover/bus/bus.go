// Package bus lists the PCI devices of a machine, for package discover. It stands apart because its library brings a good part of the
// standard library with it, HTTP among it, which the communication library does not need: without a list only devices are missing that
// neither the driver nor the network shows.
//
// It must not know what the list is used for.
package bus

import (
	"fmt"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/pcidb"

	"github.com/gccl/gccl/topo/discover"
)

// Devices lists the bus ids of all PCI devices under a root. The database of names is left empty: it would be read from a large
// file, and nobody asks for names.
func Devices(root string) (_ []string, err error) {
	defer func() { // a foreign library on foreign files
		if p := recover(); p != nil {
			err = fmt.Errorf("the PCI library failed: %v", p)
		}
	}()
	info, err := ghw.PCI(ghw.WithChroot(root), ghw.WithDisableTools(), ghw.WithDisableWarnings(), ghw.WithDisableTopology(),
		ghw.WithPCIDB(&pcidb.PCIDB{}))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range info.Devices {
		if id := discover.NormalBusID(d.Address); id != "" {
			out = append(out, id)
		}
	}
	return out, nil
}
