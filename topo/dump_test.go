package topo

import (
	"os"
	"path/filepath"
	"testing"
)

// The channels that NCCL chose on the machine of its own dump pass the checker, and ours are no worse: the same paths, and the same
// number of channels at the same speed where NCCL's are the best that the links allow.
func TestOwnDumpOfNCCL(t *testing.T) {
	s, o, err := loadSystem(t, "h200-2gpu-dump", 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Search(s, o)
	if err != nil {
		t.Fatal(err)
	}
	const name = "nccl-graph-2gpu.xml"
	text, err := os.ReadFile(filepath.Join(measured, name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := ReadGraphs(name, text)
	if err != nil {
		t.Fatal(err)
	}
	ours := d.graphs()
	for id, kind := range map[int]string{0: "ring", 1: "tree"} {
		var theirs *Graph
		for _, g := range file.Graphs {
			if g.ID == id {
				if theirs, err = g.Resolve(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		if theirs == nil {
			t.Fatalf("no graph %d in the file", id)
		}
		a, b := ours[kind], theirs.report()
		va, vb := checkGraph(s, 1, a), checkGraph(s, 1, b)
		t.Logf("%s: ours %s, NCCL %s", kind, summary(a, va, 1), summary(b, vb, 1))
		if len(va.problems)+len(vb.problems) > 0 {
			t.Errorf("%s: ours %v, NCCL %v", kind, va.problems, vb.problems)
		}
		if va.total(1) < vb.total(1) || a.TypeIntra != b.TypeIntra {
			t.Errorf("%s: ours %s, NCCL %s", kind, summary(a, va, 1), summary(b, vb, 1))
		}
	}
}
