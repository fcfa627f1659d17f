package place

import (
	"fmt"
	"strings"

	"github.com/gccl/gccl/topo"
)

// Merge adds to a description what another process of the same host sees besides: containers show each process its own devices.
func Merge(m, other *topo.Machine) {
	for _, c := range other.CPUs {
		at := findCPU(m, c)
		if at == nil {
			m.CPUs = append(m.CPUs, c)
			continue
		}
		at.PCI = mergePCI(at.PCI, c.PCI)
		at.NICs = mergeNICs(at.NICs, c.NICs)
	}
	renumber(m)
}

// renumber gives the network devices of a host numbers of their own again if two have one.
func renumber(m *topo.Machine) {
	var all []*topo.Net
	add := func(nics []*topo.NIC) {
		for _, nic := range nics {
			all = append(all, nic.Nets...)
		}
	}
	m.Walk(func(_ *topo.CPU, _, p *topo.PCI) { add(p.NICs) })
	for _, c := range m.CPUs {
		add(c.NICs)
	}
	seen, twice := map[string]bool{}, false
	for _, n := range all {
		twice = twice || n.Dev != "" && seen[n.Dev]
		seen[n.Dev] = true
	}
	if !twice {
		return
	}
	for i, n := range all {
		n.Dev = fmt.Sprint(i)
	}
}

func findCPU(m *topo.Machine, c *topo.CPU) *topo.CPU {
	for _, at := range m.CPUs {
		if at.NUMA == c.NUMA && at.HostHash == c.HostHash {
			return at
		}
	}
	return nil
}

func mergePCI(into, from []*topo.PCI) []*topo.PCI {
next:
	for _, p := range from {
		for _, at := range into {
			if strings.EqualFold(at.BusID, p.BusID) {
				at.PCI = mergePCI(at.PCI, p.PCI)
				at.NICs = mergeNICs(at.NICs, p.NICs)
				if len(at.GPUs) == 0 {
					at.GPUs = p.GPUs
				}
				continue next
			}
		}
		into = append(into, p)
	}
	return into
}

// mergeNICs joins network devices by name and port.
func mergeNICs(into, from []*topo.NIC) []*topo.NIC {
	for _, nic := range from {
	net:
		for _, n := range nic.Nets {
			for _, have := range into {
				for _, h := range have.Nets {
					if h.Name == n.Name && h.Port == n.Port {
						continue net
					}
				}
			}
			if len(into) == 0 {
				into = append(into, &topo.NIC{})
			}
			into[0].Nets = append(into[0].Nets, n)
		}
	}
	return into
}
