package tune

import (
	"errors"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
)

const numAllReduce, numAllGather = 4, 2

func baseTable(t *testing.T, s Settings, nranks int) Table {
	t.Helper()
	base, _, err := Default(nranks, s)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func text(t Table, c plan.Coll) string { return t.of(c).String() }

func TestForeignLeavesWhatItDoesNotChange(t *testing.T) {
	s := Settings{EagerBytes: 512}
	base := baseTable(t, s, 4)
	asked := map[int]bool{}
	got, notes, err := Foreign(base, 4, s, 8, func(c int, bytes int64, costs *Costs) (int, error) {
		asked[c] = true
		if costs[1][simple] <= 0 || c == numAllReduce && costs[0][simple] <= 0 || costs[1][0] != -1 || costs[4][simple] != -1 {
			t.Errorf("costs of collective %d, %d bytes: %v", c, bytes, costs)
		}
		return 0, nil
	})
	if err != nil || len(notes) > 0 || got.String() != base.String() {
		t.Errorf("%v, %v: got\n%swant\n%s", err, notes, got, base)
	}
	if len(asked) != 5 {
		t.Errorf("asked about %v", asked)
	}
}

func TestForeignDecides(t *testing.T) {
	s := Settings{EagerBytes: 512}
	base := baseTable(t, s, 4)
	got, notes, err := Foreign(base, 4, s, 8, func(c int, bytes int64, costs *Costs) (int, error) {
		switch {
		case c == numAllReduce && bytes >= 1000 && bytes <= 70000:
			costs[1][simple] = 0
			return 4, nil
		case c == numAllReduce && bytes > 70000 && bytes <= 70007: // a second change between two powers of two
			costs[0][simple] = 0
		case c == numAllGather && bytes >= 4096: // of all ranks together
			costs[1][simple] = 0
			costs[1][0] = 0 // cannot be taken
		}
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "all_reduce 512 eager\nall_reduce 999 direct\nall_reduce 70000 ring simple 4\nall_reduce 70007 tree\nall_reduce * direct\n"
	if text(got, plan.AllReduce) != want {
		t.Errorf("got\n%swant\n%s", text(got, plan.AllReduce), want)
	}
	if want := "all_gather 512 eager\nall_gather 1023 direct\nall_gather * ring\n"; text(got, plan.AllGather) != want {
		t.Errorf("got\n%swant\n%s", text(got, plan.AllGather), want)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "all_gather: the tuner gives a cost to ways that cannot be taken") {
		t.Errorf("notes %q", notes)
	}
	if text(got, plan.AllToAll) != text(base, plan.AllToAll) {
		t.Error("a collective that nobody asks about has changed")
	}
}

// A cost above our own method's changes nothing; one of a method that is ours already can be raised.
func TestForeignRaisesCosts(t *testing.T) {
	s := Settings{EagerBytes: 512, Algo: "ring,tree"}
	base := baseTable(t, s, 4)
	got, _, err := Foreign(base, 4, s, 8, func(_ int, _ int64, costs *Costs) (int, error) {
		costs[1][simple] = 1e9
		return 0, nil
	})
	if err != nil || strings.Contains(text(got, plan.AllReduce), "ring") || !strings.Contains(text(got, plan.AllReduce), "tree") {
		t.Errorf("%v: %s", err, text(got, plan.AllReduce))
	}
	s = Settings{EagerBytes: 512}
	base = baseTable(t, s, 4)
	if got, _, err = Foreign(base, 4, s, 8, func(_ int, _ int64, costs *Costs) (int, error) {
		costs[1][simple] = 1e9
		return 0, nil
	}); err != nil || got.String() != base.String() {
		t.Errorf("%v: %s", err, got)
	}
}

// Who comes before a tuner.
func TestForeignKnowsItsPlace(t *testing.T) {
	ring := func(_ int, _ int64, costs *Costs) (int, error) {
		if costs[1][simple] >= 0 {
			costs[1][simple] = 0
		}
		return 0, nil
	}
	file, err := Parse("all_reduce * rd\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		s        Settings
		contains string
	}{
		{"a file", Settings{EagerBytes: 512, Table: file}, "all_reduce * rd\n"},
		{"NCCL_ALGO", Settings{EagerBytes: 512, Algo: "tree"}, "all_reduce * tree\n"},
		{"order of folding", Settings{EagerBytes: 512, RankOrder: true}, "all_reduce * direct\n"},
		{"nobody", Settings{EagerBytes: 512}, "all_reduce * ring\n"},
	} {
		got, _, err := Foreign(baseTable(t, c.s, 4), 4, c.s, 8, ring)
		if err != nil || !strings.HasSuffix(text(got, plan.AllReduce), c.contains) {
			t.Errorf("%s: %v, %s", c.name, err, text(got, plan.AllReduce))
		}
	}
}

func TestForeignKeepsTheWidestRanges(t *testing.T) {
	s := Settings{EagerBytes: 512}
	got, notes, err := Foreign(baseTable(t, s, 4), 4, s, 3, func(_ int, bytes int64, costs *Costs) (int, error) {
		costs[bytes>>16%2][simple] = 0 // tree and ring in turn
		return 0, nil
	})
	if err != nil || len(got.of(plan.AllReduce)) != 3 || len(notes) == 0 || got.check() != nil {
		t.Errorf("%v, %v, %v: %s", err, notes, got.check(), text(got, plan.AllReduce))
	}
}

func TestForeignFails(t *testing.T) {
	s := Settings{EagerBytes: 512}
	_, _, err := Foreign(baseTable(t, s, 4), 4, s, 8, func(c int, bytes int64, _ *Costs) (int, error) {
		if bytes > 1<<20 {
			return 0, errors.New("no idea")
		}
		return 0, nil
	})
	if err == nil || !strings.Contains(err.Error(), "no idea") {
		t.Errorf("%v", err)
	}
}
