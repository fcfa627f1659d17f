package place

import (
	"fmt"
	"strings"

	"github.com/gccl/gccl/topo"
)

// OnGPU is a rank on a GPU. Several ranks may share one.
type OnGPU struct {
	Rank        int
	Host, BusID string
}

// PutOnGPUs gives ranks their GPUs. The error names a rank whose GPU the description does not have.
func PutOnGPUs(m *topo.Machine, places []OnGPU) error {
	for _, g := range m.GPUs() {
		g.Rank = topo.NoRank
	}
next:
	for _, at := range places {
		p := at.find(m)
		if p == nil || len(p.GPUs) == 0 {
			return fmt.Errorf("rank %d is on a GPU at %s, which the description of the machine does not have", at.Rank, at.BusID)
		}
		for _, g := range p.GPUs {
			if g.Rank == topo.NoRank {
				g.Rank = at.Rank
				continue next
			}
		}
		shared := *p.GPUs[0]
		shared.Rank = at.Rank
		p.GPUs = append(p.GPUs, &shared)
	}
	return nil
}

// find is the PCI device on the host, or that of a description without hosts.
func (at OnGPU) find(m *topo.Machine) *topo.PCI {
	var found *topo.PCI
	m.Walk(func(c *topo.CPU, _, p *topo.PCI) {
		if strings.EqualFold(p.BusID, at.BusID) && (c.HostHash == at.Host || c.HostHash == "" || at.Host == "") {
			found = p
		}
	})
	return found
}

// Veto makes a topo.Options.P2PVeto of the pairs of bus ids between which drivers refuse direct access; nil if there are none.
func Veto(refused [][2]string) func(from, to *topo.Rank) bool {
	if len(refused) == 0 {
		return nil
	}
	pairs := map[[2]string]bool{}
	for _, p := range refused {
		pairs[p] = true
	}
	return func(from, to *topo.Rank) bool { return pairs[[2]string{from.Device.Dev.BusID, to.Device.Dev.BusID}] }
}
