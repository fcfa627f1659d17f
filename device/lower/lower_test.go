package lower_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/device/layout"
	"github.com/gccl/gccl/device/lower"
)

func worlds(c plan.Coll) []int {
	if c == plan.SendRecv {
		return []int{1, 2}
	}
	return []int{1, 2, 3, 5, 8, 13, 64}
}

func TestRoundTrip(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				for _, n := range worlds(c) {
					if !planner.Fits(c, name, n) {
						continue
					}
					for _, r := range []int{0, n / 2, n - 1} {
						p, err := planner.Make(c, name, n, r, n-1)
						if err != nil {
							t.Fatal(err)
						}
						block, err := lower.Lower(p)
						if err != nil {
							t.Fatal(err)
						}
						if len(block) != lower.Size(p) {
							t.Fatalf("block has %d bytes, want %d", len(block), lower.Size(p))
						}
						q, err := lower.Raise(block)
						if err != nil {
							t.Fatal(err)
						}
						if !reflect.DeepEqual(p, q) {
							t.Fatalf("lowered\n%s\nraised\n%s", p, q)
						}
					}
				}
			})
		}
	}
}

func TestPlansThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		spoil        func(*plan.Plan)
	}{
		{"sources", "op 2: 5 sources, at most 4 fit", func(p *plan.Plan) {
			r := p.Ops[2].Src[0]
			p.Ops[2].Src = []plan.Ref{r, r, r, r, r}
		}},
		{"destinations", "op 2: 5 destinations, at most 4 fit", func(p *plan.Plan) {
			r := p.Ops[2].Dst[0]
			p.Ops[2].Dst = []plan.Ref{r, r, r, r, r}
		}},
		{"method", "name of the method", func(p *plan.Plan) { p.Method = strings.Repeat("x", 28) }},
		{"expression", "op 2: base 2147483648 does not fit", func(p *plan.Plan) { p.Ops[2].Src[0].Chunk.Base = 1 << 31 }},
		{"slots", "number of slots 65536", func(p *plan.Plan) {
			p.Edges = []plan.Edge{{Peer: 1, Slots: 1 << 16}}
			p.Places = 1 << 17
		}},
		{"edge number", "edge number 32 at rank 1, an executor holds 32", func(p *plan.Plan) {
			p.Edges = []plan.Edge{{Peer: 1, Slots: 1, Index: 32}}
			p.Places = 1
		}},
		{"edges", "65 edges, an executor holds 64", func(p *plan.Plan) {
			p.Edges = make([]plan.Edge, 65)
			for k := range p.Edges {
				p.Edges[k] = plan.Edge{Peer: 1, Slots: 1}
			}
			p.Places = 1
		}},
		{"form", "a loop without an end", func(p *plan.Plan) { p.Ops = append(p.Ops, plan.Op{Kind: plan.KindLoop, N: 1}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := planner.Make(plan.AllReduce, planner.Ring, 1, 0, 0)
			if c.name != "form" {
				p, err = planner.Make(plan.AllReduce, planner.Direct, 2, 0, 0)
				wait := slices.IndexFunc(p.Ops, func(op plan.Op) bool { return op.Kind == plan.KindWait })
				p.Ops = p.Ops[wait-1 : wait+1 : wait+1]
				p.Ops = append(p.Ops, plan.Op{Kind: plan.KindReduce,
					Src: []plan.Ref{{Space: plan.Send, Count: 1}}, Dst: []plan.Ref{{Space: plan.Recv, Count: 1}}})
				p.Ops[2].Fold = true
			}
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(p)
			dst := bytes.Repeat([]byte{7}, lower.Size(p))
			_, err = lower.Into(dst, p)
			if err == nil || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), "rank 0") {
				t.Errorf("error %v, want %q", err, c.reason)
			}
			if !bytes.Equal(dst, bytes.Repeat([]byte{7}, len(dst))) {
				t.Error("something was written")
			}
		})
	}
}

// Every plan of a large world fits.
func TestLargeWorldsFit(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			for _, n := range []int{1000, 65535, 1_000_000} {
				if !planner.Fits(c, name, n) {
					continue
				}
				p, err := planner.Make(c, name, n, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := lower.Lower(p); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestInto(t *testing.T) {
	p, err := planner.Make(plan.Broadcast, planner.Tree, 9, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := lower.Lower(p)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, lower.Size(p)+8)
	n, err := lower.Into(dst, p)
	if err != nil || !bytes.Equal(dst[:n], want) {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
	if _, err := lower.Into(dst[:16], p); err == nil || !strings.Contains(err.Error(), "the place for it 16") {
		t.Errorf("error %v for a short place", err)
	}
}

func FuzzRaise(f *testing.F) {
	for _, name := range planner.Methods(plan.AllReduce) {
		p, err := planner.Make(plan.AllReduce, name, 5, 2, 0)
		if err != nil {
			f.Fatal(err)
		}
		block, err := lower.Lower(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(block)
		f.Add(block[:len(block)-1])
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		p, err := lower.Raise(block)
		if err != nil {
			return
		}
		again, err := lower.Lower(p)
		if err != nil {
			return // a long method name
		}
		q, err := lower.Raise(again)
		if err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("error %v\n%s\n%s", err, p, q)
		}
	})
}

// What methods count on is what executors hold.
func TestEdges(t *testing.T) {
	if planner.MaxEdges != layout.MaxEdges {
		t.Errorf("planner counts on %d edges, executors hold %d", planner.MaxEdges, layout.MaxEdges)
	}
}
