package topo

import (
	"fmt"
	"testing"
)

// rack is a made-up NVLink domain of 18 trays with 4 GPUs, 2 CPUs and 4 NICs each.
func rack() *Machine {
	m := &Machine{Version: 1}
	rank := 0
	for tray := range 18 {
		for c := range 2 {
			cpu := NewCPU(c)
			cpu.Arch, cpu.HostHash = "arm64", fmt.Sprintf("0x%x", tray+1)
			for g := range 2 {
				p := NewPCI(fmt.Sprintf("%04x:01:00.0", c*16+g))
				p.Class, p.LinkSpeed, p.LinkWidth = "0x030200", "32.0 GT/s PCIe", 16
				gpu := NewGPU()
				gpu.Dev, gpu.SM, gpu.GDR, gpu.Rank = c*2+g, 100, 1, rank
				rank++
				gpu.NVLinks = []NVLink{{Target: "fffffff:ff:ff.0", Count: 18, Class: "0x068000"}}
				gpu.C2Cs = []C2CLink{{BW: 44712, Count: 5}}
				p.GPUs = []*GPU{gpu}
				n := NewPCI(fmt.Sprintf("%04x:02:00.0", c*16+g))
				n.Class, n.LinkSpeed, n.LinkWidth = "0x020000", "32.0 GT/s PCIe", 16
				net := NewNet(fmt.Sprintf("mlx5_%d", c*2+g))
				net.Dev, net.Speed, net.GDR = fmt.Sprint(c*2+g), 400000, 1
				n.NICs = []*NIC{{Nets: []*Net{net}}}
				cpu.PCI = append(cpu.PCI, p, n)
			}
			m.CPUs = append(m.CPUs, cpu)
		}
	}
	return m
}

func TestRackOf72(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		o := DefaultOptions()
		o.Nodes = nodes
		d := decide(t, rack(), o)
		checkAll(t, fmt.Sprintf("72 GPUs, %d nodes", nodes), d)
		t.Logf("%d nodes: ring %dx%g, tree %dx%g, nvls %dx%g", nodes, d.Ring.N(), d.Ring.BWInter, d.Tree.N(), d.Tree.BWInter, d.NVLS.N(), d.NVLS.BWInter)
	}
}
