package topo

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// What the reader of NCCL 2.30.7 takes (shared/topo/FORMAT.md, section 1): values under 254 characters, one space before
// an attribute, no line break in a tag, no entities, 256 elements.
const (
	MaxElements = 256
	maxValue    = 253
)

// WriteXML writes the machine so that NCCL's reader takes it: a value that it could not read is shortened or, in an affinity,
// left out, and characters that need entities become "_". More than MaxElements elements are written nevertheless, because our
// reader has no such limit: see Machine.Elements.
func (m *Machine) WriteXML(w io.Writer) error {
	x := &xmlWriter{}
	version := m.Version
	if version == 0 {
		version = 1
	}
	x.open("system", num("version", version), opt("name", m.Name))
	for _, c := range m.CPUs {
		x.cpu(c)
	}
	x.close()
	_, err := w.Write(x.w.Bytes())
	return err
}

type xmlAttr struct {
	name, value string
	skip        bool
}

func num(name string, v int) xmlAttr { return xmlAttr{name: name, value: strconv.Itoa(v)} }

// known writes a number unless it is Unknown.
func known(name string, v int) xmlAttr {
	return xmlAttr{name: name, value: strconv.Itoa(v), skip: v == Unknown}
}

func txt(name, v string) xmlAttr { return xmlAttr{name: name, value: v} }

// opt writes a text unless it is empty.
func opt(name, v string) xmlAttr { return xmlAttr{name: name, value: v, skip: v == ""} }

type xmlWriter struct {
	w    bytes.Buffer
	path []string
}

func (x *xmlWriter) tag(name, end string, attrs []xmlAttr) {
	x.w.WriteString(strings.Repeat("  ", len(x.path)))
	x.w.WriteString("<" + name)
	for _, a := range attrs {
		if !a.skip {
			x.w.WriteString(" " + a.name + `="` + plainValue(a.value) + `"`)
		}
	}
	x.w.WriteString(end + "\n")
}

func (x *xmlWriter) open(name string, attrs ...xmlAttr) {
	x.tag(name, ">", attrs)
	x.path = append(x.path, name)
}

func (x *xmlWriter) leaf(name string, attrs ...xmlAttr) { x.tag(name, "/>", attrs) }

func (x *xmlWriter) close() {
	name := x.path[len(x.path)-1]
	x.path = x.path[:len(x.path)-1]
	x.w.WriteString(strings.Repeat("  ", len(x.path)) + "</" + name + ">\n")
}

// plainValue makes a value that needs no entity and is short enough.
func plainValue(v string) string {
	v = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"'&<>`, r) {
			return '_'
		}
		return r
	}, v)
	if len(v) > maxValue {
		v = v[:maxValue]
	}
	return v
}

func (x *xmlWriter) cpu(c *CPU) {
	affinity := c.Affinity
	if len(affinity) > maxValue {
		affinity = "" // half a mask would be a wrong mask
	}
	x.open("cpu", opt("host_hash", c.HostHash), xmlAttr{name: "numaid", value: strconv.Itoa(c.NUMA), skip: !c.HasNUMA},
		opt("affinity", affinity), opt("arch", c.Arch), opt("vendor", c.Vendor),
		known("familyid", c.Family), known("modelid", c.Model))
	for _, p := range c.PCI {
		x.pci(p)
	}
	for _, n := range c.NICs {
		x.nic(n)
	}
	x.close()
}

func (x *xmlWriter) pci(p *PCI) {
	x.open("pci", txt("busid", p.BusID), opt("class", p.Class), opt("vendor", p.Vendor), opt("device", p.Device),
		opt("subsystem_vendor", p.SubVendor), opt("subsystem_device", p.SubDevice),
		xmlAttr{name: "link_speed", value: p.LinkSpeed, skip: p.LinkSpeed == "" && !p.HasSpeed},
		xmlAttr{name: "link_width", value: strconv.Itoa(max(0, p.LinkWidth)), skip: p.LinkWidth == Unknown && !p.HasWidth})
	for _, g := range p.GPUs {
		x.gpu(g)
	}
	for _, n := range p.NICs {
		x.nic(n)
	}
	for _, sub := range p.PCI {
		x.pci(sub)
	}
	for _, target := range p.Peers {
		x.leaf("pcilink", txt("target", target))
	}
	x.close()
}

func (x *xmlWriter) gpu(g *GPU) {
	x.open("gpu", known("dev", g.Dev), known("sm", g.SM), known("mlopart", g.Part), opt("gcn", g.GCN), opt("arch", g.Arch),
		known("rank", g.Rank), known("gdr", g.GDR))
	for _, l := range g.NVLinks {
		name := "nvlink"
		if l.XGMI {
			name = "xgmi"
		}
		x.leaf(name, txt("target", l.Target), num("count", l.Count), txt("tclass", l.Class))
	}
	for _, l := range g.C2Cs {
		x.leaf("c2c", num("bw", l.BW), num("count", l.Count))
	}
	x.close()
}

func (x *xmlWriter) nic(n *NIC) {
	x.open("nic")
	for _, d := range n.Nets {
		x.leaf("net", opt("name", d.Name), opt("dev", d.Dev),
			xmlAttr{name: "latency", value: fmt.Sprintf("%g", d.Latency), skip: !d.HasLatency && d.Latency == 0},
			xmlAttr{name: "speed", value: strconv.Itoa(d.Speed), skip: d.Speed <= 0},
			xmlAttr{name: "port", value: strconv.Itoa(d.Port), skip: !d.HasPort && d.Port == 0}, opt("guid", d.GUID),
			known("maxconn", d.MaxConn), known("gdr", d.GDR), known("coll", d.Coll), known("keep", d.Keep),
			known("net", d.IsNet), known("gin", d.GIN), known("rma", d.RMA), known("rail", d.Rail), known("plane", d.Plane))
	}
	x.close()
}
