package topo

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

const golden = "testdata/conformance.txt"

// The conformance table: every file at 1, 2 and 4 nodes. Each graph of ours passes the checker; where NCCL's passes it too, ours
// has at least its bandwidth. The table is a golden file: a changed decision shows up as a diff.
func TestConformance(t *testing.T) {
	files := xmlFiles(t)
	var all map[string]*oracleFile
	if sharedDir() != "" {
		all = loadOracle(t)
	} else if *update {
		t.Fatal("the table cannot be rewritten without the collected files: set GCCL_SHARED")
	}
	names := sortedKeys(files)
	for name := range all {
		if strings.Contains(name, "+") {
			names = append(names, name)
		}
	}
	names = append(names, ownDump)
	slices.Sort(names)
	c := &conformance{t: t}
	for _, name := range names {
		if isGraphFile(name) {
			continue
		}
		for _, nodes := range []int{1, 2, 4} {
			if !c.rows(name, nodes, all[name]) {
				break
			}
		}
	}
	c.finish(all != nil)
}

type conformance struct {
	t                        *testing.T
	lines                    []string
	equal, same, more, total int
	void                     []string
}

func (c *conformance) line(format string, args ...any) {
	c.lines = append(c.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// rows adds the rows of a file and a number of nodes. It returns false if further numbers would say the same.
func (c *conformance) rows(name string, nodes int, f *oracleFile) bool {
	s, o, err := loadSystem(c.t, name, nodes)
	if err != nil {
		c.line("%s: refused: %v", name, err)
		return false
	}
	d, err := Search(s, o)
	if err != nil {
		c.line("%s %d: refused: %v", name, nodes, err)
		return false
	}
	var want *oracle
	if f != nil {
		want = f.By[nodes]
	}
	if name == ownDump && nodes == 1 {
		want = &oracle{Graphs: dumpedGraphs(c.t, s)}
	}
	graphs := d.graphs()
	if want != nil && want.Graphs != nil && len(graphs) != len(want.Graphs) {
		c.t.Errorf("%s, %d nodes: graphs %v, NCCL has %v", name, nodes, sortedKeys(graphs), sortedKeys(want.Graphs))
	}
	for _, kind := range sortedKeys(graphs) {
		ours := graphs[kind]
		v := checkGraph(s, nodes, ours)
		for _, p := range v.problems {
			c.t.Errorf("%s, %d nodes, %s: %s", name, nodes, kind, p)
		}
		row := fmt.Sprintf("%-39s %d %-7s %-32s", name, nodes, kind, summary(ours, v, nodes))
		if want == nil || want.Graphs == nil {
			c.line("%s | no oracle", row)
			continue
		}
		c.line("%s | %s", row, c.compare(name, nodes, kind, s, ours, v, want.Graphs[kind]))
	}
	return true
}

func summary(g GraphReport, v *verdict, nodes int) string {
	return fmt.Sprintf("%dx%g/%g %s/%s = %.4g", g.NChannels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, v.total(nodes))
}

func (c *conformance) compare(name string, nodes int, kind string, s *System, ours GraphReport, v *verdict, theirs GraphReport) string {
	w := checkGraph(s, nodes, theirs)
	text := summary(theirs, w, nodes)
	c.total++
	if len(w.problems) > 0 {
		c.void = append(c.void, fmt.Sprintf("%s %d %s: %s", name, nodes, kind, w.problems[0]))
		return text + " | void: does not pass the checker"
	}
	a, b := v.total(nodes), w.total(nodes)
	switch {
	case a < b-.001*float64(max(1, ours.NChannels)):
		c.t.Errorf("%s, %d nodes, %s: %.4g GB/s, NCCL has %.4g", name, nodes, kind, a, b)
		return text + " | LESS"
	case graphText(ours) == graphText(theirs):
		c.equal++
		return text + " | equal"
	case a <= b*1.001:
		c.same++
		return text + " | same bandwidth"
	}
	c.more++
	return fmt.Sprintf("%s | +%.0f %%", text, 100*(a/b-1))
}

func (c *conformance) finish(complete bool) {
	head := []string{
		"# file, nodes, graph, ours (channels x intra/inter GB/s, worst path intra/inter = total) | NCCL 2.30.7 (2.28.9 for its own dump) | verdict",
		"# Written by go test ./topo -run TestConformance -update",
		"",
	}
	share := fmt.Sprintf("# %d graphs compared: %d exactly NCCL's (%.0f %%), %d with the same bandwidth, %d faster, %d void", c.total,
		c.equal, 100*float64(c.equal)/float64(max(1, c.total)), c.same, c.more, len(c.void))
	text := strings.Join(append(head, c.lines...), "\n") + "\n" + share + "\n"
	for _, v := range c.void {
		text += "# void: " + v + "\n"
	}
	c.t.Log(share)
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		c.t.Fatal(err)
	}
	if complete {
		if string(data) != text {
			c.t.Errorf("%s is not what the search finds now; go test ./topo -run TestConformance -update, and read the diff\n%s", golden,
				firstDifference(string(data), text))
		}
		return
	}
	c.t.Log("without ../shared/topo (GCCL_SHARED) only our half of the rows of the files in testdata is compared")
	for _, l := range c.lines {
		ours, _, _ := strings.Cut(l, " |")
		if !strings.Contains(string(data), "\n"+ours) {
			c.t.Errorf("not in %s: %s", golden, ours)
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n-%s\n+%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
