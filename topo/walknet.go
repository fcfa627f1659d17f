package topo

import "slices"

// fromNets begins a channel at each network device in turn.
func (w *walk) fromNets() {
	nets := w.choice(nil)
	begun := false
	for i := range nets {
		if w.sh.heads && begun {
			return
		}
		n := nets[(w.done+i)%len(nets)]
		net := w.nets[n]
		amount := w.amounts[inter][whole]
		if w.ports[n] < amount || (w.coll && !net.Net.Coll) {
			continue
		}
		if w.sh.closes && w.crossNic == 2 && w.done%2 == 1 && n != w.chans[w.done-1].out {
			continue
		}
		w.chans[w.done].in = n
		w.port(net, amount)
		switch {
		case w.sh.heads:
			begun = w.headAt(net, len(nets))
		case w.done > 0 && w.same:
			w.enter(net, w.chans[w.done-1].gpus[0], 0, w.firstLeg(asBefore))
		default:
			w.fromNet(net)
		}
		w.port(net, -amount)
	}
}

// fromNet begins a channel at a network device: in index order first, then at the GPUs close to the device.
func (w *walk) fromNet(net *Node) {
	if w.done == 0 && !w.switched {
		mine := w.steps
		w.steps = stepsOrder
		w.enter(net, 0, 0, w.firstLeg(byIndex))
		if w.steps != complete {
			w.steps = mine
		}
	}
	if w.anyNext {
		if w.steps <= 0 {
			return
		}
		from := len(w.stack)
		for g := range w.gpus {
			w.stack = append(w.stack, g)
		}
		w.mostRoom(net, w.stack[from:], inter)
		for i, end := from, len(w.stack); i < end; i++ {
			w.enter(net, w.stack[i], 0, w.firstLeg(byScore))
		}
		w.stack = w.stack[:from]
		return
	}
	first := net.Net.localGPU
	if first != nil {
		w.enter(net, first.Index, 0, w.firstLeg(byScore))
	}
	for _, g := range net.Net.closeGPUs {
		if g != first {
			w.enter(net, g.Index, 0, w.firstLeg(byScore))
		}
	}
}

// leave goes from GPU g to the network.
func (w *walk) leave(g, step int, l leg) {
	ch := &w.chans[w.done]
	start := w.nets[ch.in]
	for _, n := range w.choice(w.gpus[g]) {
		net := w.nets[n]
		if !w.mayLeave(n, net, start) {
			continue
		}
		v, then := inter, -1
		if w.pattern == BalancedTree {
			v = interHalf
			if step == 0 {
				then = 1
			} else if n != ch.out {
				continue
			}
		}
		if w.follow(w.gpus[g], net, v) {
			ch.out = n
			w.visit(g, step, leg{out: then, close: l.close, order: l.order})
			w.unfollow(w.gpus[g], net, v)
		}
	}
}

func (w *walk) mayLeave(n int, net, start *Node) bool {
	if a, b := net.Net.Plane, start.Net.Plane; a != Unknown && b != Unknown && a != b {
		return false
	}
	switch {
	case w.pattern == Tree:
		return net == start
	case w.sh.closes && w.crossNic == 2:
		return w.done%2 == 0 || n == w.chans[w.done-1].in
	case w.crossNic == 0:
		return sameAdapter(net, start) || (net.Net.Rail != Unknown && net.Net.Rail == start.Net.Rail)
	}
	return true
}

// choice lists the network devices to try, for one GPU or (nil) for all: their own ones first, then all that the type allows.
func (w *walk) choice(only *Node) []int {
	k := choiceKey{-1, w.typeInter}
	gpus := w.gpus
	if only != nil {
		k.gpu, gpus = only.Index, []*Node{only}
	}
	list, known := w.choices[k]
	if !known {
		list = w.choose(gpus)
		w.choices[k] = list
	}
	return list
}

type choiceKey struct {
	gpu int
	typ PathType
}

func (w *walk) choose(gpus []*Node) []int {
	var list []int
	add := func(n int) {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, g := range gpus {
		first := -1
		for c := 0; ; c++ {
			n := w.sys.localNet(g, c)
			if n == nil || n.Index == first {
				break
			}
			if first < 0 {
				first = n.Index
			}
			add(n.Index)
		}
	}
	for t := LOC; t <= w.typeInter; t++ {
		for _, g := range gpus {
			for _, n := range w.nets {
				if w.sys.path(g, n).typ == t {
					add(n.Index)
				}
			}
		}
	}
	return list
}
