package tune

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

func TestDefault(t *testing.T) {
	table, notes, err := Default(8, Settings{EagerBytes: 4096})
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	for c := range plan.NumColls {
		for bytes, want := range map[int64]string{0: "eager", 4096: "eager", 4097: "direct", 1 << 40: "direct"} {
			if got := table.Pick(c, bytes); got != want {
				t.Errorf("%s of %d bytes: %q, want %q", c, bytes, got, want)
			}
		}
	}
	again, err := Parse(table.String())
	if err != nil || !reflect.DeepEqual(table, again) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, again, table)
	}
}

func TestWishes(t *testing.T) {
	for _, c := range []struct {
		algo         string
		n            int
		coll         plan.Coll
		small, large string
		notes        int
	}{
		{"", 1, plan.AllReduce, "direct", "direct", 0},
		{"Ring", 8, plan.AllReduce, "ring", "ring", 3}, // all_to_all, gather, scatter have none
		{"Ring", 8, plan.AllToAll, "eager", "direct", 3},
		{"Tree,Ring", 8, plan.AllGather, "ring", "ring", 3},
		{"ring,EAGER", 8, plan.AllReduce, "eager", "ring", 3},
		{"eager", 8, plan.AllReduce, "eager", "direct", 8},
		{"^direct", 8, plan.AllReduce, "eager", "rd", 0},
		{"^direct", 8, plan.AllToAll, "eager", "pairwise", 0},
		{"^eager", 8, plan.AllReduce, "direct", "direct", 0},
		{"^direct,eager", 8, plan.Reduce, "tree", "tree", 0},
		{"NVLS,Tree", 8, plan.AllReduce, "tree", "tree", 6},
		{"allreduce:rd;all_gather:ring", 8, plan.AllReduce, "rd", "rd", 0},
		{"allreduce:rd;all_gather:ring", 8, plan.AllGather, "ring", "ring", 0},
		{"allreduce:rd;all_gather:ring", 8, plan.Broadcast, "eager", "direct", 0},
		{"allreduce:rhd", 1 << 20, plan.AllReduce, "eager", "direct", 1},
	} {
		table, notes, err := Default(c.n, Settings{EagerBytes: 100, Algo: c.algo})
		if err != nil {
			t.Fatal(err)
		}
		if s, l := table.Pick(c.coll, 100), table.Pick(c.coll, 101); s != c.small || l != c.large || len(notes) != c.notes {
			t.Errorf("%q %s: small %q, large %q, want %q and %q; notes %q, want %d", c.algo, c.coll, s, l, c.small, c.large, notes, c.notes)
		}
		if err := table.check(); err != nil {
			t.Error(err)
		}
	}
	for algo, want := range map[string]string{
		"rong": `no algorithm "rong"`, "ring,": `no algorithm ""`, "fly:ring": `no collective "fly"`, "^": `no algorithm ""`,
	} {
		if _, _, err := Default(4, Settings{Algo: algo}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", algo, err, want)
		}
	}
}

// Across cliques every collective has a method that fits, whatever was wished.
func TestCliques(t *testing.T) {
	for _, w := range []*plan.Cliques{plan.EqualCliques(8, 1), plan.EqualCliques(8, 4), plan.EqualCliques(7, 4), plan.EqualCliques(128, 16)} {
		for _, algo := range []string{"", "ring", "eager,direct", "^ring,tree", "allreduce:direct,tree"} {
			table, _, err := Default(w.Ranks(), Settings{EagerBytes: 100, Algo: algo, Cliques: w})
			if err != nil {
				t.Fatal(err)
			}
			for c := range plan.SendRecv {
				for _, bytes := range []int64{1, 1 << 30} {
					j := planner.Job{Coll: c, Method: table.Pick(c, bytes), Ranks: w.Ranks(), Cliques: w}
					if against := j.Against(); against != "" {
						t.Errorf("%q, %d ranks in %d cliques, %s: %q: %s", algo, w.Ranks(), w.Count(), c, j.Method, against)
					}
				}
			}
		}
	}
}

func TestHash(t *testing.T) {
	a, _, _ := Default(4, Settings{EagerBytes: 100})
	b, _, _ := Default(8, Settings{EagerBytes: 100})
	c, _, _ := Default(4, Settings{EagerBytes: 101})
	if a.Hash() != b.Hash() || a.Hash() == c.Hash() {
		t.Errorf("hashes %x, %x, %x", a.Hash(), b.Hash(), c.Hash())
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"all_reduce *":                           "2 words",
		"all_redice * ring":                      "no collective",
		"all_reduce x ring":                      "no size",
		"all_reduce -1 ring":                     "no size",
		"all_to_all * ring":                      "no method",
		"all_reduce 10 eager # and above?":       "no method above 10",
		"all_reduce * ring\nall_reduce 10 eager": "never used",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("all_reduce 10 eager\nall_reduce * ring # all\n\nscatter * direct")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(table.String())
		if err != nil || !reflect.DeepEqual(table, again) {
			t.Fatalf("error %v\n%s\n%s", err, table, again)
		}
	})
}

func FuzzAlgo(f *testing.F) {
	f.Add("^ring,tree;allreduce:rd", "LL,LL128")
	f.Add("ring", "^simple;allgather:ll")
	f.Fuzz(func(t *testing.T, algo, proto string) {
		if table, _, err := Default(5, Settings{EagerBytes: 8, Algo: algo, Proto: proto}); err == nil && table.check() != nil {
			t.Fatal(table.check())
		}
	})
}
