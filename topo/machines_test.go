package topo

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

// shareGPUs gives every GPU of a machine n ranks, numbered over the GPUs first: rank r is on GPU r mod the number of GPUs.
func shareGPUs(m *Machine, n int) *Machine {
	gpus := len(m.GPUs())
	m.Walk(func(_ *CPU, _, p *PCI) {
		for _, g := range p.GPUs[:len(p.GPUs):len(p.GPUs)] {
			for i := 1; i < n; i++ {
				c := *g
				c.Rank += i * gpus
				p.GPUs = append(p.GPUs, &c)
			}
		}
	})
	return m
}

// bigMachine has 16 GPUs on an NVLink switch, each pair of GPUs with four NICs behind a PCI switch, and two CPUs.
func bigMachine() *Machine {
	m := &Machine{Version: 1}
	dev := 0
	for c := range 2 {
		cpu := NewCPU(c)
		cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = "x86_64", "GenuineIntel", 6, 207
		for s := range 4 {
			bridge := NewPCI(fmt.Sprintf("%04x:%02x:00.0", c, 0x10*s))
			bridge.Class, bridge.LinkSpeed, bridge.LinkWidth = "0x060400", "32.0 GT/s PCIe", 16
			for g := range 2 {
				p := NewPCI(fmt.Sprintf("%04x:%02x:00.0", c, 0x10*s+1+g))
				p.Class, p.LinkSpeed, p.LinkWidth = "0x030200", "32.0 GT/s PCIe", 16
				gpu := NewGPU()
				gpu.Dev, gpu.SM, gpu.GDR = dev, 90, 1
				gpu.Rank = dev
				gpu.NVLinks = []NVLink{{Target: "ffff:00:00.0", Count: 18, Class: "0x068000"}}
				p.GPUs = []*GPU{gpu}
				bridge.PCI = append(bridge.PCI, p)
				dev++
			}
			for n := range 4 {
				p := NewPCI(fmt.Sprintf("%04x:%02x:00.0", c, 0x10*s+4+n))
				p.Class, p.LinkSpeed, p.LinkWidth = "0x020000", "32.0 GT/s PCIe", 16
				num := c*16 + s*4 + n
				net := NewNet(fmt.Sprintf("mlx5_%d", num))
				net.Dev, net.Speed, net.GDR, net.Port, net.GUID = fmt.Sprint(num), 200000, 1, 1, fmt.Sprintf("0x%x", num+1)
				p.NICs = []*NIC{{Nets: []*Net{net}}}
				bridge.PCI = append(bridge.PCI, p)
			}
			cpu.PCI = append(cpu.PCI, bridge)
		}
		m.CPUs = append(m.CPUs, cpu)
	}
	return m
}

