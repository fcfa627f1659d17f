package comm

import (
	"testing"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

func TestSplit(t *testing.T) {
	e := testEngine(t)
	parents := initAll(t, e, 6)
	const none = -1
	colors, keys := []int{0, 1, none, 0, 1, -5}, []int{5, 0, 0, 1, -3, 0}
	want := []struct{ rank, n int }{{1, 2}, {1, 2}, {0, 0}, {0, 2}, {0, 2}, {0, 1}}
	kids := make([]*Comm, 6)
	for r := range kids {
		if colors[r] != none {
			kids[r] = newComm(t, e)
		}
	}
	noErrors(t, "split", each(6, func(r int) error { return parents[r].Split(kids[r], colors[r], keys[r], parents[r].Config()) }))
	for r, k := range kids {
		if k != nil && (k.Rank() != want[r].rank || k.NRanks() != want[r].n) {
			t.Errorf("parent rank %d is %d of %d in the child, want %+v", r, k.Rank(), k.NRanks(), want[r])
		}
	}
	destroyAll(t, parents) // before the children
	grand := make([]*Comm, 6)
	for r, k := range kids {
		if k != nil {
			grand[r] = newComm(t, e)
		}
	}
	noErrors(t, "split of a split", each(6, func(r int) error {
		if kids[r] == nil {
			return nil
		}
		return kids[r].Split(grand[r], 0, -r, kids[r].Config())
	}))
	destroyAll(t, kids)
	destroyAll(t, grand)
	if areas, _ := Leftovers(); areas != 0 {
		t.Errorf("%d areas are left", areas)
	}
}

func TestShrinkAndGrow(t *testing.T) {
	e := testEngine(t)
	cs := initAll(t, e, 4)
	wantCode(t, "own rank", cs[0].Shrink(newComm(t, e), []int{0}, 0, cs[0].Config()), xerr.InvalidArgument)
	wantCode(t, "nobody", cs[0].Shrink(newComm(t, e), nil, 0, cs[0].Config()), xerr.InvalidArgument)
	wantCode(t, "bad rank", cs[0].Shrink(newComm(t, e), []int{4}, 0, cs[0].Config()), xerr.InvalidArgument)
	// Rank 0 fails, so the star of the parent is gone.
	cs[0].group.Abort(xerr.New(xerr.Remote, "test", "died"))
	small := []*Comm{nil, newComm(t, e), newComm(t, e), newComm(t, e)}
	noErrors(t, "shrink", each(4, func(r int) error {
		if r == 0 {
			return nil
		}
		return cs[r].Shrink(small[r], []int{0, 0}, ShrinkAbort, cs[r].Config())
	}))
	for r := 1; r < 4; r++ {
		if small[r].Rank() != r-1 || small[r].NRanks() != 3 {
			t.Errorf("rank %d became %d of %d", r, small[r].Rank(), small[r].NRanks())
		}
	}
	each(4, func(r int) error { return cs[r].Abort() })
	small = small[1:]
	wantCode(t, "grow to less", small[0].Grow(newComm(t, e), 3, nil, small[0].Config()), xerr.InvalidArgument)
	id, err := small[1].GrowID()
	if err != nil {
		t.Fatal(err)
	}
	big := make([]*Comm, 5)
	for r := range big {
		big[r] = newComm(t, e)
	}
	noErrors(t, "grow", each(5, func(r int) error {
		if r < 3 {
			return small[r].Grow(big[r], 5, nil, small[r].Config())
		}
		return big[r].Init(5, r, [][bootstrap.IDBytes]byte{id}, small[0].Config())
	}))
	destroyAll(t, small)
	destroyAll(t, big)
	if areas, _ := Leftovers(); areas != 0 {
		t.Errorf("%d areas are left", areas)
	}
}

func TestSuspend(t *testing.T) {
	e := testEngine(t)
	cs := initAll(t, e, 2)
	noErrors(t, "suspend", each(2, func(r int) error { return cs[r].Suspend(SuspendMem) }))
	if v, err := cs[0].MemStat(statSuspended); v != 1 || err != nil {
		t.Fatalf("suspended %d, %v", v, err)
	}
	wantCode(t, "suspend twice", cs[0].Suspend(SuspendMem), xerr.InvalidUsage)
	noErrors(t, "resume", each(2, func(r int) error { return cs[r].Resume() }))
	wantCode(t, "resume twice", cs[0].Resume(), xerr.InvalidUsage)
	_, err := cs[0].MemStat(4)
	wantCode(t, "unknown statistic", err, xerr.InvalidArgument)
	total, _ := cs[0].MemStat(statTotal)
	a, _ := cs[0].MemStat(statSuspend)
	b, _ := cs[0].MemStat(statPersist)
	if total == 0 || total != a+b {
		t.Errorf("total %d is not %d + %d", total, a, b)
	}
	destroyAll(t, cs)
}

func TestSplitOfRevoked(t *testing.T) {
	e := testEngine(t)
	cs := initAll(t, e, 2)
	noErrors(t, "revoke", each(2, func(r int) error { return cs[r].Revoke(0) }))
	kids := []*Comm{newComm(t, e), newComm(t, e)}
	noErrors(t, "split", each(2, func(r int) error { return cs[r].Split(kids[r], 0, 0, cs[r].Config()) }))
	destroyAll(t, cs)
	destroyAll(t, kids)
}
