// Package place owns where ranks stand on a machine: on GPUs, or on the CPUs of NUMA nodes; how descriptions of one machine by several
// processes are joined; and the search for ranks on CPUs. It must not know who the ranks are or how they talk.
package place

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gccl/gccl/topo"
)

// OnCPUs is where a rank runs whose device is the host itself.
type OnCPUs struct {
	Rank int
	Host string // hash of the host, as its CPUs have it; empty: the only one
	Node int    // NUMA node, or topo.Unknown
}

// Nominal link of a rank on CPUs to its NUMA node: 12 GB/s, about what one core copies. It stands beside links between CPUs of 6
// to 40 GB/s; only that order matters for the channels.
const (
	hostSpeed = "16.0 GT/s PCIe"
	hostWidth = 8
)

// hostDomain is the first PCI domain of the devices that stand for ranks on CPUs; real domains are counted from 0, virtual ones (VMD)
// from 0x10000.
const hostDomain = 0xf000

// Put gives ranks their places on CPUs: one device each on its NUMA node, as the search knows only devices. GPUs lose their ranks.
// The result is for the search and not for files that NCCL reads.
func Put(m *topo.Machine, places []OnCPUs) {
	for _, g := range m.GPUs() {
		g.Rank = topo.NoRank
	}
	if len(m.CPUs) == 0 {
		m.CPUs = append(m.CPUs, topo.NewCPU(topo.Unknown))
	}
	for _, at := range places {
		cpu := at.find(m)
		// 32 devices on a bus, 256 buses in a domain.
		p := topo.NewPCI(fmt.Sprintf("%04x:%02x:%02x.0", hostDomain+at.Rank>>13, at.Rank>>5&0xff, at.Rank&0x1f))
		p.Class, p.LinkSpeed, p.LinkWidth, p.HasSpeed, p.HasWidth = "0x030000", hostSpeed, hostWidth, true, true
		g := topo.NewGPU()
		g.Dev, g.SM, g.GDR, g.Rank = at.Rank, 0, 0, at.Rank
		p.GPUs = []*topo.GPU{g}
		cpu.PCI = append(cpu.PCI, p)
	}
}

// find is the node's CPU, else the first of the host, else the first.
func (at OnCPUs) find(m *topo.Machine) *topo.CPU {
	best, most := m.CPUs[0], 0
	for _, c := range m.CPUs {
		fits := 0
		if at.Host == "" || c.HostHash == at.Host {
			fits = 1
			if c.NUMA == at.Node {
				fits = 2
			}
		}
		if fits > most {
			best, most = c, fits
		}
	}
	return best
}

// IsOnCPUs says whether a bus id stands for a rank on CPUs.
func IsOnCPUs(busID string) bool {
	domain, _, _ := strings.Cut(busID, ":")
	return len(domain) == 4 && domain[:2] == "f0"
}

// Spread gives ranks 0 … n-1 to the GPUs in turn, as programs do that take the rank modulo the number of GPUs.
func Spread(m *topo.Machine, n int) {
	var on []*topo.PCI
	m.Walk(func(_ *topo.CPU, _, p *topo.PCI) {
		for range p.GPUs {
			on = append(on, p)
		}
	})
	whole := m.GPUs()
	for r, g := range whole {
		g.Rank = topo.NoRank
		if r < n {
			g.Rank = r
		}
	}
	for r := len(whole); r < n && len(whole) > 0; r++ {
		again := *whole[r%len(whole)]
		again.Rank = r
		p := on[r%len(whole)]
		p.GPUs = append(p.GPUs, &again)
	}
}

// Copy makes a description of its own: Put and Build change or keep the one they are given.
func Copy(m *topo.Machine) (*topo.Machine, error) {
	var b bytes.Buffer
	if err := m.WriteXML(&b); err != nil {
		return nil, err
	}
	return topo.Read(m.Name, b.Bytes())
}
