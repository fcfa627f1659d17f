package pattern

// Trees is the number of trees of the double binary tree.
const Trees = 2

// Node is a place in a tree. Parent is -1 at the root.
type Node struct {
	Parent   int
	Children []int
}

// DoubleTree gives the place of a rank in one of two complementary binary trees that share only the root: a rank
// with children in one of them is a leaf of the other, so that each rank carries one vector's worth of data when
// each tree carries half. P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35 (2009), section 3: the other ranks form an in-order tree;
// the second tree is the first mirrored where their number is even, and shifted by one where it is odd.
func DoubleTree(n, root, rank, tree int) Node {
	m := n - 1 // ranks other than the root have labels 1 … m
	label := Distance(root, rank, n)
	parent, children := inOrder(toFirst(label, m, tree), n)
	node := Node{Parent: -1}
	if parent >= 0 {
		node.Parent = (root + fromFirst(parent, m, tree)) % n
	}
	for _, c := range children {
		node.Children = append(node.Children, (root+fromFirst(c, m, tree))%n)
	}
	return node
}

// toFirst maps a label of a tree to the label that has its place in tree 0.
func toFirst(label, m, tree int) int {
	switch {
	case tree == 0 || label == 0:
		return label
	case m%2 == 0:
		return m + 1 - label
	default:
		return (label+m-2)%m + 1
	}
}

// fromFirst undoes toFirst.
func fromFirst(label, m, tree int) int {
	switch {
	case tree == 0 || label == 0:
		return label
	case m%2 == 0:
		return m + 1 - label
	default:
		return label%m + 1
	}
}

// inOrder is the in-order binary tree of the labels 1 … n-1 with label 0 above its top. The height of a label is
// the number of its trailing zero bits; where a label does not exist, its left child takes its place.
func inOrder(label, n int) (parent int, children []int) {
	if label == 0 {
		top := 0
		for b := 1; b < n; b <<= 1 {
			top = b
		}
		if top == 0 {
			return -1, nil
		}
		return -1, []int{top}
	}
	bit := label & -label
	parent = (label &^ bit) | bit<<1
	if parent >= n {
		// Then every ancestor on the right is missing, and the nearest on the left takes the label.
		parent = label &^ bit
	}
	if bit>>1 > 0 {
		children = append(children, label-bit>>1)
	}
	for b := bit >> 1; b > 0; b >>= 1 {
		if label+b < n {
			children = append(children, label+b)
			break
		}
	}
	return parent, children
}
