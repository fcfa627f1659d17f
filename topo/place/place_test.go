package place

import (
	"slices"
	"strings"
	"testing"

	"github.com/gccl/gccl/topo"
)

// host is a machine of two NUMA nodes with a GPU and a network device on each.
func host() *topo.Machine {
	m := &topo.Machine{Version: 1}
	for i, bus := range []string{"0000:01:00.0", "0000:81:00.0"} {
		cpu := topo.NewCPU(i)
		cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = "x86_64", "GenuineIntel", 6, 85
		p := topo.NewPCI(bus)
		p.Class, p.LinkSpeed, p.LinkWidth, p.HasSpeed, p.HasWidth = "0x030200", "16.0 GT/s PCIe", 16, true, true
		g := topo.NewGPU()
		g.Dev, g.SM, g.GDR = i, 80, 1
		p.GPUs = []*topo.GPU{g}
		net := topo.NewNet("eth" + string(rune('0'+i)))
		net.Dev, net.Speed = string(rune('0'+i)), 10000
		cpu.PCI, cpu.NICs = []*topo.PCI{p}, []*topo.NIC{{Nets: []*topo.Net{net}}}
		m.CPUs = append(m.CPUs, cpu)
	}
	return m
}

func text(t *testing.T, m *topo.Machine) string {
	t.Helper()
	var b strings.Builder
	if err := m.WriteXML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func build(t *testing.T, m *topo.Machine) *topo.System {
	t.Helper()
	s, err := topo.Build(m, topo.DefaultOptions())
	if err != nil {
		t.Fatalf("%v\n%s", err, text(t, m))
	}
	return s
}

func TestPut(t *testing.T) {
	m := host()
	var at []OnCPUs
	for r := range 300 { // more than one bus of devices
		at = append(at, OnCPUs{Rank: r, Node: r % 3}) // there is no node 2
	}
	Put(m, at)
	s := build(t, m)
	if len(s.Ranks) != 300 || s.Count(topo.DEVNode) != 300 {
		t.Fatalf("%d ranks on %d devices", len(s.Ranks), s.Count(topo.DEVNode))
	}
	for _, c := range []struct {
		a, b int
		want topo.PathType
	}{{0, 3, topo.PHB}, {0, 1, topo.SYS}, {0, 299, topo.PHB}} {
		if kind, _, _ := s.Path(s.RankByNumber(c.a).Node, s.RankByNumber(c.b).Node); kind != c.want {
			t.Errorf("from rank %d to %d: %s, want %s", c.a, c.b, kind, c.want)
		}
	}
	if !IsOnCPUs(s.RankByNumber(299).Device.Dev.BusID) || IsOnCPUs("0000:01:00.0") || IsOnCPUs("ffff:ff:01.0") || IsOnCPUs("10000:01:00.0") {
		t.Error("places are not told from devices")
	}
	empty := &topo.Machine{Version: 1}
	Put(empty, at[:1])
	if len(empty.CPUs) != 1 || len(empty.GPUs()) != 1 {
		t.Errorf("on an empty machine: %+v", empty)
	}
}

func TestSpread(t *testing.T) {
	m := host()
	Spread(m, 5)
	s := build(t, m)
	if len(s.Ranks) != 5 || s.Count(topo.DEVNode) != 2 || s.RankByNumber(4).Device != s.RankByNumber(0).Device || s.RankByNumber(3).Device != s.RankByNumber(1).Device {
		t.Errorf("ranks %d on %d devices\n%s", len(s.Ranks), s.Count(topo.DEVNode), text(t, m))
	}
	m = host()
	Spread(m, 1)
	if s := build(t, m); len(s.Ranks) != 1 {
		t.Errorf("%d ranks", len(s.Ranks))
	}
	Spread(&topo.Machine{Version: 1}, 3) // no GPU to put a rank on
}

// Two containers of one host see a GPU each and number their network devices from 0.
func TestMerge(t *testing.T) {
	a, b := host(), host()
	a.CPUs[1].PCI, a.CPUs[1].NICs = nil, nil
	b.CPUs[0].PCI, b.CPUs[0].NICs = nil, nil
	b.CPUs[1].NICs[0].Nets[0].Dev = "0"
	Merge(a, b)
	if got, want := text(t, a), text(t, host()); got != want {
		t.Errorf("merged\n%s\nwant\n%s", got, want)
	}
	Merge(a, host()) // nothing new
	if got, want := text(t, a), text(t, host()); got != want {
		t.Errorf("merged again\n%s\nwant\n%s", got, want)
	}
	other := host()
	other.CPUs[0].HostHash, other.CPUs[1].HostHash = "0x2", "0x2"
	Merge(a, other)
	if len(a.CPUs) != 4 {
		t.Errorf("%d CPUs of two hosts", len(a.CPUs))
	}
}

func TestCopyIsApart(t *testing.T) {
	m := host()
	c, err := Copy(m)
	if err != nil || text(t, c) != text(t, m) {
		t.Fatalf("%v\n%s", err, text(t, c))
	}
	Put(c, []OnCPUs{{Rank: 0, Node: 0}})
	if len(m.GPUs()) != 2 {
		t.Error("the original has changed")
	}
}

// Ranks of one NUMA node stand together in every channel, wherever their numbers are.
func TestSearch(t *testing.T) {
	read := func() (*topo.Machine, error) { return host(), nil }
	var at []OnCPUs
	for r := range 10 {
		at = append(at, OnCPUs{Rank: r, Node: r % 2})
	}
	d, err := Search(read, at, topo.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for _, r := range d.Ring.Channels[0].Ranks {
		order = append(order, r.Rank)
	}
	if !slices.Equal(order, []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}) || d.Ring.TypeIntra != topo.SYS || d.Ring.BWIntra != 10 || len(d.System.Ranks) != 10 {
		t.Errorf("ring %v, %+v", order, d.Ring)
	}
	d, err = Search(read, []OnCPUs{{Rank: 0, Node: 1}, {Rank: 1, Node: 1}, {Rank: 2, Node: 1}}, topo.DefaultOptions())
	if err != nil || d.Ring.N() != 1 || d.Ring.TypeIntra != topo.PHB || len(d.Tree.Channels[0].Ranks) != 3 {
		t.Errorf("on one node: %v, ring %+v", err, d.Ring)
	}
	if d, err = Search(read, []OnCPUs{{Node: topo.Unknown}}, topo.DefaultOptions()); err != nil || d.Ring.N() != 1 {
		t.Errorf("on an unknown node: %v", err)
	}
	o := topo.DefaultOptions()
	o.Nodes = 2
	d, err = Search(read, at, o)
	if err != nil || d.Ring.Channels[0].In == nil || d.Ring.Channels[0].In != d.System.Nodes[topo.NETNode][d.Ring.Channels[0].In.Index] {
		t.Errorf("between nodes: %v, ring %+v", err, d.Ring)
	}
}

// Of a job on two hosts each host's ranks make a system.
func TestSearchOnTwoHosts(t *testing.T) {
	read := func() (*topo.Machine, error) {
		m := host()
		m.CPUs[0].HostHash, m.CPUs[1].HostHash = "0x1", "0x2"
		return m, nil
	}
	at := []OnCPUs{{0, "0x1", 0}, {1, "0x2", 1}, {2, "0x1", topo.Unknown}, {3, "0x2", 1}}
	o := topo.DefaultOptions()
	o.Nodes = 2
	for self, want := range map[int][]int{0: {0, 2}, 1: {1, 3}} {
		o.Self = self
		d, err := Search(read, at, o)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for _, r := range d.Ring.Channels[0].Ranks {
			order = append(order, r.Rank)
		}
		if !slices.Equal(order, want) || len(d.System.Ranks) != 2 || d.Ring.Channels[0].In == nil {
			t.Errorf("system of rank %d: ring %v", self, order)
		}
	}
}

func TestPutOnGPUs(t *testing.T) {
	m := host()
	m.GPUs()[0].Rank = 7 // of a file
	err := PutOnGPUs(m, []OnGPU{{0, "", "0000:81:00.0"}, {1, "", "0000:01:00.0"}, {2, "", "0000:81:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	s := build(t, m)
	if len(s.Ranks) != 3 || s.Count(topo.DEVNode) != 2 || s.RankByNumber(2).Device != s.RankByNumber(0).Device || s.RankByNumber(1).Device.Dev.BusID != "0000:01:00.0" {
		t.Errorf("placed as\n%s", text(t, m))
	}
	m = host()
	m.CPUs[0].HostHash, m.CPUs[1].HostHash = "0x1", "0x2"
	if err := PutOnGPUs(m, []OnGPU{{0, "0x1", "0000:81:00.0"}}); err == nil || !strings.Contains(err.Error(), "rank 0 is on a GPU at 0000:81:00.0") {
		t.Errorf("a GPU of another host: %v", err)
	}
}

// A skeleton of a cloud provider says where devices hang; what they are is seen here.
func TestFill(t *testing.T) {
	const skeleton = `<system version="1"><cpu numaid="0" affinity="00ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="32 GT/s" link_width="16"/>
    <pci busid="0000:02:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
  </pci></cpu><cpu numaid="1"><pci busid="0000:81:00.0"><gpu dev="5"/></pci></cpu></system>`
	m, err := topo.Read("skeleton", []byte(skeleton))
	if err != nil {
		t.Fatal(err)
	}
	seen := host()
	nic := topo.NewPCI("0000:02:00.0")
	net := topo.NewNet("mlx5_0")
	net.Dev, net.Speed, net.GDR = "0", 200000, 1
	nic.NICs = []*topo.NIC{{Nets: []*topo.Net{net}}}
	seen.CPUs[0].PCI = append(seen.CPUs[0].PCI, nic)
	seen.CPUs[0].PCI = append(seen.CPUs[0].PCI, topo.NewPCI("0000:03:00.0")) // not in the skeleton
	Fill(m, seen)
	if err := PutOnGPUs(m, []OnGPU{{0, "", "0000:01:00.0"}, {1, "", "0000:81:00.0"}}); err != nil {
		t.Fatal(err)
	}
	s := build(t, m)
	kind, bw, _ := s.Path(s.RankByNumber(0).Node, s.Nodes[topo.NETNode][0])
	if kind != topo.PIX || bw != 24 {
		t.Errorf("from the GPU to its NIC: %s %g", kind, bw)
	}
	if c := m.CPUs[1]; c.Arch != "x86_64" || c.Vendor != "GenuineIntel" || m.CPUs[0].Vendor != "AuthenticAMD" {
		t.Errorf("the second node is %+v", c)
	}
	if p := m.FindPCI("0000:01:00.0"); p.LinkSpeed != "32 GT/s" || m.FindPCI("0000:81:00.0").GPUs[0].Dev != 5 || m.FindPCI("0000:81:00.0").GPUs[0].SM != 80 || m.FindPCI("0000:03:00.0") != nil {
		t.Errorf("filled to\n%s", text(t, m))
	}
}
