package topo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fusionGolden = "testdata/fusion.txt"

// fusedText lists the fused devices of a machine with the device that they hang on.
func fusedText(m *Machine) []string {
	var out []string
	add := func(at string, nics []*NIC) {
		for _, nic := range nics {
			for _, n := range nic.Nets {
				if strings.Contains(n.Name, "+") && n.IsNet != 0 {
					out = append(out, fmt.Sprintf("%s dev %s %d Mbit/s on %s", n.Name, n.Dev, n.Speed, at))
				}
			}
		}
	}
	m.Walk(func(_ *CPU, parent, p *PCI) {
		at := fmt.Sprintf("%s x%d", p.BusID, p.LinkWidth)
		if parent != nil {
			at += " below " + parent.BusID
		}
		add(at, p.NICs)
	})
	for _, c := range m.CPUs {
		add(fmt.Sprintf("CPU %d", c.NUMA), c.NICs)
	}
	return out
}

// Every collected file with several network devices, at every level: what is fused, and what two such nodes have of it. The table
// is a golden file; the channels pass the checker, in which the fused devices are ordinary ones.
func TestFusion(t *testing.T) {
	lines := []string{"# file, lowest level: fused devices; ring and tree of two nodes, before | fused", "# Written by go test ./topo -run TestFusion -update", ""}
	files := xmlFiles(t)
	for _, name := range sortedKeys(files) {
		if isGraphFile(name) {
			continue
		}
		data, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		before, last := "", ""
		for _, level := range MergeLevels {
			m, err := Read(filepath.Base(files[name]), data)
			if err != nil {
				break
			}
			l, err := ParseMergeLevel(level)
			if err != nil {
				t.Fatal(err)
			}
			if level == "P2C" || level == "PXN" { // as PXB
				continue
			}
			if err := m.Fuse(Fusion{Level: l}); err != nil {
				lines = append(lines, fmt.Sprintf("%s %s: refused: %v", name, level, err))
				continue
			}
			text := strings.Join(fusedText(m), "; ")
			if level != "LOC" && text == last {
				continue
			}
			last = text
			o := DefaultOptions()
			o.Nodes = 2
			graphs := ""
			if s, err := Build(m, o); err != nil {
				graphs = "no graph" // a skeleton
			} else if d, err := Search(s, o); err != nil {
				graphs = "no channels"
			} else {
				for _, kind := range []string{"ring", "tree"} {
					g := d.graphs()[kind]
					v := checkGraph(s, 2, g)
					for _, p := range v.problems {
						t.Errorf("%s at %s, %s: %s", name, level, kind, p)
					}
					graphs += " " + summary(g, v, 2)
				}
				graphs += fmt.Sprintf(", %d to a peer", d.Counts().PerPeer)
			}
			if level == "LOC" {
				before = graphs
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s;%s |%s", name, level, text, before, graphs))
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if sharedDir() == "" {
			t.Fatal("the table cannot be rewritten without the collected files: set GCCL_SHARED")
		}
		if err := os.WriteFile(fusionGolden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(fusionGolden)
	if err != nil {
		t.Fatal(err)
	}
	if sharedDir() != "" {
		if string(want) != text {
			t.Errorf("%s is not what is found now; go test ./topo -run TestFusion -update, and read the diff\n%s", fusionGolden, firstDifference(string(want), text))
		}
		return
	}
	t.Log("without ../shared/topo (GCCL_SHARED) only the files in testdata are compared")
	for _, l := range lines {
		if !strings.Contains(string(want), l+"\n") {
			t.Errorf("not in %s: %s", fusionGolden, l)
		}
	}
}

// The log of NCCL 2.30.4 on two such hosts (shared/topo/EXPECTED.md, 9): a fused device of number 2, and one channel to a peer, because
// the way to the device carries 12 GB/s, whatever the device does.
func TestFusionAsLogged(t *testing.T) {
	const name = "a100-pcie-2gpu-dualport-gin"
	where, ok := xmlFiles(t)[name]
	if !ok {
		t.Skipf("%s.xml is among the collected files only (GCCL_SHARED)", name)
	}
	data, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Fuse(Fusion{Level: MergePort}); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Nodes, o.Strict = 2, true
	d := decide(t, m, o)
	s := d.System
	if len(s.Nodes[NETNode]) != 1 || s.Nodes[NETNode][0].Net.Dev != 2 || d.Counts() != (ChannelCounts{Coll: 2, P2P: 2, PerPeer: 1}) {
		t.Errorf("devices %v, channels %+v", s.Nodes[NETNode], d.Counts())
	}
}

// adapters is a host of two NUMA nodes. Node 0: a switch with two adapters of two functions each, and a GPU; an adapter of its own beside
// it. Node 1: an adapter, and an interface of TCP.
const adapters = `<system version="1">
<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
  <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
    <pci busid="0000:02:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="m0" dev="0" speed="100000" port="1" guid="0xa" gdr="1" maxconn="7" rail="0" plane="0"/></nic></pci>
    <pci busid="0000:02:00.1" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="m1" dev="1" speed="100000" port="1" guid="0xb" gdr="1" rail="0" plane="1"/></nic></pci>
    <pci busid="0000:03:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="m2" dev="2" speed="100000" port="1" guid="0xc" gdr="1" rail="1"/></nic></pci>
    <pci busid="0000:03:00.1" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8"><nic><net name="m3" dev="3" speed="100000" port="1" guid="0xd" gdr="0" rail="1"/></nic></pci>
    <pci busid="0000:04:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci>
  </pci>
  <pci busid="0000:41:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="m4" dev="4" speed="200000" port="1" guid="0xe" gdr="1"/></nic></pci>
</cpu>
<cpu numaid="1" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
  <pci busid="0000:81:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic>
    <net name="m5" dev="5" speed="200000" port="1" guid="0xf" gdr="1"/><net name="m5" dev="6" speed="200000" port="2" guid="0xf" gdr="1"/><net name="m6" dev="7" speed="50000" port="3" guid="0xf" gdr="1"/></nic></pci>
  <nic><net name="eth0" dev="8" speed="10000" port="0"/><net name="eth1" dev="9" speed="10000" port="0"/></nic>
</cpu></system>`

func readAdapters(t *testing.T) *Machine {
	t.Helper()
	m, err := Read("adapters", []byte(adapters))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFusionOfMadeUpAdapters(t *testing.T) {
	two := "m5+m5 dev %d 400000 Mbit/s on 0000:81:00.0 x16"
	for _, c := range []struct {
		name string
		f    Fusion
		want []string
	}{
		{"off", Fusion{}, nil},
		{"off by NCCL_IB_MERGE_NICS", Fusion{Level: MergePHB, Off: true}, nil},
		// Functions and ports of one adapter; of m5 and m6 the slow one would be left aside.
		{"PORT", Fusion{Level: MergePort}, []string{
			"m0+m1 dev 10 200000 Mbit/s on 0000:02:00.2 x8 below 0000:01:00.0",
			"m2+m3 dev 11 200000 Mbit/s on 0000:03:00.2 x8 below 0000:01:00.0",
			fmt.Sprintf(two, 12)}},
		{"PIX", Fusion{Level: MergePIX}, []string{
			"m0+m1+m2+m3 dev 10 400000 Mbit/s on 0000:02:00.2 x32 below 0000:01:00.0",
			fmt.Sprintf(two, 11)}},
		{"PHB: at most four", Fusion{Level: MergePHB}, []string{
			"m0+m1+m2+m3 dev 10 400000 Mbit/s on 0000:02:00.2 x32 below 0000:01:00.0",
			fmt.Sprintf(two, 11)}},
		{"PHB by rail", Fusion{Level: MergePHB, Rails: true}, []string{
			"m0+m1 dev 10 200000 Mbit/s on 0000:02:00.2 x8 below 0000:01:00.0",
			"m2+m3 dev 11 200000 Mbit/s on 0000:03:00.2 x8 below 0000:01:00.0"}},
		// What is named is fused first; m0 by itself is left out of the rest.
		{"named", Fusion{Level: MergePort, Force: "m2,m4;m0;eth0,eth1"}, []string{
			"m2+m4 dev 10 300000 Mbit/s on 0000:03:00.2 x24",
			fmt.Sprintf(two, 12),
			"eth0+eth1 dev 11 20000 Mbit/s on CPU 1"}},
		{"empty groups", Fusion{Force: ";;m2;"}, nil},
		{"named with ports", Fusion{Force: " m5:2 , m5:1 "}, []string{fmt.Sprintf(two, 10)}},
	} {
		m := readAdapters(t)
		if err := m.Fuse(c.f); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := fusedText(m); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n  %s\nwant\n  %s", c.name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
		text := fmt.Sprint(fusedText(m))
		if c.f.Force != "" {
			continue
		}
		if err := m.Fuse(c.f); err != nil || fmt.Sprint(fusedText(m)) != text {
			t.Errorf("%s, once more: %v, %v", c.name, err, fusedText(m))
		}
	}
}

func TestFusedDevice(t *testing.T) {
	m := readAdapters(t)
	if err := m.Fuse(Fusion{Level: MergePort}); err != nil {
		t.Fatal(err)
	}
	a, b := m.FindPCI("0000:02:00.2").NICs[0].Nets[0], m.FindPCI("0000:03:00.2").NICs[0].Nets[0]
	if a.GUID != "0xa" || a.Port != 1 || a.MaxConn != 7 || a.GDR != 1 || a.Rail != 0 || a.Plane != 1<<virtualPlane|3 {
		t.Errorf("m0+m1 is %+v", a)
	}
	if b.GDR != 0 || b.Rail != 1 || b.Plane != Unknown {
		t.Errorf("m2+m3 is %+v", b)
	}
	if p := m.FindPCI("0000:02:00.0").NICs[0].Nets[0]; p.IsNet != 0 || p.Keep != 0 {
		t.Errorf("m0 is %+v", p)
	}
	s, err := Build(m, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range s.Nodes[NETNode] {
		names = append(names, n.Net.Name)
	}
	if got := strings.Join(names, " "); got != "m0+m1 m2+m3 m4 m6 m5+m5 eth0 eth1" {
		t.Errorf("the graph has %s", got)
	}
	// 25 GB/s of network behind a link of 8 lanes: the link is the limit.
	if typ, bw, _ := s.Path(s.Ranks[0].Node, s.Nodes[NETNode][0]); typ != PIX || bw != 12 {
		t.Errorf("from the GPU to m0+m1: %s %g", typ, bw)
	}
	var x strings.Builder
	if err := m.WriteXML(&x); err != nil {
		t.Fatal(err)
	}
	if _, err := Read("fused", []byte(x.String())); err != nil {
		t.Error(err)
	}
}

func TestFusionRefused(t *testing.T) {
	for _, c := range []struct {
		f    Fusion
		want string
	}{
		{Fusion{Force: "m0,m9"}, `there is no network device m9; there are m0 m1`},
		{Fusion{Force: "m0,m0"}, `m0 is named twice`},
		{Fusion{Force: "m0,m1;m1,m2"}, `m1 is named twice`},
		{Fusion{Force: "m0,"}, `a name is missing`},
		{Fusion{Force: ","}, `a name is missing`},
		{Fusion{Force: "m0,m1:x"}, `"x" is no port`},
		{Fusion{Force: "m0,m5"}, `m5 has several ports here: name one as in m5:1`},
		{Fusion{Force: "m0:2,m1"}, `there is no network device m0:2`},
		{Fusion{Force: "m0,m1,m2,m3,m4"}, `has 5 devices; at most 4 become one`},
		{Fusion{Force: "m5:1,m6"}, `of m5 (200000 Mbit/s) and m6 (50000 Mbit/s) one would carry nothing`},
		{Fusion{Force: "m0,m1", Off: true}, `NCCL_IB_MERGE_NICS=0 forbids it`},
		{Fusion{Force: "m4,m5:1"}, `m4+m5: devices of different NUMA nodes cannot become one`},
		{Fusion{Level: MergeSYS, Force: "m0;m1;m2;m3"}, `m4+m5+m5: devices of different NUMA nodes`},
	} {
		err := readAdapters(t).Fuse(c.f)
		var named *FusionError
		if !errors.As(err, &named) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %s", c.f, err, c.want)
		}
	}
	for name, want := range map[string]MergeLevel{"loc": MergeNone, "PORT": MergePort, "PXN": MergePXB, "SYS": MergeSYS} {
		if got, err := ParseMergeLevel(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := ParseMergeLevel("NVL"); err == nil || !strings.Contains(err.Error(), `"NVL" is no level of merging: LOC, PORT`) {
		t.Errorf("NVL: %v", err)
	}
}
