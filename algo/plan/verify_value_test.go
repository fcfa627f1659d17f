package plan

import (
	"strings"
	"testing"
)

// combine is where wrong contributions show; what no planner can be made to do by a small change is tried here.
func TestCombine(t *testing.T) {
	const n = 2
	sums := func(rank int) value { v := input(n, rank, 0, 0); v.form = partial; return v }
	result := sums(0)
	result.form = final
	later := input(n, 1, 0, 1)
	for _, c := range []struct {
		name   string
		op     Op
		vals   []value
		spaces []Space
		want   string // "" is no error
	}{
		{"inputs", Op{Fold: true, Final: true}, []value{input(n, 0, 0, 0), input(n, 1, 0, 0)}, []Space{Send, Eager}, ""},
		{"sums and input", Op{Fold: true, Final: true}, []value{sums(0), input(n, 1, 0, 0)}, []Space{Slot, Stage}, ""},
		{"scaled again", Op{Fold: true}, []value{sums(0)}, []Space{Send}, "would be scaled again"},
		{"result scaled again", Op{Fold: true}, []value{result}, []Space{Send}, "would be scaled again"},
		{"not scaled", Op{Fold: true}, []value{input(n, 0, 0, 0)}, []Space{Slot}, "not scaled"},
		{"result folded again", Op{Fold: true}, []value{sums(1), result}, []Space{Slot, Recv}, "not scaled partial sums"},
		{"other round", Op{Fold: true}, []value{input(n, 0, 0, 0), later}, []Space{Send, Send}, "wrong chunk"},
		{"other part", Op{Fold: true}, []value{input(n, 0, 0, 0), input(n, 1, 1, 0)}, []Space{Send, Send}, "wrong chunk"},
		{"twice", Op{Fold: true}, []value{sums(0), input(n, 0, 0, 0)}, []Space{Slot, Send}, "duplicated"},
		{"incomplete", Op{Fold: true, Final: true}, []value{sums(0)}, []Space{Slot}, "ranks {1} are missing"},
		{"rounded twice", Op{Final: true}, []value{result}, []Space{Recv}, "would be rounded"},
		{"input rounded", Op{Final: true}, []value{input(n, 0, 0, 0)}, []Space{Send}, "would be rounded"},
	} {
		got, err := combine(&c.op, c.vals, c.spaces, n)
		switch {
		case c.want == "" && (err != nil || got.form != final):
			t.Errorf("%s: %s, error %v", c.name, &got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestShapeKeepsOrder(t *testing.T) {
	op := Op{Fold: true}
	fold := func(a, b value) value {
		v, err := combine(&op, []value{a, b}, []Space{Slot, Slot}, 3)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	sums := func(rank int) value { v := input(3, rank, 0, 0); v.form = partial; return v }
	a, b, c := sums(0), sums(1), sums(2)
	if fold(a, b).shape == fold(b, a).shape || fold(fold(a, b), c).shape == fold(a, fold(b, c)).shape {
		t.Error("another order of folding has the same shape")
	}
	once, again := fold(fold(a, b), c), fold(fold(a, b), c)
	if once.shape != again.shape {
		t.Error("the same order of folding has another shape")
	}
}
