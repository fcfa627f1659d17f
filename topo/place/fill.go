package place

import "github.com/gccl/gccl/topo"

// Fill completes a description that a user has given by what is seen here, as NCCL does at run time: cloud providers publish
// skeletons, which say how PCI hangs together where a virtual machine hides it, and nothing of GPUs and network devices. What the
// description says stays. Devices that it does not have are left out: it may be of a part of the machine on purpose.
func Fill(m, seen *topo.Machine) {
	here := map[int]*topo.CPU{}
	for _, c := range seen.CPUs {
		here[c.NUMA] = c
	}
	for _, c := range m.CPUs {
		fillCPU(c, seen.CPUs, here[c.NUMA])
	}
	m.Walk(func(_ *topo.CPU, _, p *topo.PCI) {
		if s := seen.FindPCI(p.BusID); s != nil {
			fillPCI(p, s)
		}
	})
	renumber(m)
}

// fillCPU takes the make of the processor from any node, what is a node's own from that node.
func fillCPU(c *topo.CPU, all []*topo.CPU, same *topo.CPU) {
	if len(all) > 0 && c.Arch == "" {
		c.Arch = all[0].Arch
	}
	if len(all) > 0 && c.Arch == all[0].Arch && c.Vendor == "" {
		c.Vendor, c.Family, c.Model = all[0].Vendor, all[0].Family, all[0].Model
	}
	if same != nil && c.Affinity == "" {
		c.Affinity = same.Affinity
	}
}

func fillPCI(p, s *topo.PCI) {
	for _, f := range []struct{ at, from *string }{{&p.Class, &s.Class}, {&p.Vendor, &s.Vendor}, {&p.Device, &s.Device}, {&p.SubVendor, &s.SubVendor}, {&p.SubDevice, &s.SubDevice}} {
		if *f.at == "" {
			*f.at = *f.from
		}
	}
	if !p.HasSpeed {
		p.LinkSpeed, p.HasSpeed = s.LinkSpeed, s.HasSpeed
	}
	if !p.HasWidth {
		p.LinkWidth, p.HasWidth = s.LinkWidth, s.HasWidth
	}
	switch {
	case len(p.GPUs) == 0:
		p.GPUs = s.GPUs
	default:
		for _, g := range p.GPUs {
			fillGPU(g, s.GPUs)
		}
	}
	if len(p.NICs) == 0 {
		p.NICs = s.NICs
	}
}

// fillGPU completes a GPU; its NVLinks are all the file's or all the driver's.
func fillGPU(g *topo.GPU, seen []*topo.GPU) {
	if len(seen) == 0 {
		return
	}
	s := seen[0]
	for _, f := range []struct{ at, from *int }{{&g.Dev, &s.Dev}, {&g.SM, &s.SM}, {&g.GDR, &s.GDR}} {
		if *f.at == topo.Unknown {
			*f.at = *f.from
		}
	}
	if len(g.NVLinks) == 0 {
		g.NVLinks = s.NVLinks
	}
	if len(g.C2Cs) == 0 {
		g.C2Cs = s.C2Cs
	}
}
