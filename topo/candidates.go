package topo

import (
	"cmp"
	"slices"
)

// countReach counts from how many others each GPU can be entered.
func (w *walk) countReach() {
	w.reached = make([]int, len(w.gpus))
	for h, b := range w.gpus {
		for _, a := range w.gpus {
			if p := w.sys.path(a, b); a != b && p.typ <= w.typeIntra && p.typ < DIS && p.bw >= w.bwIntra {
				w.reached[h]++
			}
		}
	}
}

// candidates puts the GPUs to try after g on the stack and returns from where.
func (w *walk) candidates(g, step int, l leg) (from int) {
	from = len(w.stack)
	ch := &w.chans[w.done]
	switch {
	case l.order == byIndex:
		w.stack = append(w.stack, step+1)
	case l.order == asBefore:
		w.stack = append(w.stack, w.chans[w.done-1].gpus[step+1])
	case l.order == turned:
		before := w.chans[w.done-1].gpus
		w.stack = append(w.stack, before[len(before)-2-step])
	case w.anyNext:
		for h := range w.gpus {
			if h != g && !ch.used[h] {
				w.stack = append(w.stack, h)
			}
		}
		w.mostRoom(w.gpus[g], w.stack[from:], intra)
	case w.switched: // a switch likes few peers: neighbours only
		n := len(w.gpus)
		prev, next := (g+n-1)%n, (g+1)%n
		for _, h := range w.sh.neighbours(prev, next) {
			if !ch.used[h] && len(w.sys.path(w.gpus[g], w.gpus[h]).links) > 0 && !slices.Contains(w.stack[from:], h) {
				w.stack = append(w.stack, h)
			}
		}
	default:
		net := -1
		if l.out >= 0 {
			net = ch.in
		}
		equal := true
		var first score
		for _, s := range w.scores(g, net) {
			if ch.used[s.g] {
				continue
			}
			if len(w.stack) == from {
				first = s
			}
			equal = equal && s.bw == first.bw && s.hops == first.hops
			w.stack = append(w.stack, s.g)
		}
		// Away from the step that leaves to the network the last one comes first, if all are equal.
		if equal && l.out >= 0 && l.out != step+1 {
			slices.Reverse(w.stack[from:])
		}
	}
	return from
}

// mostRoom sorts GPUs: those that few others reach first, because they fit in few places; then by what the way from a node has
// left, and by how good the way is.
func (w *walk) mostRoom(from *Node, list []int, v level) {
	type key struct {
		few  int
		room int64
		typ  PathType
		hops int
	}
	var few [32]key // no allocation on ordinary machines
	keys := few[:0]
	for i, h := range list {
		p := w.sys.path(from, w.gpus[h])
		k := key{few: w.reached[h], room: -1, typ: p.typ, hops: len(p.links)}
		if p.typ < DIS {
			k.room = 1 << 62
			for _, c := range w.cost(from, w.gpus[h]) {
				k.room = min(k.room, w.left[c.link]-w.amounts[v][c.rate])
			}
		}
		j := i
		for ; j > 0; j-- {
			q := keys[j-1]
			if cmp.Or(q.few-k.few, cmp.Compare(k.room, q.room), cmp.Compare(q.typ, k.typ), q.hops-k.hops) <= 0 {
				break
			}
		}
		keys = slices.Insert(keys, j, k)
		copy(list[j+1:i+1], list[j:i])
		list[j] = h
	}
}

// score is how good a GPU is as the next one: close to the channel's NIC, then close to the GPU before.
type score struct {
	g              int
	netBW, pciBW   int
	netHops        int
	bw             int
	hops, distance int
}

func (a score) compare(b score) int {
	return cmp.Or(b.netBW-a.netBW, b.pciBW-a.pciBW, a.netHops-b.netHops, b.bw-a.bw, a.hops-b.hops, a.distance-b.distance)
}

// scores sorts the GPUs that g reaches, for a channel that began at a network device (-1: none).
func (w *walk) scores(g, net int) []score {
	at := g*(len(w.nets)+1) + net + 1
	if w.sorted[at] != nil {
		return w.sorted[at]
	}
	list := []score{}
	for i := 1; i < len(w.gpus); i++ {
		h := (g + i) % len(w.gpus)
		p := w.sys.path(w.gpus[g], w.gpus[h])
		if len(p.links) == 0 {
			continue
		}
		s := score{g: h, bw: int(p.bw), hops: len(p.links), distance: i}
		if net >= 0 {
			q := w.sys.path(w.nets[net], w.gpus[h])
			s.netBW, s.netHops, s.pciBW = int(q.bw), len(q.links), int(w.sys.pciBW(w.gpus[h]))
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, score.compare)
	w.sorted[at] = list
	return list
}

// pciBW is the bandwidth of a GPU's PCI link.
func (s *System) pciBW(g *Node) float64 {
	for _, l := range g.Rank.Device.Out {
		if l.Type == PIX {
			return l.BW
		}
	}
	return 0
}
