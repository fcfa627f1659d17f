package topo

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

func readFile(t testing.TB, path string) *Machine {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(filepath.Base(path), data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func written(t testing.TB, m *Machine) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteXML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// forget removes positions, which differ between a file and what we write.
func forget(m *Machine) *Machine {
	clear := func(p *Pos) { *p = Pos{} }
	nics := func(list []*NIC) {
		for _, n := range list {
			clear(&n.Pos)
			for _, d := range n.Nets {
				clear(&d.Pos)
			}
		}
	}
	for _, c := range m.CPUs {
		clear(&c.Pos)
		nics(c.NICs)
	}
	m.Walk(func(_ *CPU, _, p *PCI) {
		clear(&p.Pos)
		nics(p.NICs)
		for _, g := range p.GPUs {
			clear(&g.Pos)
			for i := range g.NVLinks {
				clear(&g.NVLinks[i].Pos)
			}
			for i := range g.C2Cs {
				clear(&g.C2Cs[i].Pos)
			}
		}
	})
	return m
}

// What we write of every file says the same when read again, and NCCL's reader takes it. RCCL's files keep their version,
// which NCCL refuses, and nothing else.
func TestWrittenFilesAreReadByNCCL(t *testing.T) {
	for name, path := range xmlFiles(t) {
		if isGraphFile(name) {
			continue
		}
		m := readFile(t, path)
		text := written(t, m)
		again, err := Read(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(forget(m), forget(again)) {
			t.Errorf("%s: written and read again, it says something else", name)
		}
		if m.Version == 2 {
			text = strings.Replace(text, `version="2"`, `version="1"`, 1)
		}
		problems := ncclReads(text)
		if m.Elements() > MaxElements {
			if len(problems) == 0 {
				t.Errorf("%s: %d elements, and the strict reader says nothing", name, m.Elements())
			}
			continue
		}
		for _, p := range problems {
			t.Errorf("%s: NCCL would not read what we write: %s", name, p)
		}
	}
}

// What cannot be written for NCCL is shortened, replaced or left out.
func TestHostileValuesAreWrittenPlain(t *testing.T) {
	c := NewCPU(0)
	c.Affinity = strings.Repeat("ffffffff,", 128) + "ffffffff"
	c.Arch, c.Vendor = "x86_64", "Genuine\"Intel\t&<>\n"
	n := NewNet("a&b\"" + strings.Repeat("x", 400))
	n.Dev = "0"
	c.NICs = []*NIC{{Nets: []*Net{n}}}
	m := &Machine{Name: "name\nwith a line", CPUs: []*CPU{c}}
	text := written(t, m)
	if p := ncclReads(text); len(p) > 0 {
		t.Errorf("NCCL would not read it: %s\n%s", p[0], text)
	}
	if strings.Contains(text, "affinity") {
		t.Error("half an affinity mask was written")
	}
}

// The strict reader must refuse what NCCL refuses, or its silence means nothing.
func TestStrictReaderCanRefuse(t *testing.T) {
	ok := "<!-- c -->\n<system version=\"1\">\n  <cpu numaid='0'/>\n</system>\n"
	if p := ncclReads(ok); len(p) > 0 {
		t.Fatalf("refused: %v", p)
	}
	for _, bad := range []string{
		strings.Replace(ok, "1", "2", 1),
		"<?xml version=\"1.0\"?>" + ok,
		strings.Replace(ok, "\n  <cpu", "\n\t<cpu", 1),
		strings.Replace(ok, "<cpu ", "<cpu  ", 1),
		strings.Replace(ok, "<cpu ", "<cpu\n", 1),
		strings.Replace(ok, "'0'", "'"+strings.Repeat("0", 254)+"'", 1),
		strings.Replace(ok, "'0'", "'&amp;'", 1),
		strings.Replace(ok, "<cpu numaid='0'/>", strings.Repeat("<cpu numaid='0'/>", 257), 1),
		strings.Replace(ok, "</system>", "", 1),
		strings.Replace(ok, "<cpu", "text<cpu", 1),
	} {
		if len(ncclReads(bad)) == 0 {
			t.Errorf("not refused: %.80q", bad)
		}
	}
}

// RCCL's version, declarations, tabs, line breaks in tags, entities and long values are read.
func TestReadTakesMoreThanNCCL(t *testing.T) {
	text := "<?xml version=\"1.0\"?>\n<!-- c -->\n<system version=\"2\">\n\t<cpu numaid=\"0\"\n\t  affinity=\"" +
		strings.Repeat("ffffffff,", 64) + "\" vendor='a&amp;b' arch=\"x86_64\"><xgmi/><pci busid=\"0000:01:00.0\"/></cpu></system>"
	m, err := Read("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CPUs) != 1 || m.CPUs[0].Vendor != "a&b" || len(m.CPUs[0].Affinity) < 500 || len(m.CPUs[0].PCI) != 1 {
		t.Errorf("read %+v", m.CPUs[0])
	}
}

// Every wrong file gives file, line, element and reason.
func TestWrongFilesSayWhere(t *testing.T) {
	sys := func(body string) string { return "<system version=\"1\">\n" + body + "\n</system>" }
	cpu := "<cpu numaid=\"0\" arch=\"arm64\">\n"
	for _, c := range []struct {
		text, line, element, reason string
	}{
		{"", "1", "", "empty"},
		{"hello", "1", "", "text"},
		{"<system version=\"1\">", "1", "system", "not closed"},
		{"<graph/>", "1", "graph", "root"},
		{"<system/>", "1", "system", "version is missing"},
		{"<system version=\"3\"/>", "1", "system", "version 3"},
		{"<system version=\"1\"/><system version=\"1\"/>", "1", "system", "second root"},
		{"<system version=\"one\"/>", "1", "system", "whole number"},
		{sys("<cpu numaid=\"zero\"/>"), "2", "cpu", "numaid is \"zero\""},
		{sys("<cpu numaid=\"0\" numaid=\"1\"/>"), "2", "cpu", "twice"},
		{sys("<cpu numaid=\"0\">"), "3", "cpu", "closed by"},
		{sys("<cpu numaid=0/>"), "2", "system", "not XML"},
		{sys("<cpu/>"), "2", "cpu", "numaid is missing"},
		{sys("<cpu numaid=\"0\"/>"), "2", "cpu", "arch is missing"},
		{sys("<cpu numaid=\"0\" arch=\"x86_64\"/>"), "2", "cpu", "vendor is missing"},
		{sys(cpu + "<pci/></cpu>"), "3", "pci", "busid is missing"},
		{sys(cpu + "<pci busid=\"xyz\"/></cpu>"), "3", "pci", "busid is \"xyz\""},
		{sys(cpu + "<pci busid=\"0:1:0.0\"/></cpu>"), "3", "pci", "class is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\" class=\"0x0604\"/></cpu>"), "3", "pci", "link_speed is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\" class=\"0x0604\" link_speed=\"\"/></cpu>"), "3", "pci", "link_width is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\" class=\"0x03\" link_speed=\"\" link_width=\"0\">\n<gpu rank=\"0\"/></pci></cpu>"), "4", "gpu", "dev is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\" class=\"0x03\" link_speed=\"\" link_width=\"0\">\n<gpu rank=\"0\" dev=\"0\" sm=\"90\"/></pci></cpu>"), "4", "gpu", "gdr is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\"><gpu>\n<nvlink target=\"0:2:0.0\" count=\"1\"/></gpu></pci></cpu>"), "4", "nvlink", "tclass is missing"},
		{sys(cpu + "<pci busid=\"0:1:0.0\"><gpu>\n<nvlink target=\"?\" count=\"1\" tclass=\"0\"/></gpu></pci></cpu>"), "4", "nvlink", "bus id"},
		{sys(cpu + "<nic>\n<net dev=\"-1\"/></nic></cpu>"), "4", "net", "dev is \"-1\""},
		{sys(cpu + "<nic>\n<net latency=\"NaN\"/></nic></cpu>"), "4", "net", "number"},
		{sys(cpu + "</cpu>"), "2", "system", "no gpu element"},
	} {
		m, err := Read("f.xml", []byte(c.text))
		if err == nil {
			_, err = Build(m, DefaultOptions())
		}
		checkFileError(t, c.text, err, c.line, c.element, c.reason)
	}
}

