package topo

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// What is built is bounded: the ways between all nodes are kept. A rack of 72 GPUs has about 400 nodes.
const (
	maxBuild = 8192 // elements
	maxNodes = 2048
)

// Build makes the graph of a machine. GPUs without a rank are left out, and GPUs that only a network joins to the first rank
// (or to Options.Self): they are other nodes of the job. What the graph needs and the machine does not say is an error that
// names the element (a *FileError).
func Build(m *Machine, o Options) (*System, error) {
	if n := m.Elements(); n > maxBuild {
		return nil, wrongAt(m.pos(), "system", "%d elements; a graph is built of at most %d", n, maxBuild)
	}
	s, err := buildRanks(m, o, nil)
	if err != nil {
		return nil, err
	}
	joined := s.joined(o.Self)
	if len(joined) == len(s.Ranks) {
		return s, nil
	}
	return buildRanks(m, o, joined)
}

// pos is where the machine begins.
func (m *Machine) pos() Pos {
	if len(m.CPUs) == 0 {
		return Pos{}
	}
	return m.CPUs[0].Pos
}

// buildRanks builds with some ranks, or with all (nil).
func buildRanks(m *Machine, o Options, only map[int]bool) (*System, error) {
	b := &builder{sys: &System{Name: m.Name}, only: only}
	for _, c := range m.CPUs {
		if err := b.cpu(c); err != nil {
			return nil, err
		}
	}
	if b.sys.Count(GPUNode) == 0 {
		return nil, wrongAt(m.pos(), "system", "no gpu element with a rank: a skeleton, which needs what the machine itself knows")
	}
	if err := b.nvlinks(); err != nil {
		return nil, err
	}
	if n := b.sys.total(); n > maxNodes {
		return nil, wrongAt(m.pos(), "system", "a graph of %d nodes; at most %d", n, maxNodes)
	}
	b.betweenCPUs()
	flattenSwitches(b.sys)
	b.sys.reweight(o.Measured)
	b.sys.finish()
	b.sys.computePaths(o)
	return b.sys, nil
}

type builder struct {
	sys     *System
	only    map[int]bool  // the ranks to build with; nil: all
	pending []pendingLink // GPU to GPU: the far end may come later in the file
	virtual map[int]*Node // the NIC of interfaces without a PCI device, by host
}

type pendingLink struct {
	dev *Node
	gpu *GPU
	cpu *Node
}

func lacks(p Pos, element, attr string) error {
	return &FileError{File: p.File, Line: p.Line, Element: element, Reason: "attribute " + attr + " is missing"}
}

func wrongAt(p Pos, element, format string, args ...any) error {
	return &FileError{File: p.File, Line: p.Line, Element: element, Reason: fmt.Sprintf(format, args...)}
}

// hashOf makes a number of a hexadecimal text; other texts (publishers redact them) still tell themselves apart.
func hashOf(v string) uint64 {
	h, _ := cutHex(v)
	if n, err := strconv.ParseUint(h, 16, 64); err == nil {
		return n
	}
	if v == "" {
		return 0
	}
	f := fnv.New64a()
	f.Write([]byte(v))
	return f.Sum64()
}

