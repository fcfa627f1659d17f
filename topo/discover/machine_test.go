package discover

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/topo"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The recorded machines as topology files.
func TestFilesOfRecordedMachines(t *testing.T) {
	for name, gpus := range map[string]func() ([]GPU, error){"dgx": dgxGPUs, "vm": nil} {
		m := Discover(Sources{Root: recording(t, name), CPU: epyc, Affinity: oneCPU, GPUs: gpus}).Machine()
		for i, g := range m.GPUs() {
			g.Rank = i
		}
		var b strings.Builder
		if err := m.WriteXML(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".xml")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s differs (-update writes it anew); got\n%s", path, b.String())
		}
	}
}

// What discovery finds is enough for the search: paths as on the real machine of this kind, rings over NVLink, a NIC near each GPU.
func TestSearchOnARecordedMachine(t *testing.T) {
	text, err := os.ReadFile("testdata/dgx.xml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := topo.Read("dgx.xml", text)
	if err != nil {
		t.Fatal(err)
	}
	o := topo.DefaultOptions()
	o.Nodes = 2
	s, err := topo.Build(m, o)
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.RankByNumber(0), s.RankByNumber(7)
	if kind, bw, _ := s.Path(a.Node, b.Node); kind != topo.NVL || bw != 240 {
		t.Errorf("from GPU 0 to 7: %s %g", kind, bw)
	}
	if kind, bw, _ := s.Path(a.Node, s.Nodes[topo.NETNode][0]); kind != topo.PIX || bw != 24 {
		t.Errorf("from GPU 0 to its NIC: %s %g", kind, bw)
	}
	d, err := topo.Search(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ring.TypeIntra != topo.NVL || d.Ring.TypeInter > topo.PXN || d.Ring.N() < 4 {
		t.Errorf("ring %+v", d.Ring)
	}
}
