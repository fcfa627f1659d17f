package discover

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/gccl/gccl/topo"
)

// Machine writes the facts as a topology: every GPU or instance, without ranks, and the network devices that can carry
// traffic. NUMA nodes come by number, devices as the bus counts them, so that equal machines give equal descriptions.
func (f *Facts) Machine() *topo.Machine {
	b := builder{f: f, m: &topo.Machine{Version: 1}, pci: map[string]*topo.PCI{}}
	for _, n := range f.Nodes {
		b.cpu(n.ID)
	}
	for _, g := range f.GPUs {
		b.gpu(g)
	}
	nets := f.usable()
	for _, n := range nets {
		if n.BusID != "" {
			b.device(n.BusID, "0x020000")
		}
	}
	for dev, n := range nets {
		b.net(dev, n)
	}
	if len(b.m.CPUs) == 0 {
		b.cpu(Unknown)
	}
	for _, c := range b.m.CPUs {
		sortPCI(c.PCI)
	}
	return b.m
}

// usable are the network devices that a job would use: ports of RDMA devices that are up, of the link layer of the fastest as net/ib takes
// them, else interfaces that are up and not made for containers and virtual machines of this host.
func (f *Facts) usable() []NIC {
	var rdma, other []NIC
	for _, n := range f.NICs {
		switch {
		case !n.Up:
		case n.RDMA:
			rdma = append(rdma, n)
		case !slices.ContainsFunc([]string{"docker", "veth", "virbr", "br-", "cni", "tap", "ifb", "dummy"}, func(p string) bool { return strings.HasPrefix(n.Name, p) }):
			other = append(other, n)
		}
	}
	if len(rdma) == 0 {
		return other
	}
	fastest := slices.MaxFunc(rdma, func(a, b NIC) int { return a.Mbps - b.Mbps })
	return slices.DeleteFunc(rdma, func(n NIC) bool { return n.Layer != fastest.Layer })
}

// HostHash tells hosts apart: by their kernel's boot id, and by name for containers that share a kernel but not a name on
// purpose. Empty if neither is known.
func (f *Facts) HostHash() string {
	if f.BootID == "" && f.Host == "" {
		return ""
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", f.Host, f.BootID)
	return fmt.Sprintf("0x%x", h.Sum64())
}

// node is the NUMA node of a device: the only one there is if the device does not say.
func (f *Facts) node(device int) int {
	if device == Unknown && len(f.Nodes) == 1 {
		return f.Nodes[0].ID
	}
	return device
}

type builder struct {
	f   *Facts
	m   *topo.Machine
	pci map[string]*topo.PCI
}

func (b *builder) cpu(node int) *topo.CPU {
	for _, c := range b.m.CPUs {
		if c.NUMA == node {
			return c
		}
	}
	c := topo.NewCPU(node)
	c.Arch, c.Vendor, c.Family, c.Model = b.f.CPU.Arch, b.f.CPU.Vendor, b.f.CPU.Family, b.f.CPU.Model
	c.HostHash = b.f.HostHash()
	for _, n := range b.f.Nodes {
		if n.ID == node {
			c.Affinity = n.CPUs.String()
		}
	}
	b.m.CPUs = append(b.m.CPUs, c)
	return c
}

// device finds or makes a PCI device with the bridges above it. class is that of a device which PCI does not show.
func (b *builder) device(busID, class string) *topo.PCI {
	if p := b.pci[busID]; p != nil {
		return p
	}
	p := topo.NewPCI(busID)
	p.HasSpeed, p.HasWidth, p.LinkWidth, p.Class = true, true, 0, class
	b.pci[busID] = p
	known := b.f.PCI[busID]
	if known == nil {
		c := b.cpu(b.f.node(Unknown))
		c.PCI = append(c.PCI, p)
		return p
	}
	p.Class = fmt.Sprintf("0x%06x", known.Class)
	p.Vendor, p.Device = hex4(known.Vendor), hex4(known.Device)
	p.SubVendor, p.SubDevice = hex4(known.SubVendor), hex4(known.SubDevice)
	p.LinkSpeed, p.LinkWidth = known.Speed, known.Width
	if known.Up != "" {
		up := b.device(known.Up, "0x060400")
		up.PCI = append(up.PCI, p)
	} else {
		c := b.cpu(b.f.node(known.Node))
		c.PCI = append(c.PCI, p)
	}
	return p
}

func hex4(v uint16) string { return fmt.Sprintf("0x%04x", v) }

func (b *builder) gpu(g GPU) {
	if g.BusID == "" {
		return // noted by whoever looks at it: without a place it is not part of the tree
	}
	p := b.device(g.BusID, "0x030200")
	t := topo.NewGPU()
	t.Dev, t.GDR = g.Index, oneIf(b.f.Peers)
	if g.SM > 0 {
		t.SM = g.SM
	}
	for _, l := range g.Links {
		t.NVLinks = append(t.NVLinks, topo.NVLink{Target: l.Target, Count: l.Count, Class: b.f.farClass(l)})
	}
	for _, c := range g.C2C {
		t.C2Cs = append(t.C2Cs, topo.C2CLink{BW: c.MBs, Count: c.Count})
	}
	p.GPUs = append(p.GPUs, t)
}

// farClass is the PCI class at the far end of an NVLink. A switch is often hidden from PCI, in virtual machines always.
func (f *Facts) farClass(l NVLink) string {
	if p := f.PCI[l.Target]; p != nil && !l.Switch {
		return fmt.Sprintf("0x%06x", p.Class)
	}
	for _, g := range f.GPUs {
		if g.BusID == l.Target && !l.Switch {
			return "0x030200"
		}
	}
	return "0x068000"
}

func (b *builder) net(dev int, n NIC) {
	t := topo.NewNet(n.Name)
	t.Dev, t.Speed, t.Port, t.HasPort, t.HasLatency = fmt.Sprint(dev), n.Mbps, n.Port, true, true
	t.GDR = oneIf(n.RDMA && b.f.Peers)
	if n.GUID != "" {
		t.GUID = "0x" + strings.TrimLeft(strings.ReplaceAll(n.GUID, ":", ""), "0")
	}
	var nics *[]*topo.NIC
	if p := b.pci[n.BusID]; p != nil {
		nics = &p.NICs
	} else {
		nics = &b.cpu(b.f.virtualNode()).NICs
	}
	if len(*nics) == 0 {
		*nics = append(*nics, &topo.NIC{})
	}
	(*nics)[0].Nets = append((*nics)[0].Nets, t)
}

// virtualNode is where interfaces without a device hang: the first node, because some node must carry them.
func (f *Facts) virtualNode() int {
	if len(f.Nodes) > 0 {
		return f.Nodes[0].ID
	}
	return Unknown
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sortPCI(list []*topo.PCI) {
	slices.SortFunc(list, func(a, b *topo.PCI) int { return strings.Compare(a.BusID, b.BusID) })
	for _, p := range list {
		sortPCI(p.PCI)
	}
}
