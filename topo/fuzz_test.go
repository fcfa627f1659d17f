package topo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds are the files of testdata only: what a fuzzer finds from them may be kept here.
func seeds(f *testing.F, graphs bool) {
	paths, err := filepath.Glob(filepath.Join("testdata", "xml", "*.xml"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range paths {
		if isGraphFile(strings.TrimSuffix(path, ".xml")) != graphs {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 6000 {
			f.Add(data)
		}
	}
}

// FuzzRead: any bytes give a machine or an error that says where; a machine can be written, is read again as the same, and
// builds or is refused; what builds can be searched.
func FuzzRead(f *testing.F) {
	seeds(f, false)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read("fuzz.xml", data)
		if err != nil {
			return
		}
		text := written(t, m)
		again, err := Read("again.xml", []byte(text))
		if err != nil {
			t.Fatalf("what we wrote cannot be read: %v\n%s", err, text)
		}
		if second := written(t, again); second != text {
			t.Fatalf("written twice:\n%s\n%s", text, second)
		}
		if m.Version != 2 && m.Elements() <= MaxElements {
			for _, p := range ncclReads(text) {
				t.Fatalf("NCCL would not read it: %s\n%s", p, text)
			}
		}
		if m.Elements() > 64 { // building and searching large machines is for tests, not for each input
			return
		}
		for _, nodes := range []int{1, 2} {
			o := DefaultOptions()
			o.Nodes = nodes
			s, err := Build(m, o)
			if err != nil {
				return
			}
			d, err := Search(s, o)
			if err != nil {
				continue
			}
			for kind, g := range d.graphs() {
				if fallen := map[string]bool{"ring": d.Ring.Fallback, "tree": d.Tree.Fallback}; fallen[kind] {
					continue
				}
				for _, p := range checkGraph(s, nodes, g).problems {
					t.Fatalf("%d nodes, %s: %s\n%s", nodes, kind, p, text)
				}
			}
			d.Report()
		}
	})
}

// FuzzReadGraphs: any bytes give graphs or an error; what is read can be written and read again.
func FuzzReadGraphs(f *testing.F) {
	seeds(f, true)
	data, err := os.ReadFile(xmlFiles(f)["hgx-h200-8gpu-container"])
	if err != nil {
		f.Fatal(err)
	}
	m, err := Read("machine", data)
	if err != nil {
		f.Fatal(err)
	}
	s, err := Build(m, DefaultOptions())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ReadGraphs("fuzz.xml", data)
		if err != nil {
			return
		}
		var graphs []*Graph
		for _, g := range file.Graphs {
			if r, err := g.Resolve(s); err == nil {
				graphs = append(graphs, r)
			}
		}
		var b bytes.Buffer
		if err := WriteGraphs(&b, graphs...); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadGraphs("again.xml", b.Bytes()); err != nil {
			t.Fatalf("what we wrote cannot be read: %v\n%s", err, b.String())
		}
	})
}
