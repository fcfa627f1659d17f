package comm

import (
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/bootstrap"
)

func TestInitDestroyThreads(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 64} {
		e := testEngine(t)
		cs := initAll(t, e, n)
		for r, c := range cs {
			if c.ctl.State() != control.Ready || c.Rank() != r || c.NRanks() != n {
				t.Fatalf("%d ranks: rank %d: state %d rank %d nranks %d", n, r, c.ctl.State(), c.Rank(), c.NRanks())
			}
			if (n == 1) != (c.area.Size == 0) {
				t.Fatalf("%d ranks: area of %d bytes", n, c.area.Size)
			}
		}
		destroyAll(t, cs)
		if areas, peers := Leftovers(); areas != 0 || peers != 0 {
			t.Fatalf("%d ranks: %d areas and %d peers are left", n, areas, peers)
		}
	}
	if a := arena.Existing(); a != nil && a.Used() != 0 {
		t.Fatalf("%d bytes of the arena are in use", a.Used())
	}
}

func TestDisagreement(t *testing.T) {
	a, b := testEngine(t, "GCCL_EAGER_BYTES", "4096"), testEngine(t, "GCCL_EAGER_BYTES", "8192")
	id, err := a.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	ids := [][bootstrap.IDBytes]byte{id}
	cs := []*Comm{newComm(t, a), newComm(t, a), newComm(t, b)}
	errs := each(3, func(r int) error { return cs[r].Init(3, r, ids, defaultConfig(t, a)) })
	for r, err := range errs {
		wantCode(t, rankName(r), err, xerr.InvalidUsage)
		for _, part := range []string{"GCCL_EAGER_BYTES", "ranks 0-1: 4096", "rank 2: 8192"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("rank %d: %q does not say %q", r, err, part)
			}
		}
		if cs[r].ctl.State() != control.Failed {
			t.Errorf("rank %d: state %d", r, cs[r].ctl.State())
		}
		if err := cs[r].Destroy(); err != nil {
			t.Errorf("rank %d: destroy: %v", r, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	e := testEngine(t)
	id, _ := e.UniqueID()
	cfg := defaultConfig(t, e)
	for _, c := range []struct{ n, r, ids int }{{0, 0, 1}, {2, 2, 1}, {2, -1, 1}, {2, 0, 0}, {1, 0, 2}} {
		ids := make([][bootstrap.IDBytes]byte, c.ids)
		for i := range ids {
			ids[i] = id
		}
		wantCode(t, "init", newComm(t, e).Init(c.n, c.r, ids, cfg), xerr.InvalidArgument)
	}
	wantCode(t, "zero id", newComm(t, e).Init(1, 0, make([][bootstrap.IDBytes]byte, 1), cfg), xerr.InvalidArgument)
}

func TestStatesOfLife(t *testing.T) {
	e := testEngine(t)
	cs := initAll(t, e, 2)
	if err := cs[0].Finalize(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "finalize twice", cs[0].Finalize(), xerr.InvalidArgument)
	wantCode(t, "revoke finalized", cs[0].Revoke(0), xerr.InvalidArgument)
	wantCode(t, "revoke flags", cs[1].Revoke(1), xerr.InvalidArgument)
	if err := cs[1].Revoke(0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "revoke twice", cs[1].Revoke(0), xerr.InvalidArgument)
	wantCode(t, "grow of revoked", cs[1].Grow(newComm(t, e), 3, nil, cs[1].Config()), xerr.InvalidUsage)
	wantCode(t, "suspend of revoked", cs[1].Suspend(SuspendMem), xerr.InvalidUsage)
	destroyAll(t, cs)
	wantCode(t, "destroy twice", cs[0].Destroy(), xerr.InvalidArgument)
	if err := cs[0].Abort(); err != nil {
		t.Fatal(err)
	}
}

func TestLatchAndAbort(t *testing.T) {
	e := testEngine(t)
	cs := initAll(t, e, 3)
	cs[1].ctl.Latch(xerr.Remote, "test cause")
	err := cs[1].Destroy()
	wantCode(t, "destroy of failed", err, xerr.Remote)
	if !strings.Contains(err.Error(), "test cause") {
		t.Fatal(err)
	}
	for r := range cs {
		within(t, 10*time.Second, "abort", func() {
			if err := cs[r].Abort(); err != nil {
				t.Error(err)
			}
		})
		if cs[r].ctl.State() != control.Dead {
			t.Errorf("rank %d: state %d", r, cs[r].ctl.State())
		}
	}
}

func TestAbortDuringInit(t *testing.T) {
	e := testEngine(t)
	id, err := e.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	c := newComm(t, e)
	started := make(chan error, 1)
	c.Hold() // as whoever starts a job does: an abort must not come before its beginning
	go func() {
		err := c.Init(2, 0, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, e))
		c.Release()
		started <- err
	}()
	within(t, 10*time.Second, "abort", func() {
		if err := c.Abort(); err != nil {
			t.Error(err)
		}
	})
	within(t, 10*time.Second, "init", func() {
		if err := <-started; err == nil {
			t.Error("init succeeded after abort")
		}
	})
}

func TestAlgorithmWish(t *testing.T) {
	a, b := testEngine(t), testEngine(t, "NCCL_ALGO", "nonsense")
	id, err := a.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	cs := []*Comm{newComm(t, a), newComm(t, b)}
	for r, err := range each(2, func(r int) error { return cs[r].Init(2, r, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, a)) }) {
		wantCode(t, rankName(r), err, xerr.InvalidUsage)
		if !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	wish := testEngine(t, "NCCL_ALGO", "ring")
	ok := initAll(t, wish, 3)
	if err := ok[1].Plan(0, 0, 0); err != nil {
		t.Error(err)
	}
	if got := ok[1].tuned.method[0][0]; got != "ring" {
		t.Errorf("the method is %q", got)
	}
	destroyAll(t, ok)
}
