package topo

import "slices"

// NVLS channels are heads: each reduces and broadcasts its share through the NVLink switch, with all GPUs taking part.
var nvlsShape = shape{
	heads:      true,
	leaveAt:    func(int) int { return 0 },
	neighbours: func(_, next int) []int { return []int{next} },
}

// hasNVLS says whether the GPUs can reduce in a switch. NCCL wants as many GPUs since 2.28.9 (src/transport/nvls.cc; three up to 2.28.3, so
// that older logs of two GPUs have no heads), and the driver's word, which a description does not have: it is taken to be yes.
func (s *System) hasNVLS() bool {
	return s.minSM() >= 90 && s.Count(NVSNode) > 0 && s.Count(DEVNode) >= 2
}

// head books what one head moves: every GPU reads from and writes to the switch, the head itself twice. Ranks on one GPU share
// its part: the first one stands for all.
func (w *walk) head(g int) {
	nvs := w.sys.Nodes[NVSNode][0]
	size := func(d int) level {
		if w.heads[d] == g {
			return intraTwice
		}
		return intra
	}
	n := len(w.heads)
	gpu := func(d int) *Node { return w.gpus[w.heads[d]] }
	down, up := 0, 0
	for down < n && w.follow(nvs, gpu(down), size(down)) {
		down++
	}
	if down == n {
		for up < n && w.follow(gpu(up), nvs, size(up)) {
			up++
		}
		if up == n {
			w.visit(-1, len(w.gpus), leg{out: -1, close: -1})
		}
	}
	for up--; up >= 0; up-- {
		w.unfollow(gpu(up), nvs, size(up))
	}
	for down--; down >= 0; down-- {
		w.unfollow(nvs, gpu(down), size(down))
	}
}

// headAt tries the GPU of a network device as a head, once for each GPU.
func (w *walk) headAt(net *Node, nets int) bool {
	if w.done >= nets || net.Net.localGPU == nil {
		return false
	}
	g := net.Net.localGPU.Rank.Device.Dev.Ranks[0].Node.Index
	if slices.ContainsFunc(w.chans[:w.done], func(c found) bool { return c.gpus[0] == g }) {
		return false
	}
	w.enter(net, g, 0, w.firstLeg(byScore))
	return true
}

// firstRanks are the indices of the first rank of each GPU.
func firstRanks(s *System) []int {
	var list []int
	for _, d := range s.Nodes[DEVNode] {
		list = append(list, d.Dev.Ranks[0].Node.Index)
	}
	return list
}
