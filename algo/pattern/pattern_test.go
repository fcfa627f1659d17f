package pattern

import (
	"math/bits"
	"slices"
	"testing"
)

func TestRing(t *testing.T) {
	for n := 1; n < 9; n++ {
		for r := range n {
			if Prev(Next(r, n), n) != r || Distance(r, Next(r, n), n) != 1%n {
				t.Errorf("ring of %d at %d: next %d, prev %d", n, r, Next(r, n), Prev(r, n))
			}
		}
	}
	if Distance(5, 2, 8) != 5 {
		t.Errorf("distance %d, want 5", Distance(5, 2, 8))
	}
}

func TestDoubleTree(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 1000} {
		for _, root := range []int{0, n / 3, n - 1} {
			inner := make([]int, n)
			for tree := range Trees {
				for r := range n {
					node := DoubleTree(n, root, r, tree)
					if len(node.Children) > 0 {
						inner[r]++
					}
					if len(node.Children) > 2 || r == root && len(node.Children) > 1 {
						t.Fatalf("n %d root %d tree %d: rank %d has children %v", n, root, tree, r, node.Children)
					}
					for _, c := range node.Children {
						if DoubleTree(n, root, c, tree).Parent != r {
							t.Fatalf("n %d root %d tree %d: rank %d is not the parent of %d", n, root, tree, r, c)
						}
					}
					depth := 0
					for at := r; at != root; depth++ {
						up := DoubleTree(n, root, at, tree).Parent
						if up < 0 || depth > bits.Len(uint(n)) || !slices.Contains(DoubleTree(n, root, up, tree).Children, at) {
							t.Fatalf("n %d root %d tree %d: rank %d does not reach the root", n, root, tree, r)
						}
						at = up
					}
				}
			}
			for r, k := range inner {
				if k > 1 && r != root {
					t.Errorf("n %d root %d: rank %d has children in both trees", n, root, r)
				}
			}
		}
	}
}

// The worked example of an in-order tree: 4 above 2 and 6, odd labels below.
func TestDoubleTreeOfEight(t *testing.T) {
	for rank, want := range []Node{
		{-1, []int{4}}, {2, nil}, {4, []int{1, 3}}, {2, nil}, {0, []int{2, 6}}, {6, nil}, {4, []int{5, 7}}, {6, nil},
	} {
		if got := DoubleTree(8, 0, rank, 0); got.Parent != want.Parent || !slices.Equal(got.Children, want.Children) {
			t.Errorf("rank %d is %+v, want %+v", rank, got, want)
		}
	}
}

func TestDoubling(t *testing.T) {
	for n := 1; n < 40; n++ {
		core, levels := Core(n)
		if core != 1<<levels || core > n || core*2 <= n {
			t.Errorf("core of %d is %d, %d levels", n, core, levels)
		}
	}
	if Partner(5, 1) != 7 || Partner(7, 1) != 5 {
		t.Errorf("partners %d and %d, want 7 and 5", Partner(5, 1), Partner(7, 1))
	}
	if first, n := Block(13, 2); first != 12 || n != 4 {
		t.Errorf("block %d, %d, want 12, 4", first, n)
	}
}
