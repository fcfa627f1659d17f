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
	Nodes     map[string]int         `json:"nodes"`
	MaxBW     float64                `json:"maxBw"`
	TotalBW   float64                `json:"totalBw"`
	RankOrder []int                  `json:"rank_order"`
	GPUGPU    [][][]any              `json:"gpu_gpu"`
	GPUNet    [][][]any              `json:"gpu_net"`
	Graphs    map[string]GraphReport `json:"graphs"`
	Channels  ChannelCounts          `json:"channels"`
	Rings     [][]any                `json:"ring_orders"`
	Trees     map[string][][]any     `json:"trees"`
}

type oracleFile struct {
	Error string
	By    map[int]*oracle // by number of nodes
}

// sharedDir is the folder with the collected topology files: $GCCL_SHARED/topo, or shared/topo beside the checkout.
func sharedDir(t testing.TB) string {
	t.Helper()
	tried := []string{}
	if v := os.Getenv("GCCL_SHARED"); v != "" {
		tried = append(tried, filepath.Join(v, "topo"))
	}
	tried = append(tried, filepath.Join("..", "..", "shared", "topo"))
	for _, d := range tried {
		if _, err := os.Stat(filepath.Join(d, "computed-2.30.7.json")); err == nil {
			return d
		}
	}
	t.Skipf("the collected topology files are not at %s; set GCCL_SHARED", strings.Join(tried, " or "))
	return ""
}

func loadOracle(t testing.TB) map[string]*oracleFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sharedDir(t), "computed-2.30.7.json"))
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
			switch key {
			case "error":
				if err := json.Unmarshal(v, &f.Error); err != nil {
					t.Fatal(err)
				}
			default:
				n := int(key[0] - '0')
				o := &oracle{}
				if err := json.Unmarshal(v, o); err != nil {
					t.Fatalf("%s %s: %v", name, key, err)
				}
				f.By[n] = o
			}
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

// loadSystem builds the system of an entry of the oracle; "+P2P_DISABLE" in its name is an order of the user.
func loadSystem(t testing.TB, name string, nodes int) (*System, Options, error) {
	t.Helper()
	o := DefaultOptions()
	o.Nodes = nodes
	file, order, _ := strings.Cut(name, "+")
	o.P2PDisable = order == "P2P_DISABLE"
	where := filepath.Join(sharedDir(t), "xml", file+".xml")
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

func TestPathsAreNCCLs(t *testing.T) {
	all := loadOracle(t)
	for _, name := range sortedKeys(all) {
		want := all[name]
		s, _, err := loadSystem(t, name, 1)
		if want.Error != "" {
			if err == nil {
				t.Errorf("%s: loaded, but NCCL says %q", name, want.Error)
			}
			t.Logf("%s: refused: %v", name, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w := want.By[1]
		for _, k := range []Kind{GPUNode, DEVNode, PCINode, NVSNode, CPUNode, NICNode, NETNode} {
			if s.Count(k) != w.Nodes[k.String()] {
				t.Errorf("%s: %d nodes %s, NCCL has %d", name, s.Count(k), k, w.Nodes[k.String()])
			}
		}
		if len(s.Hosts) != w.Nodes["hosts"] {
			t.Errorf("%s: %d hosts, NCCL has %d", name, len(s.Hosts), w.Nodes["hosts"])
		}
		for i, a := range s.Nodes[GPUNode] {
			for j, b := range s.Nodes[GPUNode] {
				typ, bw, hops := s.Path(a, b)
				e := w.GPUGPU[i][j]
				// NCCL 2.30.7 shows the bandwidth of the other direction, which matters for links that differ.
				_, back, _ := s.Path(b, a)
				if typ.String() != e[0] || !near(back, e[1].(float64)) || hops != int(e[2].(float64)) {
					t.Errorf("%s: GPU %d to %d %s/%g/%d, NCCL %v", name, i, j, typ, bw, hops, e)
				}
			}
			if w.GPUNet == nil {
				continue
			}
			for j, b := range s.Nodes[NETNode] {
				typ, bw, _ := s.Path(a, b)
				e := w.GPUNet[i][j]
				if typ.String() != e[0] || !near(bw, e[1].(float64)) {
					t.Errorf("%s: GPU %d to NET %d %s/%g, NCCL %v", name, i, j, typ, bw, e)
				}
			}
		}
	}
}

func near(a, b float64) bool { d := a - b; return d < 0.006 && d > -0.006 }
