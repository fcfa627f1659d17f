package topo

// treePlace is a node's place in a binary tree over nodes. Numbers are -1 where there is nobody.
type treePlace struct {
	up    int
	downs [2]int
	child int // which child of its parent it is
}

// place is the place of r in the first tree over n nodes: r stands between the nodes that differ in its lower bits, so that
// every node with an odd number is a leaf (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction
// and scan, 2009; the shape for n that is no power of two is NCCL's, shared/topo/FORMAT.md, section 6).
func place(r, n int) treePlace {
	if r == 0 {
		top := 1
		for 2*top < n {
			top *= 2
		}
		if n == 1 {
			top = -1
		}
		return treePlace{up: -1, downs: [2]int{-1, top}}
	}
	b := r & -r
	p := treePlace{up: r ^ b | 2*b, downs: [2]int{-1, -1}}
	if p.up >= n {
		p.up = r ^ b
	}
	if r > p.up {
		p.child = 1
	}
	if half := b / 2; half > 0 {
		p.downs[0] = r - half
		for ; half > 0 && r+half >= n; half /= 2 {
		}
		if half > 0 {
			p.downs[1] = r + half
		}
	}
	return p
}

// doublePlace is the place of r in tree 0 or 1. The second tree is the first one mirrored or, for odd n, shifted by one, so
// that the leaves of one are inside the other.
func doublePlace(tree, r, n int) treePlace {
	if tree == 0 || n == 1 {
		return place(r, n)
	}
	there := func(v int) int { return n - 1 - v }
	back := there
	if n%2 == 1 {
		there = func(v int) int { return (v - 1 + n) % n }
		back = func(v int) int { return (v + 1) % n }
	}
	p := place(there(r), n)
	for _, v := range []*int{&p.up, &p.downs[0], &p.downs[1]} {
		if *v >= 0 {
			*v = back(*v)
		}
	}
	return p
}
