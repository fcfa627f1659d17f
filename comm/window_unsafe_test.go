package comm

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

func TestWindows(t *testing.T) {
	for _, n := range []int{1, 3} {
		e := testEngine(t)
		cs := initAll(t, e, n)
		a, err := arena.Process()
		if err != nil {
			t.Fatal(err)
		}
		before := a.Used()
		als, wins := make([]arena.Allocation, n), make([]control.Window, n)
		for r := range als {
			if als[r], err = a.Alloc(uint64(r+1) * 10000); err != nil {
				t.Fatal(err)
			}
			*at(a.Base() + uintptr(als[r].Offset)) = uint64(100 + r)
		}
		noErrors(t, "register", each(n, func(r int) (err error) {
			wins[r], err = cs[r].RegisterWindow(a.Base()+uintptr(als[r].Offset), uint64(r+1)*10000, 0)
			return err
		}))
		for r := range wins {
			flat, stride := wins[r].Flat()
			for q := range n {
				if got := *at(flat + uintptr(q)*uintptr(stride)); got != uint64(100+q) {
					t.Errorf("rank %d reads %d in the flat range at rank %d", r, got, q)
				}
			}
		}
		for r := range als {
			if err := a.Free(als[r]); err != nil { // before the window: it is only gone afterwards
				t.Error(err)
			}
		}
		if *at(a.Base() + uintptr(als[0].Offset)) != 100 {
			t.Error("memory under a window was given back")
		}
		if err := cs[0].DeregisterWindow(wins[0]); err != nil {
			t.Error(err)
		}
		wantCode(t, "deregister twice", cs[0].DeregisterWindow(wins[0]), xerr.InvalidArgument)
		if n > 1 {
			wantCode(t, "window of another rank", cs[0].DeregisterWindow(wins[1]), xerr.InvalidArgument)
		}
		destroyAll(t, cs) // takes the others along
		if areas, _ := Leftovers(); areas != 0 || len(e.teams) != 0 {
			t.Errorf("%d areas and %d teams are left", areas, len(e.teams))
		}
		if n == 1 && a.Used() > before || n > 1 && a.Used() != 0 {
			t.Errorf("%d bytes are in use", a.Used())
		}
	}
}

func TestBadWindows(t *testing.T) {
	e := testEngine(t, "GCCL_LSA_STRIDE", "1MiB")
	cs := initAll(t, e, 2)
	a, _ := arena.Process()
	al, err := a.Alloc(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	good := a.Base() + uintptr(al.Offset)
	ordinary := make([]byte, 64)
	for _, c := range []struct {
		what   string
		buff   uintptr
		size   uint64
		remedy string
	}{
		{"ordinary memory", uintptr(unsafe.Pointer(&ordinary[0])), 64, "ncclMemAlloc"},
		{"unaligned", good + 64, 64, "multiple of 4096"},
		{"too long", good + 4096, 4 << 20, "ends behind"},
		{"beyond the stride", good, 2 << 20, "GCCL_LSA_STRIDE"},
	} {
		buffs, sizes := []uintptr{good, c.buff}, []uint64{4096, c.size}
		errs := each(2, func(r int) error { _, err := cs[r].RegisterWindow(buffs[r], sizes[r], 0); return err })
		for r, err := range errs {
			wantCode(t, c.what+", "+rankName(r), err, xerr.InvalidArgument)
		}
		if !strings.Contains(errs[1].Error(), c.remedy) {
			t.Errorf("%s: %v", c.what, errs[1])
		}
	}
	// A bad argument is an error at once, whoever else calls; one thread may serve all ranks.
	for r := range cs {
		_, err := cs[r].RegisterWindow(good+64, 64, 0)
		wantCode(t, rankName(r), err, xerr.InvalidArgument)
	}
	if err := a.Free(al); err != nil {
		t.Error(err)
	}
	destroyAll(t, cs)
	if a.Used() != 0 {
		t.Errorf("%d bytes are in use", a.Used())
	}
}

// at gives the word at an address, as a program with a mapped window would read it.
func at(p uintptr) *uint64 { return *(**uint64)(unsafe.Pointer(&p)) }
