package topo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oracle is what NCCL 2.30.7 computed for a file and a number of nodes (shared/topo/computed-2.30.7.json).
type oracle struct {
	Nodes    map[string]int         `json:"nodes"`
	MaxBW    float64                `json:"maxBw"`
	TotalBW  float64                `json:"totalBw"`
	GPUGPU   [][][]any              `json:"gpu_gpu"`
	GPUNet   [][][]any              `json:"gpu_net"`
	Graphs   map[string]GraphReport `json:"graphs"`
	Channels ChannelCounts          `json:"channels"`
	Rings    [][]any                `json:"ring_orders"`
	Trees    map[string][][]any     `json:"trees"`
}

type oracleFile struct {
	Error string
	By    map[int]*oracle // by number of nodes
}

// sharedDir is the folder with the collected topology files: $GCCL_SHARED/topo, or ../shared/topo beside the checkout. It is
// empty if there is none.
func sharedDir() string {
	tried := []string{filepath.Join("..", "..", "shared", "topo")}
	if v := os.Getenv("GCCL_SHARED"); v != "" {
		tried = []string{filepath.Join(v, "topo")}
	}
	for _, d := range tried {
		if _, err := os.Stat(filepath.Join(d, "computed-2.30.7.json")); err == nil {
			return d
		}
	}
	return ""
}

// needShared skips a test that needs files whose licence does not let them be copied here.
func needShared(t testing.TB) string {
	t.Helper()
	d := sharedDir()
	if d == "" {
		t.Skip("the collected topology files are not at ../shared/topo beside the checkout; GCCL_SHARED names another place")
	}
	return d
}

// measured has what NCCL 2.28.9 dumped on a machine with two H200s, its topology and its graphs: under NCCL_NVLS_ENABLE=0, which
// tests/gpu/run-multi.sh sets.
const (
	measured = "../tests/perf/results/h200"
	ownDump  = "h200-2gpu-dump+NVLS_ENABLE=0"
)

// dumpedGraphs are the graphs of NCCL's own dump, on the system of its topology. Those without channels are not there.
func dumpedGraphs(t testing.TB, s *System) map[string]GraphReport {
	t.Helper()
	const name = "nccl-graph-2gpu.xml"
	text, err := os.ReadFile(filepath.Join(measured, name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := ReadGraphs(name, text)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]GraphReport{}
	for _, g := range file.Graphs {
		kind := map[int]string{RingID: "ring", TreeID: "tree", NVLSID: "nvls", ChainID: "collnet"}[g.ID]
		if len(g.File) == 0 || kind == "" {
			continue
		}
		r, err := g.Resolve(s)
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = r.report()
	}
	return out
}

// xmlFiles lists the files that can be read here: those in testdata, and the collected ones.
func xmlFiles(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	dirs := []string{filepath.Join("testdata", "xml")}
	if d := sharedDir(); d != "" {
		dirs = append([]string{filepath.Join(d, "xml")}, dirs...)
	}
	for _, d := range dirs {
		found, err := filepath.Glob(filepath.Join(d, "*.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			files[strings.TrimSuffix(filepath.Base(f), ".xml")] = f
		}
	}
	files["h200-2gpu-dump"] = filepath.Join(measured, "nccl-topo-2gpu.xml")
	if len(files) == 1 {
		t.Fatal("no topology files: testdata/xml is missing")
	}
	return files
}

func isGraphFile(name string) bool { return strings.HasSuffix(name, ".graph") }

func loadOracle(t testing.TB) map[string]*oracleFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(needShared(t), "computed-2.30.7.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]*oracleFile{}
	for name, byNodes := range raw {
		f := &oracleFile{By: map[int]*oracle{}}
		all[name] = f
		for key, v := range byNodes {
			if key == "error" {
				if err := json.Unmarshal(v, &f.Error); err != nil {
					t.Fatal(err)
				}
				continue
			}
			o := &oracle{}
			if err := json.Unmarshal(v, o); err != nil {
				t.Fatalf("%s %s: %v", name, key, err)
			}
			f.By[int(key[0]-'0')] = o
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := []string{}
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// loadSystem builds the system of a file; "+P2P_DISABLE" in its name is an order of the user.
func loadSystem(t testing.TB, name string, nodes int) (*System, Options, error) {
	t.Helper()
	o := DefaultOptions()
	o.Nodes = nodes
	file, order, _ := strings.Cut(name, "+")
	o.P2PDisable, o.NVLSDisable = order == "P2P_DISABLE", order == "NVLS_ENABLE=0"
	where, ok := xmlFiles(t)[file]
	if !ok {
		t.Skipf("%s.xml is not in testdata, and its folder ../shared/topo is not beside the checkout (GCCL_SHARED)", file)
	}
	data, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(filepath.Base(where), data)
	if err != nil {
		return nil, o, err
	}
	s, err := Build(m, o)
	return s, o, err
}

func near(a, b float64) bool { d := a - b; return d < 0.006 && d > -0.006 }

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
