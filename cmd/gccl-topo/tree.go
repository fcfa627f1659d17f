package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/place"
)

// branch is a line of the tree with what hangs on it.
type branch struct {
	text string
	subs []branch
}

func (b branch) print(w io.Writer, first, rest string) {
	fmt.Fprintln(w, first+b.text)
	for i, s := range b.subs {
		if i == len(b.subs)-1 {
			s.print(w, rest+"└─ ", rest+"   ")
		} else {
			s.print(w, rest+"├─ ", rest+"│  ")
		}
	}
}

// printTree writes the machine as CPUs with their PCI devices.
func printTree(w io.Writer, m *topo.Machine) {
	for _, c := range m.CPUs {
		b := branch{text: cpuText(c)}
		for _, p := range c.PCI {
			b.subs = append(b.subs, pciBranch(p))
		}
		for _, n := range c.NICs {
			for _, net := range n.Nets {
				b.subs = append(b.subs, branch{text: netText(net) + ", no device"})
			}
		}
		b.print(w, "", "")
	}
}

func cpuText(c *topo.CPU) string {
	name := fmt.Sprintf("NUMA node %d", c.NUMA)
	if c.NUMA < 0 {
		name = "NUMA node unknown"
	}
	out := []string{name, orUnknown(c.Arch, "architecture")}
	if c.Vendor != "" {
		out[1] += " " + strings.TrimSpace(c.Vendor)
	}
	if c.Family >= 0 && c.Model >= 0 {
		out[1] += fmt.Sprintf(" family %d model %d", c.Family, c.Model)
	}
	if c.Affinity != "" {
		out = append(out, "CPUs "+cpuList(c.Affinity))
	}
	if c.HostHash != "" {
		out = append(out, "host "+c.HostHash)
	}
	return strings.Join(out, ", ")
}

func orUnknown(v, what string) string {
	if v == "" {
		return what + " unknown"
	}
	return v
}

func pciBranch(p *topo.PCI) branch {
	if place.IsOnCPUs(p.BusID) {
		return branch{text: fmt.Sprintf("rank %d on these CPUs", p.GPUs[0].Rank)}
	}
	kind := "bridge"
	switch {
	case len(p.GPUs) > 0 || strings.HasPrefix(p.Class, "0x03") || strings.HasPrefix(p.Class, "0x12"):
		kind = "GPU"
	case len(p.NICs) > 0 || strings.HasPrefix(p.Class, "0x02"):
		kind = "NIC"
	case len(p.PCI) > 0:
		kind = "switch"
	}
	b := branch{text: p.BusID + " " + kind}
	if p.Vendor != "" {
		b.text += " " + strings.TrimPrefix(p.Vendor, "0x") + ":" + strings.TrimPrefix(p.Device, "0x")
	}
	b.text += ", " + linkText(p)
	for _, g := range p.GPUs {
		b.subs = append(b.subs, branch{text: gpuText(g), subs: linkBranches(g)})
	}
	for _, n := range p.NICs {
		for _, net := range n.Nets {
			b.subs = append(b.subs, branch{text: netText(net)})
		}
	}
	for _, peer := range p.Peers {
		b.subs = append(b.subs, branch{text: "linked to switch " + peer})
	}
	for _, sub := range p.PCI {
		b.subs = append(b.subs, pciBranch(sub))
	}
	return b
}

func linkText(p *topo.PCI) string {
	speed := p.LinkSpeed
	if speed == "" {
		speed = "speed unknown"
	}
	if p.LinkWidth > 0 {
		return fmt.Sprintf("%s x%d", speed, p.LinkWidth)
	}
	return speed + ", width unknown"
}

func gpuText(g *topo.GPU) string {
	out := fmt.Sprintf("GPU %d", g.Dev)
	if g.Rank != topo.NoRank {
		out += fmt.Sprintf(", rank %d", g.Rank)
	}
	if g.SM != topo.Unknown {
		out += fmt.Sprintf(", compute capability %d.%d", g.SM/10, g.SM%10)
	}
	if g.Part != topo.Unknown {
		out += fmt.Sprintf(", part %d", g.Part)
	}
	switch g.GDR {
	case 0:
		out += ", NICs do not reach its memory"
	case 1:
		out += ", NICs reach its memory"
	}
	return out
}

// linkBranches names the far ends of a GPU's links; those to several switches are one line.
func linkBranches(g *topo.GPU) []branch {
	var out []branch
	links, switches := 0, 0
	for _, l := range g.NVLinks {
		if isSwitch(l) {
			links, switches = links+l.Count, switches+1
		}
	}
	if switches > 1 {
		out = append(out, branch{text: fmt.Sprintf("%d x NVLink to %d switches", links, switches)})
	}
	for _, l := range g.NVLinks {
		name, far := "NVLink", "GPU"
		if l.XGMI {
			name = "xGMI"
		}
		if isSwitch(l) {
			if switches > 1 {
				continue
			}
			far = "switch"
		}
		out = append(out, branch{text: fmt.Sprintf("%d x %s to %s %s", l.Count, name, far, l.Target)})
	}
	for _, c := range g.C2Cs {
		out = append(out, branch{text: fmt.Sprintf("%d x C2C to the CPU, %.4g GB/s each", c.Count, float64(c.BW)/1000)})
	}
	return out
}

func isSwitch(l topo.NVLink) bool { return strings.HasPrefix(l.Class, "0x0680") }

func netText(n *topo.Net) string {
	out := fmt.Sprintf("net %s %s", orUnknown(n.Dev, "number"), n.Name)
	if n.Port > 0 {
		out += fmt.Sprintf(" port %d", n.Port)
	}
	if n.Speed > 0 {
		out += fmt.Sprintf(", %g Gb/s", float64(n.Speed)/1000)
	} else {
		out += ", speed unknown"
	}
	if n.GDR == 1 {
		out += ", GPU memory"
	}
	if n.Coll == 1 {
		out += ", reduces"
	}
	return out
}

// cpuList writes a mask of a topology file as ranges of CPUs; one that is none as it is.
func cpuList(mask string) string {
	set, err := discover.ParseCPUMask(mask)
	if err != nil {
		return mask
	}
	return set.List()
}