func checkFileError(t *testing.T, text string, err error, line, element, reason string) {
	t.Helper()
	var fe *FileError
	if !errors.As(err, &fe) {
		t.Errorf("%q: error %v", text, err)
		return
	}
	if !errors.Is(err, xerr.InvalidUsage) {
		t.Errorf("%q: %v has no code", text, err)
	}
	if !strings.HasPrefix(err.Error(), "f.xml:"+line+":") || fe.Element != element || !strings.Contains(err.Error(), reason) {
		t.Errorf("%q: %v; want line %s, element %q, reason %q", text, err, line, element, reason)
	}
}

func TestGraphFiles(t *testing.T) {
	seen := 0
	for name, path := range xmlFiles(t) {
		if !isGraphFile(name) {
			continue
		}
		seen++
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ReadGraphs(filepath.Base(path), data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		machine := strings.TrimSuffix(name, ".graph")
		if _, known := xmlFiles(t)[machine]; !known {
			continue
		}
		s, _, err := loadSystem(t, machine, 1)
		if err != nil {
			t.Fatal(err)
		}
		var graphs []*Graph
		for _, g := range f.Graphs {
			r, err := g.Resolve(s)
			if err != nil {
				t.Errorf("%s graph %d: %v", name, g.ID, err)
				continue
			}
			graphs = append(graphs, r)
			if r.N() == 0 {
				continue
			}
			nodes := 1
			if r.Channels[0].In != nil {
				nodes = 2
			}
			if name == "rtx3090-8gpu-ib56.graph" {
				continue // made with P2P disabled
			}
			for _, p := range checkGraph(s, nodes, r.report()).problems {
				t.Errorf("%s graph %d: %s", name, g.ID, p)
			}
		}
		var b bytes.Buffer
		if err := WriteGraphs(&b, graphs...); err != nil {
			t.Fatal(err)
		}
		if p := ncclReads(b.String()); len(p) > 0 {
			t.Errorf("%s: NCCL would not read what we write: %s", name, p[0])
		}
		again, err := ReadGraphs(name, b.Bytes())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, g := range again.Graphs {
			r, err := g.Resolve(s)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if !reflect.DeepEqual(r.report(), graphs[i].report()) {
				t.Errorf("%s graph %d: written and read again, it says something else", name, r.ID)
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d graph files", seen)
	}
}

// A loaded graph is used as it is; one that does not fit is an error that says where.
func TestLoadedGraphsAreUsed(t *testing.T) {
	s, o, err := loadSystem(t, "hgx-h200-8gpu-container", 1)
	if err != nil {
		t.Fatal(err)
	}
	ring := `<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="7" speedinter="7" typeintra="NVL" typeinter="PIX" samechannels="1">
<channel><gpu dev="3"/><gpu dev="1"/><gpu dev="2"/><gpu dev="0"/><gpu dev="4"/><gpu dev="5"/><gpu dev="6"/><gpu dev="7"/></channel></graph></graphs>`
	load := func(text string) (*Decision, error) {
		var err error
		if o.Graphs, err = ReadGraphs("f.xml", []byte(text)); err != nil {
			t.Fatal(err)
		}
		return Search(s, o)
	}
	d, err := load(ring)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ring.N() != 1 || d.Ring.BWIntra != 7 || d.Ring.Channels[0].Ranks[0].Rank != 3 || d.Tree.N() == 0 {
		t.Errorf("ring %+v, tree %+v", d.Ring, d.Tree)
	}
	_, err = load(strings.Replace(ring, `<gpu dev="7"/>`, `<gpu dev="9"/>`, 1))
	checkFileError(t, "GPU 9", err, "2", "gpu", "no such GPU")
	_, err = load(strings.Replace(ring, `<gpu dev="7"/>`, `<gpu dev="0"/>`, 1))
	checkFileError(t, "GPU 0 twice", err, "2", "gpu", "twice")
	o.Nodes = 2
	_, err = load(ring)
	checkFileError(t, "two nodes", err, "2", "channel", "made for one node")
}

func TestWrongGraphFiles(t *testing.T) {
	graph := `<graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="1" speedinter="1" typeintra="NVL" typeinter="PIX" samechannels="1">`
	file := func(g string) string { return "<graphs version=\"1\">\n" + g + "\n</graph></graphs>" }
	for _, c := range []struct{ text, line, element, reason string }{
		{"<graphs version=\"2\"/>", "1", "graphs", "version 2"},
		{"<system version=\"1\"/>", "1", "system", "root"},
		{file(strings.Replace(graph, "pattern=\"4\"", "pattern=\"9\"", 1) + "<channel><gpu dev=\"0\"/></channel>"), "2", "graph", "pattern 9"},
		{file(strings.Replace(graph, "NVL", "FAST", 1) + "<channel><gpu dev=\"0\"/></channel>"), "2", "graph", "typeintra is \"FAST\""},
		{file(graph), "2", "graph", "nchannels is 1"},
		{file(graph + "\n<channel/>"), "3", "channel", "no gpu"},
		{file(graph + "\n<channel><net dev=\"0\"/><gpu dev=\"0\"/></channel>"), "3", "channel", "1 net elements"},
		{file(graph + "\n<channel><gpu dev=\"0xZ\"/></channel>"), "3", "gpu", "hexadecimal"},
		{file(graph + "\n<channel><gpu/></channel>"), "3", "gpu", "dev is missing"},
	} {
		_, err := ReadGraphs("f.xml", []byte(c.text))
		checkFileError(t, c.text, err, c.line, c.element, c.reason)
	}
}
