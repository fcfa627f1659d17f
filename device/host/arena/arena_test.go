package arena

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
)

func newArena(t *testing.T, limit uint64) *Arena {
	t.Helper()
	a, err := New(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// resident is what the memory file takes.
func resident(t *testing.T, a *Arena) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(a.FD(), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func TestAllocFree(t *testing.T) {
	a := newArena(t, 1<<20)
	var als []Allocation
	for i := range 4 {
		al, err := a.Alloc(uint64(i*5000 + 1))
		if err != nil {
			t.Fatal(err)
		}
		if al.Offset%4096 != 0 || al.Size%4096 != 0 {
			t.Errorf("allocation %+v is not whole pages", al)
		}
		b := a.Bytes(al)
		for j := range b {
			b[j] = 0xff
		}
		als = append(als, al)
	}
	if got, ok := a.Lookup(a.Base() + uintptr(als[2].Offset) + 5000); !ok || got != als[2] {
		t.Errorf("lookup gives %+v", got)
	}
	used := resident(t, a)
	for _, i := range []int{2, 0, 3, 1} { // all orders of neighbours in the free list
		if err := a.Free(als[i]); err != nil {
			t.Fatal(err)
		}
		if xerr.CodeOf(a.Free(als[i])) != xerr.InvalidArgument {
			t.Error("freed twice")
		}
	}
	if a.Used() != 0 || len(a.free) != 1 {
		t.Errorf("%d bytes used, %d free ranges after all was freed", a.Used(), len(a.free))
	}
	if now := resident(t, a); now >= used {
		t.Errorf("the file takes %d bytes, it took %d before everything was freed", now, used)
	}
	if _, ok := a.Lookup(a.Base()); ok {
		t.Error("freed memory is found")
	}
	al, err := a.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range a.Bytes(al) {
		if b != 0 {
			t.Fatalf("byte %d of fresh memory is %d", i, b)
		}
	}
	if al.Generation <= als[3].Generation {
		t.Error("the generation did not advance")
	}
	if _, err := a.Alloc(1); xerr.CodeOf(err) != xerr.System {
		t.Errorf("allocation from a full arena: %v", err)
	}
	if _, err := a.Alloc(0); err == nil {
		t.Error("an empty allocation")
	}
}

func TestPin(t *testing.T) {
	a := newArena(t, 1<<20)
	al, err := a.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Pin(al); err != nil {
		t.Fatal(err)
	}
	a.Bytes(al)[0] = 5
	if err := a.Free(al); err != nil {
		t.Fatal(err)
	}
	if a.Used() == 0 || a.Bytes(al)[0] != 5 {
		t.Error("pinned memory is gone")
	}
	if _, ok := a.Lookup(a.Base() + uintptr(al.Offset)); ok {
		t.Error("doomed memory is found")
	}
	if a.Free(al) == nil {
		t.Error("freed twice")
	}
	if err := a.Unpin(al); err != nil {
		t.Fatal(err)
	}
	if a.Used() != 0 || a.Unpin(al) == nil {
		t.Error("memory outlives its last pin")
	}
}

func TestAlias(t *testing.T) {
	a := newArena(t, 1<<20)
	al, err := a.Alloc(8192)
	if err != nil {
		t.Fatal(err)
	}
	base, err := Reserve(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := Alias(a.FD(), base+65536, al.Offset, al.Size); err != nil {
		t.Fatal(err)
	}
	a.Bytes(al)[4097] = 42
	view := Arena{base: base}
	if got := view.Bytes(Allocation{Offset: 65536, Size: 8192})[4097]; got != 42 {
		t.Errorf("the alias shows %d", got)
	}
	if err := Unalias(base+65536, al.Size); err != nil {
		t.Error(err)
	}
	if err := Unreserve(base, 1<<20); err != nil {
		t.Error(err)
	}
}

// Mappings of one process differ in the address bits by which the first-level cache tells addresses apart, and leave room for
// large pages.
func TestMappingsAreStaggered(t *testing.T) {
	seen := map[uintptr]bool{}
	for range 8 {
		a, err := New(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if a.Base()%mapStep != 0 {
			t.Errorf("base %#x is not a multiple of %#x", a.Base(), mapStep)
		}
		place := a.Base() % (mapStep * mapSteps)
		if seen[place] {
			t.Errorf("two mappings begin at %#x modulo %#x", place, mapStep*mapSteps)
		}
		seen[place] = true
	}
}
