package topo

import "slices"

// NVLS channels are heads: each reduces and broadcasts its share through the NVLink switch, with all GPUs taking part.
var nvlsShape = shape{
	heads:      true,
	leaveAt:    func(int) int { return 0 },
	neighbours: func(_, next int) []int { return []int{next} },
}

// head books what one head moves: every GPU reads from and writes to the switch, the head itself twice.
func (w *walk) head(g int) {
	nvs := w.sys.Nodes[NVSNode][0]
	size := func(d int) level {
		if d == g {
			return intraTwice
		}
		return intra
	}
	down, up := 0, 0
	for down < len(w.gpus) && w.follow(nvs, w.gpus[down], size(down)) {
		down++
	}
	if down == len(w.gpus) {
		for up < len(w.gpus) && w.follow(w.gpus[up], nvs, size(up)) {
			up++
		}
		if up == len(w.gpus) {
			w.visit(-1, len(w.gpus), leg{out: -1, close: -1})
		}
	}
	for up--; up >= 0; up-- {
		w.unfollow(w.gpus[up], nvs, size(up))
	}
	for down--; down >= 0; down-- {
		w.unfollow(nvs, w.gpus[down], size(down))
	}
}

// headAt tries the GPU of a network device as a head, once for each GPU.
func (w *walk) headAt(net *Node, nets int) bool {
	g := net.Net.localGPU
	if w.done >= nets || g == nil {
		return false
	}
	if slices.ContainsFunc(w.chans[:w.done], func(c found) bool { return c.gpus[0] == g.Index }) {
		return false
	}
	w.enter(net, g.Index, 0, w.firstLeg(byScore))
	return true
}