func decide(t testing.TB, m *Machine, o Options) *Decision {
	t.Helper()
	s, err := Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Search(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func checkAll(t *testing.T, what string, d *Decision) {
	t.Helper()
	for kind, g := range d.graphs() {
		for _, p := range checkGraph(d.System, d.Opt.Nodes, g).problems {
			t.Errorf("%s, %s: %s", what, kind, p)
		}
	}
}

// Several ranks on one GPU are a normal case: no link is over-committed, and the machine is as fast as with one rank a GPU.
func TestSeveralRanksOnOneGPU(t *testing.T) {
	for _, file := range []string{"hgx-b200-8gpu-container", "hgx-a100-8gpu-4nic", "rtx4090-4gpu-socket", "hgx-a100-1gpu-1nic"} {
		for _, nodes := range []int{1, 2} {
			o := DefaultOptions()
			o.Nodes = nodes
			path := xmlFiles(t)[file]
			one := decide(t, readFile(t, path), o)
			for _, n := range []int{2, 3} {
				what := fmt.Sprintf("%s, %d ranks a GPU, %d nodes", file, n, nodes)
				d := decide(t, shareGPUs(readFile(t, path), n), o)
				checkAll(t, what, d)
				if got, want := len(d.System.Ranks), n*len(one.System.Ranks); got != want {
					t.Errorf("%s: %d ranks, want %d", what, got, want)
				}
				if got, want := d.System.Count(DEVNode), one.System.Count(DEVNode); got != want {
					t.Errorf("%s: %d GPUs, want %d", what, got, want)
				}
				if a, b := d.Ring.TotalBW(), one.Ring.TotalBW(); a < .9*b {
					t.Errorf("%s: rings of %g GB/s, with one rank %g", what, a, b)
				}
				t.Logf("%s: rings %g GB/s (one rank a GPU: %g), trees %g (%g)", what, d.Ring.TotalBW(), one.Ring.TotalBW(),
					d.Tree.TotalBW(), one.Tree.TotalBW())
			}
		}
	}
}

func TestBigMachine(t *testing.T) {
	for _, nodes := range []int{1, 2, 4} {
		o := DefaultOptions()
		o.Nodes = nodes
		d := decide(t, bigMachine(), o)
		checkAll(t, fmt.Sprintf("16 GPUs, 32 NICs, %d nodes", nodes), d)
		t.Logf("%d nodes: ring %dx%g, tree %dx%g, nvls %dx%g", nodes, d.Ring.N(), d.Ring.BWInter, d.Tree.N(), d.Tree.BWInter, d.NVLS.N(), d.NVLS.BWInter)
	}
}

// A link that got slow moves the channels away from it.
func TestMeasuredBandwidthMovesChannels(t *testing.T) {
	path := xmlFiles(t)["oci-h100-8gpu-k8s"]
	o := DefaultOptions()
	o.Nodes = 2
	before := decide(t, readFile(t, path), o)
	uses := func(d *Decision, net NodeID) int {
		n := 0
		for _, c := range d.Ring.Channels {
			if c.In.ID == net || c.Out.ID == net {
				n++
			}
		}
		return n
	}
	slow := before.Ring.Channels[0].In
	o.Measured = []Measured{{Link: slow.String(), GBs: 2}}
	after := decide(t, readFile(t, path), o)
	checkAll(t, "degraded", after)
	if uses(before, slow.ID) == 0 || uses(after, slow.ID) != 0 {
		t.Errorf("NIC %v: %d uses before, %d after it got slow", slow, uses(before, slow.ID), uses(after, slow.ID))
	}
	if after.Ring.TotalBW() < .8*before.Ring.TotalBW() {
		t.Errorf("%g GB/s with one of 16 NICs degraded, %g before", after.Ring.TotalBW(), before.Ring.TotalBW())
	}
	t.Logf("rings %dx%g before, %dx%g after", before.Ring.N(), before.Ring.BWInter, after.Ring.N(), after.Ring.BWInter)
}

// Hosts that only the network joins are different nodes, also if one file describes both.
func TestOnlyTheOwnHostIsBuilt(t *testing.T) {
	m := readFile(t, xmlFiles(t)["hgx-a100-2gpu-1nic"])
	other := readFile(t, xmlFiles(t)["hgx-a100-2gpu-1nic"])
	for _, c := range other.CPUs {
		c.HostHash = "0x1234"
	}
	other.Walk(func(_ *CPU, _, p *PCI) {
		for _, g := range p.GPUs {
			g.Rank += 2
			g.NVLinks = nil
		}
	})
	m.CPUs = append(m.CPUs, other.CPUs...)
	for _, c := range []struct{ self, first int }{{NoRank, 0}, {1, 0}, {3, 2}} {
		o := DefaultOptions()
		o.Self = c.self
		s, err := Build(m, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Ranks) != 2 || s.Ranks[0].Rank != c.first {
			t.Errorf("rank %d: %d ranks, first %d", c.self, len(s.Ranks), s.Ranks[0].Rank)
		}
	}
}

// A NIC of a host that no rank is on is no NIC of the job.
func TestNICsOutOfReach(t *testing.T) {
	m := readFile(t, xmlFiles(t)["hgx-a100-2gpu-1nic"])
	far := NewCPU(0)
	far.Arch, far.HostHash = "arm64", "0x77"
	m.Walk(func(_ *CPU, _, p *PCI) {
		far.NICs = append(far.NICs, p.NICs...)
		p.NICs = nil
	})
	m.CPUs = append(m.CPUs, far)
	o := DefaultOptions()
	o.Nodes = 2
	s, err := Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Search(s, o); !errors.Is(err, xerr.InvalidUsage) {
		t.Errorf("search with NICs out of reach: %v", err)
	}
}

// Networks that reduce get chains over the devices that do it, and over no others.
func TestChainsForNetworksThatReduce(t *testing.T) {
	m := bigMachine()
	m.Walk(func(_ *CPU, _, p *PCI) {
		for _, n := range p.NICs {
			if n.Nets[0].Dev < "2" { // devices 0, 1, 1x
				n.Nets[0].Coll = 1
			}
		}
	})
	o := DefaultOptions()
	if d := decide(t, m, o); d.Chain != nil {
		t.Error("one node has a chain")
	}
	o.Nodes = 2
	d := decide(t, m, o)
	checkAll(t, "networks that reduce", d)
	if d.Chain == nil || d.Chain.ID != ChainID || d.Chain.Pattern != Tree {
		t.Fatalf("chain %+v", d.Chain)
	}
	for _, c := range d.Chain.Channels {
		if !c.In.Net.Coll || c.In != c.Out {
			t.Errorf("a chain over %v and %v", c.In, c.Out)
		}
	}
	t.Logf("chain %dx%g", d.Chain.N(), d.Chain.BWInter)
}

// A system may be searched by several goroutines at once (go test -race).
func TestSearchesOfOneSystemAtOnce(t *testing.T) {
	s, o, err := loadSystem(t, "hgx-a100-8gpu-4nic", 2)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(chan string)
	for range 3 {
		go func() {
			d, err := Search(s, o)
			if err != nil {
				texts <- err.Error()
				return
			}
			texts <- graphText(d.graphs()["ring"]) + graphText(d.graphs()["tree"])
		}()
	}
	if a, b, c := <-texts, <-texts, <-texts; a != b || b != c {
		t.Errorf("three answers:\n%s\n%s\n%s", a, b, c)
	}
}

// Machines far larger than any are refused, not built for minutes.
func TestHugeMachinesAreRefused(t *testing.T) {
	for _, cpus := range []int{3000, 10000} {
		m := readFile(t, xmlFiles(t)["hgx-a100-2gpu-1nic"])
		for i := range cpus {
			c := NewCPU(i + 100)
			c.Arch = "arm64"
			m.CPUs = append(m.CPUs, c)
		}
		if _, err := Build(m, DefaultOptions()); !errors.Is(err, xerr.InvalidUsage) {
			t.Errorf("%d CPUs: %v", cpus, err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		file  string
		nodes int
	}{
		{"hgx-b200-8gpu-container", 1}, {"hgx-h200-8gpu-container", 2}, {"aws-p5.48xl-32nic", 2}, {"ibm-vsi-h100-8gpu", 2},
		{"hgx-a100-8gpu-4nic", 2}, {"oci-h100-8gpu-k8s", 2}, {"oci-bm-gpu4", 4}, {"rtx3090-8gpu-ib56", 1},
		{"gb300-2tray-8gpu-mnnvl", 1}, {"gb300-2tray-8gpu-rank5-no-nvlink", 1}, {"rtx4090-4gpu-socket", 2},
	} {
		b.Run(fmt.Sprintf("%s/%dnodes", c.file, c.nodes), func(b *testing.B) {
			for range b.N {
				s, o, err := loadSystem(b, c.file, c.nodes)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Search(s, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, nodes := range []int{1, 2} {
		b.Run(fmt.Sprintf("16gpus-32nics/%dnodes", nodes), func(b *testing.B) {
			o := DefaultOptions()
			o.Nodes = nodes
			for range b.N {
				decide(b, bigMachine(), o)
			}
		})
	}
}
