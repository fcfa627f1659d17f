package topo

// Read reads a topology file: NCCL's format (version 1) and RCCL's (version 2). What an element does not say is Unknown;
// Build refuses what it needs and does not find. Elements that do not belong where they stand are skipped with what is in
// them, as NCCL does. An error is a *FileError.
func Read(file string, data []byte) (*Machine, error) {
	root, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	if root.name != "system" {
		return nil, root.wrong("the root of a topology file is system")
	}
	r := &reader{}
	r.need(root, "version")
	m := &Machine{Version: r.number(root, "version"), Name: root.text("name")}
	if r.err == nil && m.Version != 1 && m.Version != 2 {
		r.fail(root.wrong("version %d; 1 (NCCL) and 2 (RCCL) are known", m.Version))
	}
	for _, k := range root.kids {
		if k.name == "cpu" {
			m.CPUs = append(m.CPUs, r.cpu(k))
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (r *reader) cpu(e *element) *CPU {
	c := NewCPU(r.number(e, "numaid"))
	c.Pos, c.HasNUMA = e.pos(), e.has("numaid")
	c.HostHash, c.Affinity, c.Arch, c.Vendor = e.text("host_hash"), e.text("affinity"), e.text("arch"), e.text("vendor")
	c.Family, c.Model = r.number(e, "familyid"), r.number(e, "modelid")
	for _, k := range e.kids {
		switch k.name {
		case "pci":
			c.PCI = append(c.PCI, r.pci(k))
		case "nic":
			c.NICs = append(c.NICs, r.nic(k))
		}
	}
	return c
}

func (r *reader) pci(e *element) *PCI {
	p := NewPCI(e.text("busid"))
	p.Pos = e.pos()
	if p.BusID == "" {
		r.fail(e.wrong("attribute busid is missing"))
	} else if _, ok := parseBusID(p.BusID); !ok {
		r.fail(e.wrong("attribute busid is %q; domain:bus:device.function in hexadecimal is needed", p.BusID))
	}
	p.Class = e.text("class")
	p.Vendor, p.Device = e.text("vendor"), e.text("device")
	p.SubVendor, p.SubDevice = e.text("subsystem_vendor"), e.text("subsystem_device")
	p.LinkSpeed, p.LinkWidth = e.text("link_speed"), r.number(e, "link_width")
	p.HasSpeed, p.HasWidth = e.has("link_speed"), e.has("link_width")
	for _, k := range e.kids {
		switch k.name {
		case "pci":
			p.PCI = append(p.PCI, r.pci(k))
		case "gpu":
			p.GPUs = append(p.GPUs, r.gpu(k))
		case "nic":
			p.NICs = append(p.NICs, r.nic(k))
		case "pcilink":
			p.Peers = append(p.Peers, k.text("target"))
		}
	}
	return p
}

func (r *reader) gpu(e *element) *GPU {
	g := NewGPU()
	g.Pos = e.pos()
	g.Dev, g.SM, g.GDR, g.Part = r.number(e, "dev"), r.number(e, "sm"), r.number(e, "gdr"), r.number(e, "mlopart")
	g.Rank = r.number(e, "rank") // Unknown is NoRank
	g.GCN, g.Arch = e.text("gcn"), e.text("arch")
	for _, k := range e.kids {
		switch k.name {
		case "nvlink", "xgmi":
			r.need(k, "target", "count")
			if k.name == "nvlink" {
				r.need(k, "tclass")
			}
			target := k.text("target")
			if _, ok := parseBusID(target); !ok {
				r.fail(k.wrong("attribute target is %q; a bus id is needed", target))
			}
			g.NVLinks = append(g.NVLinks, NVLink{Pos: k.pos(), Target: target, Count: r.number(k, "count"),
				Class: k.text("tclass"), XGMI: k.name == "xgmi"})
		case "c2c":
			r.need(k, "bw", "count")
			g.C2Cs = append(g.C2Cs, C2CLink{Pos: k.pos(), BW: r.number(k, "bw"), Count: r.number(k, "count")})
		}
	}
	return g
}

func (r *reader) nic(e *element) *NIC {
	n := &NIC{Pos: e.pos()}
	for _, k := range e.kids {
		if k.name == "net" {
			n.Nets = append(n.Nets, r.net(k))
		}
	}
	return n
}

func (r *reader) net(e *element) *Net {
	n := NewNet(e.text("name"))
	n.Pos, n.Dev, n.GUID = e.pos(), e.text("dev"), e.text("guid")
	if n.Dev != "" {
		if v := r.number(e, "dev"); v < 0 && r.err == nil {
			r.fail(e.wrong("attribute dev is %q; a number of a device is needed", n.Dev))
		}
	}
	n.Speed = max(0, r.number(e, "speed"))
	n.Latency, n.HasLatency = r.decimal(e, "latency"), e.has("latency")
	n.Port, n.HasPort = max(0, r.number(e, "port")), e.has("port")
	n.MaxConn, n.GDR, n.Coll = r.number(e, "maxconn"), r.number(e, "gdr"), r.number(e, "coll")
	n.IsNet, n.GIN, n.RMA = r.number(e, "net"), r.number(e, "gin"), r.number(e, "rma")
	n.Rail, n.Plane, n.Keep = r.number(e, "rail"), r.number(e, "plane"), r.number(e, "keep")
	return n
}

// parseBusID makes a number of the hexadecimal digits of a bus id. NCCL's own bus ids of hidden switches have seven digits of
// domain; the 56 bits that a NodeID has for it are enough for twelve digits and two more.
func parseBusID(v string) (uint64, bool) {
	var id uint64
	digits := 0
	for _, c := range []byte(v) {
		var d byte
		switch {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			d = c - 'A' + 10
		case c == ':' || c == '.':
			continue
		default:
			return 0, false
		}
		id = id<<4 | uint64(d)
		digits++
	}
	return id, digits > 0 && digits <= 14
}