func (b *builder) cpu(c *CPU) error {
	if !c.HasNUMA {
		return lacks(c.Pos, "cpu", "numaid")
	}
	if c.Arch == "" {
		return lacks(c.Pos, "cpu", "arch")
	}
	if c.Arch == "x86_64" {
		switch {
		case c.Vendor == "":
			return lacks(c.Pos, "cpu", "vendor")
		case c.Vendor == "GenuineIntel" && c.Family == Unknown:
			return lacks(c.Pos, "cpu", "familyid")
		case c.Vendor == "GenuineIntel" && c.Model == Unknown:
			return lacks(c.Pos, "cpu", "modelid")
		}
	}
	host := b.sys.host(hashOf(c.HostHash))
	if host >= 1<<(64-hostShift) {
		return wrongAt(c.Pos, "cpu", "more than %d hosts in one system", 1<<(64-hostShift))
	}
	id := MakeID(host, uint64(c.NUMA))
	n := b.sys.node(CPUNode, id)
	if n == nil {
		n = b.sys.add(CPUNode, id)
		n.CPU = &CPUInfo{NUMA: c.NUMA, Arch: c.Arch, Vendor: c.Vendor, Family: c.Family, Model: c.Model, Affinity: c.Affinity}
		n.CPU.setVendor()
	}
	for _, p := range c.PCI {
		if err := b.pci(host, n, n, p); err != nil {
			return err
		}
	}
	for _, nic := range c.NICs {
		v := b.virtual[host]
		if v == nil {
			if b.virtual == nil {
				b.virtual = map[int]*Node{}
			}
			v = b.sys.add(NICNode, MakeID(host, 0))
			b.virtual[host] = v
			connectBoth(n, v, PIX, LocalBW)
		}
		if err := b.nets(host, v, nic); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) pci(host int, cpu, parent *Node, p *PCI) error {
	bus, ok := parseBusID(p.BusID)
	if !ok {
		return wrongAt(p.Pos, "pci", "attribute busid is %q", p.BusID)
	}
	if len(p.GPUs) > 0 && !slices.ContainsFunc(p.GPUs, b.used) {
		return nil
	}
	switch {
	case p.Class == "":
		return lacks(p.Pos, "pci", "class")
	case p.LinkSpeed == "" && !p.HasSpeed:
		return lacks(p.Pos, "pci", "link_speed")
	case p.LinkWidth == Unknown && !p.HasWidth:
		return lacks(p.Pos, "pci", "link_width")
	}
	bw := pciBW(p.LinkSpeed, p.LinkWidth)
	if len(p.GPUs) > 0 {
		for _, g := range p.GPUs {
			if b.used(g) {
				if err := b.gpu(host, cpu, parent, p, bus, g, bw); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if len(p.NICs) > 0 && len(p.PCI) == 0 {
		id := MakeID(host, bus)
		n := b.sys.node(NICNode, id)
		if n == nil {
			n = b.sys.add(NICNode, id)
			connectBoth(n, parent, PIX, bw)
		}
		for _, nic := range p.NICs {
			if err := b.nets(host, n, nic); err != nil {
				return err
			}
		}
		return nil
	}
	id := MakeID(host, bus)
	if b.sys.node(PCINode, id) != nil {
		return wrongAt(p.Pos, "pci", "busid %s stands twice", p.BusID)
	}
	n := b.sys.add(PCINode, id)
	n.PCI = &PCIDevice{BusID: p.BusID, ID: pciID(p)}
	for _, nic := range p.NICs { // a bridge that owns a nic, such as a host bridge in some files
		v := b.sys.add(NICNode, MakeID(host, bus))
		connectBoth(v, n, PIX, LocalBW)
		if err := b.nets(host, v, nic); err != nil {
			return err
		}
	}
	for _, sub := range p.PCI {
		if err := b.pci(host, cpu, n, sub); err != nil {
			return err
		}
	}
	connectBoth(n, parent, PIX, bw)
	return nil
}

func (b *builder) used(g *GPU) bool { return g.Rank >= 0 && (b.only == nil || b.only[g.Rank]) }

// pciID joins the four ids to one number.
func pciID(p *PCI) uint64 {
	var id uint64
	for _, v := range []string{p.Vendor, p.Device, p.SubVendor, p.SubDevice} {
		h, _ := cutHex(v)
		n, _ := strconv.ParseUint(h, 16, 16)
		id = id<<16 | n
	}
	return id
}

// gpu adds a rank, and the device if it is the first rank on it.
func (b *builder) gpu(host int, cpu, parent *Node, p *PCI, bus uint64, g *GPU, bw float64) error {
	switch {
	case g.Dev == Unknown:
		return lacks(g.Pos, "gpu", "dev")
	case g.SM == Unknown:
		return lacks(g.Pos, "gpu", "sm")
	case g.GDR == Unknown:
		return lacks(g.Pos, "gpu", "gdr")
	case b.sys.RankByNumber(g.Rank) != nil:
		return wrongAt(g.Pos, "gpu", "rank %d stands twice", g.Rank)
	}
	id := MakeID(host, bus)
	if g.Part >= 0 { // function numbers end at 7: a partition takes one above them
		id += NodeID(8 + g.Part&7)
	}
	dev := b.sys.node(DEVNode, id)
	if dev == nil {
		dev = b.sys.add(DEVNode, id)
		dev.Dev = &DevInfo{BusID: p.BusID, Dev: g.Dev, SM: g.SM, Part: g.Part}
		connectBoth(dev, parent, PIX, bw)
		for _, other := range b.sys.Nodes[DEVNode] {
			if g.Part >= 0 && other != dev && other.ID&^0xf == id&^0xf {
				connectBoth(dev, other, LOC, partitionBW)
			}
		}
		b.pending = append(b.pending, pendingLink{dev, g, cpu})
	} else if dev.Dev.SM != g.SM || dev.Dev.Dev != g.Dev {
		return wrongAt(g.Pos, "gpu", "two ranks of %s describe it differently (dev %d and %d, sm %d and %d)",
			p.BusID, dev.Dev.Dev, g.Dev, dev.Dev.SM, g.SM)
	}
	n := b.sys.add(GPUNode, MakeID(host, uint64(g.Rank)))
	n.Rank = &Rank{Rank: g.Rank, Node: n, Device: dev, Dev: g.Dev, GDR: g.GDR > 0}
	b.sys.Ranks = append(b.sys.Ranks, n.Rank)
	dev.Dev.Ranks = append(dev.Dev.Ranks, n.Rank)
	connectBoth(n, dev, LOC, LocalBW)
	return nil
}

func (b *builder) nets(host int, nic *Node, e *NIC) error {
	for _, d := range e.Nets {
		if d.Dev == "" || d.IsNet == 0 {
			continue
		}
		dev, err := parseNumber(d.Dev)
		if err != nil || dev < 0 {
			return wrongAt(d.Pos, "net", "attribute dev is %q", d.Dev)
		}
		speed := d.Speed
		if speed <= 0 {
			speed = 10000
		}
		id := MakeID(host, uint64(dev))
		n := b.sys.add(NETNode, id)
		n.Net = &NetInfo{Name: d.Name, Dev: int(dev), BW: float64(speed) / 8000, Latency: d.Latency, Port: d.Port,
			MaxConn: d.MaxConn, GDR: d.GDR == 1, Coll: d.Coll == 1, Rail: d.Rail, Plane: d.Plane, Asic: adapter(host, d, id)}
		connectBoth(n, nic, NET, n.Net.BW)
	}
	return nil
}

// adapter names the physical adapter. A text that is no number tells adapters of different hosts apart (NCCL reads 0 and
// merges them).
func adapter(host int, d *Net, id NodeID) uint64 {
	if d.GUID == "" {
		return uint64(id)
	}
	h, _ := cutHex(d.GUID)
	if n, err := strconv.ParseUint(h, 16, 64); err == nil {
		return n
	}
	return hashOf(fmt.Sprintf("%d %s", host, d.GUID))
}

// nvlinks connects GPUs, when all of them are known.
func (b *builder) nvlinks() error {
	for _, p := range b.pending {
		rate := nvlinkBW(p.dev.Dev.SM)
		if p.gpu.Part >= 0 {
			rate *= partitionNVLink
		}
		for _, l := range p.gpu.NVLinks {
			if l.Count < 0 || l.Count > 1<<16 {
				return wrongAt(l.Pos, "nvlink", "count %d", l.Count)
			}
			bw := rate * float64(l.Count)
			if l.XGMI {
				bw = xgmiBW(p.gpu.GCN) * float64(l.Count)
			}
			if bw == 0 {
				continue
			}
			b.nvlink(p, l, bw)
		}
		if err := b.c2c(p); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) nvlink(p pendingLink, l NVLink, bw float64) {
	host := p.dev.ID.Host()
	bus, _ := parseBusID(l.Target)
	switch {
	case strings.HasPrefix(l.Class, "0x068001"): // POWER: to the CPU
		connectBoth(p.dev, p.cpu, NVL, bw)
	case strings.HasPrefix(l.Class, "0x0680"):
		nvs := b.sys.node(NVSNode, 0) // all switches of the domain are one
		if nvs == nil {
			nvs = b.sys.add(NVSNode, 0)
		}
		connectBoth(p.dev, nvs, NVL, bw)
	default:
		if far := b.sys.node(DEVNode, MakeID(host, bus)); far != nil {
			connect(p.dev, far, NVL, bw)
		}
	}
}

func (b *builder) c2c(p pendingLink) error {
	for _, l := range p.gpu.C2Cs {
		if l.BW < 0 || l.Count < 0 || l.Count > 1<<16 {
			return wrongAt(l.Pos, "c2c", "bw %d, count %d", l.BW, l.Count)
		}
		bw := float64(l.BW) * float64(l.Count) / 1000
		if bw == 0 {
			continue
		}
		if p.gpu.Part < 0 {
			connectBoth(p.dev, p.cpu, C2C, bw)
			continue
		}
		id := p.dev.ID &^ 0xf
		shared := b.sys.node(CXBNode, id)
		if shared == nil {
			shared = b.sys.add(CXBNode, id)
			connectBoth(shared, p.cpu, C2C, bw)
		}
		connectBoth(p.dev, shared, C2C, bw)
	}
	return nil
}
