package pattern

import "math/bits"

// Subtree is a run of labels of a binomial tree: its top and how many it has, the top included.
type Subtree struct{ Top, Size int }

// Binomial gives the place of a rank in the binomial tree over the labels 0 … n-1, which count ranks from the root on: the
// parent of a label is the label without its lowest bit, so that a subtree is a run of labels. children are in the order
// of labels, smallest subtree first; the k-th is 2^k labels above.
func Binomial(label, n int) (self Subtree, children []Subtree) {
	span := label & -label
	if label == 0 {
		span = 1 << bits.Len(uint(n-1))
	}
	for k := 1; k < span && label+k < n; k <<= 1 {
		children = append(children, Subtree{Top: label + k, Size: min(k, n-label-k)})
	}
	return Subtree{Top: label, Size: min(span, n-label)}, children
}
