package topo

import (
	"slices"
	"testing"
)

// Both trees over nodes: one root, everybody below it exactly once, parents and children agree, and no node is inside both
// trees with two children more than the shape needs.
func TestDoubleTree(t *testing.T) {
	for n := 1; n <= 130; n++ {
		inner := make([]int, n)
		for tree := range 2 {
			roots, below := 0, 0
			for r := range n {
				p := doublePlace(tree, r, n)
				if p.up < 0 {
					roots++
				} else if doublePlace(tree, p.up, n).downs[p.child] != r {
					t.Fatalf("%d nodes, tree %d: %d has parent %d, which does not have it as child %d", n, tree, r, p.up, p.child)
				}
				for child, d := range p.downs {
					if d < 0 {
						continue
					}
					below++
					if q := doublePlace(tree, d, n); q.up != r || q.child != child {
						t.Fatalf("%d nodes, tree %d: %d has child %d, which has parent %d as child %d", n, tree, r, d, q.up, q.child)
					}
				}
				if p.downs[0] >= 0 && p.downs[1] >= 0 {
					inner[r]++
				}
				steps := 0
				for at := r; at >= 0; at = doublePlace(tree, at, n).up {
					if steps++; steps > n {
						t.Fatalf("%d nodes, tree %d: a circle at %d", n, tree, r)
					}
				}
			}
			if roots != 1 || below != n-1 {
				t.Fatalf("%d nodes, tree %d: %d roots, %d children", n, tree, roots, below)
			}
		}
		for r, k := range inner {
			if k > 1 {
				t.Errorf("%d nodes: %d has two children in both trees", n, r)
			}
		}
	}
}

// Rings over nodes visit every rank once, and trees have one root, parents that know their children and at most three of them.
func TestChannelsOverNodes(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 4, 7} {
		for _, file := range []string{"ibm-vsi-h100-8gpu", "hgx-a100-8gpu-4nic", "oci-h100-8gpu-k8s", "t1000-1gpu-roce"} {
			s, o, err := loadIfThere(t, file, nodes)
			if s == nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := Search(s, o)
			if err != nil {
				t.Fatal(err)
			}
			job, err := NewJob(d.Copies())
			if err != nil {
				t.Fatal(err)
			}
			for c := range d.Ring.N() {
				ring := slices.Clone(job.Ring(c))
				slices.Sort(ring)
				for i, r := range ring {
					if r != i || len(ring) != nodes*len(s.Ranks) {
						t.Fatalf("%s, %d nodes, ring %d: %v", file, nodes, c, ring)
					}
				}
			}
			for c := range d.Tree.N() {
				for tree := range 2 {
					checkTree(t, file, job.Tree(c, tree), nodes*len(s.Ranks))
				}
			}
		}
	}
}

func loadIfThere(t *testing.T, file string, nodes int) (*System, Options, error) {
	t.Helper()
	if _, ok := xmlFiles(t)[file]; !ok {
		t.Logf("skipped: %s.xml is not here", file)
		return nil, Options{}, nil
	}
	return loadSystem(t, file, nodes)
}

func checkTree(t *testing.T, file string, tree map[int]RankTree, ranks int) {
	t.Helper()
	roots, below := 0, 0
	for rank, p := range tree {
		if p.Up < 0 {
			roots++
		} else if up := tree[p.Up]; !slices.Contains(up.Downs[:], rank) {
			t.Fatalf("%s: rank %d has parent %d, which does not know it", file, rank, p.Up)
		}
		for _, d := range p.Downs {
			if d >= 0 {
				below++
				if tree[d].Up != rank {
					t.Fatalf("%s: rank %d has child %d, whose parent is %d", file, rank, d, tree[d].Up)
				}
			}
		}
		steps := 0
		for at := rank; at >= 0; at = tree[at].Up {
			if steps++; steps > ranks {
				t.Fatalf("%s: a circle at rank %d", file, rank)
			}
		}
	}
	if roots != 1 || below != ranks-1 || len(tree) != ranks {
		t.Fatalf("%s: %d roots, %d children, %d of %d ranks", file, roots, below, len(tree), ranks)
	}
}

// Nodes that do not fit are an error, not a crash.
func TestJobsThatDoNotFit(t *testing.T) {
	good := func() []NodeChannels {
		return []NodeChannels{
			{Ring: [][]int{{0, 1}, {1, 0}}, Tree: [][]int{{0, 1}}, TreePattern: BalancedTree},
			{Ring: [][]int{{2}, {2}}, Tree: [][]int{{2}}, TreePattern: Tree},
		}
	}
	j, err := NewJob(good())
	if err != nil {
		t.Fatal(err)
	}
	if j.Ring(2) != nil || j.Ring(-1) != nil || j.Tree(1, 0) != nil || len(j.Ring(1)) != 3 {
		t.Error("channels that are not there")
	}
	for what, spoil := range map[string]func(n []NodeChannels){
		"fewer rings":    func(n []NodeChannels) { n[1].Ring = n[1].Ring[:1] },
		"fewer trees":    func(n []NodeChannels) { n[1].Tree = nil },
		"twice":          func(n []NodeChannels) { n[0].Ring[1] = []int{1, 1} },
		"another's rank": func(n []NodeChannels) { n[1].Tree[0] = []int{0} },
		"other ranks":    func(n []NodeChannels) { n[0].Tree[0] = []int{0, 5} },
		"short":          func(n []NodeChannels) { n[0].Tree[0] = []int{0} },
		"empty":          func(n []NodeChannels) { n[1].Ring[0] = nil },
		"negative":       func(n []NodeChannels) { n[1].Ring[0] = []int{-1} },
	} {
		n := good()
		spoil(n)
		if _, err := NewJob(n); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestAgree(t *testing.T) {
	a := Terms{BalancedTree, 16, 0, true, 20, 24, NVL, PXB}
	b := Terms{Tree, 4, 2, false, 30, 12, SYS, PIX}
	want := Terms{Tree, 4, 2, false, 20, 12, SYS, PXB}
	if got := Agree([]Terms{a, b}); got != want {
		t.Errorf("%+v", got)
	}
	if got := Agree([]Terms{b, a}); got != want {
		t.Errorf("in the other order: %+v", got)
	}
	if got := Agree(nil); got != (Terms{}) {
		t.Errorf("of nothing: %+v", got)
	}
	g := &Graph{Pattern: BalancedTree, Channels: make([]Channel, 16)}
	if u := g.Under(want); u.N() != 4 || u.BWInter != 12 || g.N() != 16 {
		t.Errorf("under the terms: %+v", u)
	}
}
