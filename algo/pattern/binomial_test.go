package pattern

import (
	"testing"
)

// Every label is below the root once, subtrees are runs, and both ends of a link agree.
func TestBinomial(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for label := range n {
			self, children := Binomial(label, n)
			next := label + 1
			for k, c := range children {
				if c.Top != next || c.Top != label+1<<k {
					t.Fatalf("n %d label %d: child %d is %+v, want label %d", n, label, k, c, next)
				}
				if sub, _ := Binomial(c.Top, n); sub != c {
					t.Errorf("n %d: %d sees %+v, its parent %+v", n, c.Top, sub, c)
				}
				if c.Top&(c.Top-1) != label {
					t.Errorf("n %d: the parent of %d is not %d", n, c.Top, label)
				}
				next = c.Top + c.Size
			}
			if self != (Subtree{Top: label, Size: next - label}) {
				t.Errorf("n %d label %d: %+v, its children end before %d", n, label, self, next)
			}
			if label == 0 && self.Size != n {
				t.Errorf("n %d: the root has %d", n, self.Size)
			}
		}
	}
}
