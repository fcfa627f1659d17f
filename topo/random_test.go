package topo

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// madeUp is a machine that nobody has built: up to two CPUs, GPUs on switches or on the CPU, some NVLinks, some NICs.
func madeUp(r *rand.Rand) *Machine {
	m := &Machine{Version: 1}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	speed := pick("8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe")
	vendor := pick("GenuineIntel", "AuthenticAMD", "")
	sm := []int{70, 80, 90, 100}[r.IntN(4)]
	rank, bus, nets := 0, 1, 0
	var gpus []*PCI
	device := func(class string) *PCI {
		p := NewPCI(fmt.Sprintf("0000:%02x:00.0", bus))
		bus++
		p.Class, p.LinkSpeed, p.LinkWidth = class, speed, []int{4, 8, 16, 16, 16}[r.IntN(5)]
		return p
	}
	for c := range 1 + r.IntN(2) {
		cpu := NewCPU(c)
		cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = "x86_64", vendor, 6, []int{0x4f, 0x6a, 0x8f}[r.IntN(3)]
		if vendor == "" {
			cpu.Arch = "arm64"
		}
		for range 1 + r.IntN(2) {
			parent := &cpu.PCI
			if r.IntN(2) == 0 {
				sw := device("0x060400")
				cpu.PCI = append(cpu.PCI, sw)
				parent = &sw.PCI
			}
			for range r.IntN(3) {
				p := device("0x030200")
				for range 1 + r.IntN(5)/4 { // now and then two ranks on one GPU
					g := NewGPU()
					g.Dev, g.SM, g.GDR, g.Rank = len(gpus), sm, 1, rank
					rank++
					p.GPUs = append(p.GPUs, g)
				}
				*parent = append(*parent, p)
				gpus = append(gpus, p)
			}
			if r.IntN(2) == 0 {
				p := device("0x020000")
				n := NewNet(fmt.Sprintf("net%d", nets))
				n.Dev, n.Speed, n.GDR = fmt.Sprint(nets), []int{10000, 100000, 200000}[r.IntN(3)], r.IntN(2)
				nets++
				p.NICs = []*NIC{{Nets: []*Net{n}}}
				*parent = append(*parent, p)
			}
		}
		m.CPUs = append(m.CPUs, cpu)
	}
	link := func(a *PCI, target, class string, count int) {
		for _, g := range a.GPUs {
			g.NVLinks = append(g.NVLinks, NVLink{Target: target, Count: count, Class: class})
		}
	}
	switch r.IntN(4) {
	case 0: // a switch, perhaps not for all
		for _, a := range gpus {
			if r.IntN(8) > 0 {
				link(a, "ffff:00:00.0", "0x068000", 12)
			}
		}
	case 1: // some direct links
		for i, a := range gpus {
			for _, b := range gpus[:i] {
				if r.IntN(3) > 0 {
					n := 1 + r.IntN(4)
					link(a, b.BusID, "0x030200", n)
					link(b, a.BusID, "0x030200", n)
				}
			}
		}
	}
	return m
}

// On made-up machines: no link is over-committed, the second search never loses to the first, and on one node rings are at
// least as fast as the best single ring that trying all orders finds.
func TestMadeUpMachines(t *testing.T) {
	better, built, slow := 0, 0, 0
	for seed := range uint64(150) {
		m := madeUp(rand.New(rand.NewPCG(seed, 1)))
		for _, nodes := range []int{1, 2} {
			o := DefaultOptions()
			o.Nodes = nodes
			s, err := Build(m, o)
			if err != nil || (nodes > 1 && s.Count(NETNode) == 0) {
				continue
			}
			built++
			what := fmt.Sprintf("machine %d, %d nodes", seed, nodes)
			o.Strict = true
			first, err := Search(s, o)
			if err != nil {
				t.Fatal(what, err)
			}
			o.Strict = false
			both, err := Search(s, o)
			if err != nil {
				t.Fatal(what, err)
			}
			a, b := first.graphs(), both.graphs()
			for kind, g := range b {
				v, w := checkGraph(s, nodes, g), checkGraph(s, nodes, a[kind])
				if !(kind == "ring" && both.Ring.Fallback) && !(kind == "tree" && both.Tree.Fallback) {
					for _, p := range v.problems {
						t.Errorf("%s, %s: %s", what, kind, p)
					}
				}
				if v.total(nodes) < .999*w.total(nodes) {
					t.Errorf("%s, %s: %g GB/s, the first search alone has %g", what, kind, v.total(nodes), w.total(nodes))
				}
				if v.total(nodes) > 1.01*w.total(nodes) {
					better++
				}
			}
			if nodes == 1 && len(s.Ranks) <= 6 {
				best, order := bestRing(s, b["ring"])
				if first.Ring.TotalBW() < .95*best {
					slow++
				}
				if got := both.Ring.TotalBW(); got < .95*best {
					t.Errorf("%s: rings of %g GB/s, but one ring %v alone carries %g", what, got, order, best)
				}
			}
		}
	}
	if built < 150 || better == 0 || slow == 0 {
		t.Errorf("%d searches, %d better, the first search too slow %d times: these machines show nothing", built, better, slow)
	}
	t.Logf("%d searches, the second search was better for %d graphs; the first alone has slower rings than the best one %d times", built, better, slow)
}

// bestRing tries all orders of one ring and returns the fastest.
func bestRing(s *System, like GraphReport) (float64, []int) {
	best, bestOrder := 0.0, []int(nil)
	order := make([]int, len(s.Ranks))
	for i, r := range s.Ranks {
		order[i] = r.Rank
	}
	if len(order) < 2 || s.Count(DEVNode) < 2 {
		return 0, nil
	}
	var try func(i int)
	try = func(i int) {
		if i == len(order) {
			g := like
			g.NChannels, g.BWIntra, g.BWInter, g.TypeIntra = 1, 1, 1, SYS.String()
			g.Channels = []ChannelReport{{GPUs: order}}
			if v := checkGraph(s, 1, g); len(v.problems) == 0 && v.room > best {
				best, bestOrder = v.room, append([]int(nil), order...)
			}
			return
		}
		for j := i; j < len(order); j++ {
			order[i], order[j] = order[j], order[i]
			try(i + 1)
			order[i], order[j] = order[j], order[i]
		}
	}
	try(1)
	return best, bestOrder
}
