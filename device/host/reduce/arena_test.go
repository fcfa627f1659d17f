package reduce

import (
	"encoding/binary"
	"math/rand"
	"syscall"
	"testing"
)

// arena is memory between two pages that may not be touched, so that a kernel that leaves its buffer by one byte at
// either end dies.
type arena struct{ mem []byte }

func newArena(t testing.TB, bytes int) *arena {
	t.Helper()
	guard := syscall.Getpagesize()
	size := (bytes + guard - 1) / guard * guard
	all, err := syscall.Mmap(-1, 0, size+2*guard, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatalf("mmap of %d bytes: %v", size+2*guard, err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, g := range [][]byte{all[:guard], all[guard+size:]} {
		if err := syscall.Mprotect(g, syscall.PROT_NONE); err != nil {
			t.Fatalf("mprotect: %v", err)
		}
	}
	return &arena{all[guard : guard+size]}
}

// place gives n bytes, `skip` bytes away from the end of the arena, or from its start.
func (a *arena) place(n, skip int, atEnd bool) []byte {
	if atEnd {
		end := len(a.mem) - skip
		return a.mem[end-n : end : end]
	}
	return a.mem[skip : skip+n : skip+n]
}

const poison = 0xa5

// poisonAround marks the bytes on both sides of a placed buffer; checkAround finds those that changed.
func (a *arena) around(n, skip int, atEnd bool) [][]byte {
	start := skip
	if atEnd {
		start = len(a.mem) - skip - n
	}
	return [][]byte{a.mem[max(0, start-64):start], a.mem[start+n : min(len(a.mem), start+n+64)]}
}

func (a *arena) poisonAround(n, skip int, atEnd bool) {
	for _, side := range a.around(n, skip, atEnd) {
		for i := range side {
			side[i] = poison
		}
	}
}

func (a *arena) checkAround(n, skip int, atEnd bool) bool {
	for _, side := range a.around(n, skip, atEnd) {
		for _, b := range side {
			if b != poison {
				return false
			}
		}
	}
	return true
}

var specials32 = []uint32{0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
	0x7fc00000, 0xffc00001, 0x7f800001, 0xffbfffff, 0x477fefff, 0x477ff000, 0x43e80000, 0x47700000, 0x3f800000}

var specials16 = map[Dtype][]uint16{
	Float16:  {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x3c00},
	Bfloat16: {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x3f80},
}

var specials64 = []uint64{0, 1 << 63, 1, 1<<52 - 1, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x3ff0000000000000}

// fill writes random elements; floats of 16 bits and more have many special values, and wide ones
// are often near one so that sums meet.
func fill(r *rand.Rand, t Dtype, partial bool, b []byte) {
	r.Read(b)
	switch {
	case t == Float64:
		for i := 0; i+8 <= len(b); i += 8 {
			switch r.Intn(8) {
			case 0:
				binary.NativeEndian.PutUint64(b[i:], specials64[r.Intn(len(specials64))])
			case 1, 2, 3:
				u := binary.NativeEndian.Uint64(b[i:])
				binary.NativeEndian.PutUint64(b[i:], u&^(0x7ff<<52)|uint64(1015+r.Intn(16))<<52)
			}
		}
	case specials16[t] != nil && !partial:
		for i := 0; i+2 <= len(b); i += 2 {
			if r.Intn(4) == 0 {
				binary.NativeEndian.PutUint16(b[i:], specials16[t][r.Intn(14)])
			}
		}
	case t == Float32 || !isInt(t) && partial:
		for i := 0; i+4 <= len(b); i += 4 {
			switch r.Intn(8) {
			case 0:
				binary.NativeEndian.PutUint32(b[i:], specials32[r.Intn(len(specials32))])
			case 1, 2, 3:
				u := binary.NativeEndian.Uint32(b[i:])
				binary.NativeEndian.PutUint32(b[i:], u&^(0xff<<23)|uint32(119+r.Intn(16))<<23)
			}
		}
	}
}
