package topo

import "testing"

// Every way between GPUs and to NICs is NCCL's, in type, bandwidth and number of links, and so are the numbers of nodes.
func TestPathsAreNCCLs(t *testing.T) {
	all := loadOracle(t)
	for _, name := range sortedKeys(all) {
		want := all[name]
		s, _, err := loadSystem(t, name, 1)
		if want.Error != "" {
			if err == nil {
				t.Errorf("%s: loaded, but NCCL says %q", name, want.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, nodes := range []int{1, 2, 4} {
			if w := want.By[nodes]; w != nil && w.Graphs != nil {
				comparePaths(t, name, s, w)
				if !near(s.MaxBW(nodes > 1)/10, w.MaxBW/10) || !near(s.TotalBW(nodes > 1), w.TotalBW) {
					t.Errorf("%s, %d nodes: maxBw %g totalBw %g, NCCL has %g %g", name, nodes, s.MaxBW(nodes > 1), s.TotalBW(nodes > 1), w.MaxBW, w.TotalBW)
				}
			}
		}
	}
}

func comparePaths(t *testing.T, name string, s *System, w *oracle) {
	t.Helper()
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
			typ, _, hops := s.Path(a, b)
			// NCCL 2.30.7 shows the bandwidth of the other direction, which matters for links that differ.
			_, back, _ := s.Path(b, a)
			e := w.GPUGPU[i][j]
			if typ.String() != e[0] || !near(back, e[1].(float64)) || hops != int(e[2].(float64)) {
				t.Errorf("%s: GPU %d to %d %s/%g/%d, NCCL %v", name, i, j, typ, back, hops, e)
			}
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
