package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
)

var (
	dtypes = []Dtype{Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16, Float8e4m3,
		Float8e5m2}
	ops     = []Op{Sum, Prod, Max, Min}
	lengths = []int{0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025}
)

func fold(t *testing.T, isa string, dt Dtype, op Op, dst []Dest, src []Source, n int, div uint64) {
	t.Helper()
	if err := Fold(isa, dt, op, dst, src, n, div); err != nil {
		t.Fatal(err)
	}
}

func TestChoiceAgreesWithCpuid(t *testing.T) {
	if got, want := Selected(), Best(); got != want {
		t.Errorf("C selects %q, cpuid %q", got, want)
	}
	names := Available()
	if names[0] != "c" || !slices.Contains(names, Best()) {
		t.Errorf("available %v, best %q", names, Best())
	}
	t.Log("sets of kernels:", names)
}

func TestForce(t *testing.T) {
	best := Selected()
	for _, isa := range Available() {
		if err := Force(isa); err != nil || Selected() != isa {
			t.Errorf("force %q: selected %q, error %v", isa, Selected(), err)
		}
	}
	if err := Force("mmx"); err == nil {
		t.Error("force of an unknown set succeeded")
	}
	if err := Force(""); err != nil || Selected() != best {
		t.Errorf("after force \"\": selected %q, want %q, error %v", Selected(), best, err)
	}
}

func TestSizes(t *testing.T) {
	for i, dt := range dtypes {
		size := []int{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1}[i]
		acc := []int{1, 1, 4, 4, 8, 8, 4, 4, 8, 4, 4, 4}[i]
		if dt.Size() != size || dt.AccSize() != acc {
			t.Errorf("type %d: %d and %d bytes, want %d and %d", dt, dt.Size(), dt.AccSize(), size, acc)
		}
	}
	if Dtype(12).Size() != 0 || Dtype(-1).AccSize() != 0 {
		t.Error("an unknown type has a size")
	}
}

func TestBadArguments(t *testing.T) {
	b := make([]byte, 64)
	d, s := []Dest{{Data: b}}, []Source{{Data: b}, {Data: b}}
	for _, c := range []struct {
		name string
		dt   Dtype
		op   Op
		src  []Source
	}{
		{"type 12", 12, Sum, s}, {"type -1", -1, Sum, s}, {"op 4", Int8, 4, s}, {"op -1", Int8, -1, s},
		{"no source", Int8, Sum, nil},
	} {
		if Fold("c", c.dt, c.op, d, c.src, 1, 0) == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	if Fold("c", Int64, Sum, d, s, 9, 0) == nil {
		t.Error("short buffers: no error")
	}
	if Fold("none", Int64, Sum, d, s, 1, 0) == nil {
		t.Error("unknown set: no error")
	}
}

// variant is a way to ask for a fold.
type variant struct {
	name                                   string
	partialSrc, scaled, partialDst, stream int // of how many sources or destinations
	div                                    uint64
}

var variants = []variant{
	{name: "plain"},
	{name: "partial sources", partialSrc: 2},
	{name: "all partial", partialSrc: 99, partialDst: 99},
	{name: "partial destination", partialDst: 1},
	{name: "scaled", scaled: 99},
	{name: "scaled, streamed", scaled: 1, stream: 99},
	{name: "streamed", stream: 1},
	{name: "divided", div: 3},
	{name: "divided, partial", partialSrc: 1, scaled: 1, partialDst: 1, stream: 1, div: 17},
}

func scaleFor(r *rand.Rand, dt Dtype) uint64 {
	switch {
	case isInt(dt):
		return r.Uint64()
	case dt == Float64:
		return math.Float64bits(1 / float64(1+r.Intn(16)))
	}
	return uint64(math.Float32bits(1 / float32(1+r.Intn(16))))
}

// apply marks sources and destinations, and gives the bytes of an element of each.
func (v variant) apply(r *rand.Rand, dt Dtype, dst []Dest, src []Source) (dsz, ssz []int) {
	size := map[bool]int{false: dt.Size(), true: dt.AccSize()}
	for i := range src {
		place := (len(src) - i) % len(src) // the first source is not always among the few
		src[i].Partial = place < v.partialSrc
		src[i].Scaled = i < v.scaled
		src[i].Scale = scaleFor(r, dt)
		ssz = append(ssz, size[src[i].Partial])
	}
	for i := range dst {
		dst[i].Partial = len(dst)-1-i < v.partialDst
		dst[i].Stream = i < v.stream
		dsz = append(dsz, size[dst[i].Partial])
	}
	return dsz, ssz
}

// TestPlainMatchesOracle holds the plain C kernels against arithmetic written without them.
func TestPlainMatchesOracle(t *testing.T) {
	const n = 333
	r := rand.New(rand.NewSource(1))
	for _, dt := range dtypes {
		for _, op := range ops {
			for _, v := range variants {
				for _, nsrc := range []int{1, 2, 3, 5, 17} {
					src, got, want := make([]Source, nsrc), make([]Dest, 2), make([]Dest, 2)
					dsz, ssz := v.apply(r, dt, got, src)
					for i := range src {
						src[i].Data = make([]byte, n*ssz[i])
						fill(r, dt, src[i].Partial, src[i].Data)
					}
					for i := range got {
						want[i] = got[i]
						got[i].Data, want[i].Data = make([]byte, n*dsz[i]), make([]byte, n*dsz[i])
					}
					fold(t, "c", dt, op, got, src, n, v.div)
					oracle(dt, op, want, src, n, v.div)
					for k := range got {
						if i := differ(got[k].Data, want[k].Data, dsz[k]); i >= 0 {
							t.Fatalf("type %d op %d %s, %d sources: destination %d element %d is %x, want %x", dt, op,
								v.name, nsrc, k, i, got[k].Data[i*dsz[k]:][:dsz[k]], want[k].Data[i*dsz[k]:][:dsz[k]])
						}
					}
				}
			}
		}
	}
}

// differ is the index of the first element that differs, or -1.
func differ(a, b []byte, size int) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := 0; ; i += size {
		if !bytes.Equal(a[i:i+size], b[i:i+size]) {
			return i / size
		}
	}
}

// TestSetsAgree runs every set of kernels against plain C, bit for bit, over shapes, lengths and places. Every
// buffer touches or nears a page that may not be touched, and bytes beside destinations must stay.
func TestSetsAgree(t *testing.T) {
	const maxSrc, maxDst = 17, 3
	var srcMem [maxSrc]*arena
	var dstMem, refMem [maxDst]*arena
	room := 1025*8 + 64*8
	for i := range srcMem {
		srcMem[i] = newArena(t, room)
	}
	for i := range dstMem {
		dstMem[i], refMem[i] = newArena(t, room), newArena(t, room)
	}
	isas := Available()[1:]
	if len(isas) == 0 {
		isas = []string{"c"} // the guards still judge it
	}
	for _, dt := range dtypes {
		t.Run(fmt.Sprint("type", int(dt)), func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(dt)))
			for i := range srcMem {
				fill(r, dt, i%2 == 1, srcMem[i].mem)
			}
			shape := 0
			for _, op := range ops {
				for _, nsrc := range []int{1, 2, 3, 5, 8, 17} {
					for ndst := 1; ndst <= 3; ndst++ {
						for _, n := range lengths {
							for skip := range 16 {
								if testing.Short() && (shape+skip)%13 != 0 {
									continue
								}
								v := variants[0]
								if shape%2 == 1 {
									v = variants[(shape/2+skip)%len(variants)]
								}
								src, dst, ref := make([]Source, nsrc), make([]Dest, ndst), make([]Dest, ndst)
								dsz, ssz := v.apply(r, dt, dst, src)
								for i := range src {
									src[i].Data = srcMem[i].place(n*ssz[i], (skip+3*i)%16*ssz[i], (skip+i)%2 == 0)
								}
								at := func(k int) (bytes, skipped int, atEnd bool) {
									return n * dsz[k], (skip + 5*k) % 16 * dsz[k], (skip+k)%3 != 0
								}
								for k := range ref {
									ref[k] = dst[k]
									ref[k].Data = refMem[k].place(at(k))
								}
								fold(t, "c", dt, op, ref, src, n, v.div)
								for _, isa := range isas {
									for k := range dst {
										dst[k].Data = dstMem[k].place(at(k))
										dstMem[k].poisonAround(at(k))
									}
									fold(t, isa, dt, op, dst, src, n, v.div)
									for k := range dst {
										if i := differ(dst[k].Data, ref[k].Data, dsz[k]); i >= 0 {
											t.Fatalf("%s: op %d %s, %d to %d, n %d, skip %d: destination %d element %d is %x, plain C %x",
												isa, op, v.name, nsrc, ndst, n, skip, k, i,
												dst[k].Data[i*dsz[k]:][:dsz[k]], ref[k].Data[i*dsz[k]:][:dsz[k]])
										}
										if !dstMem[k].checkAround(at(k)) {
											t.Fatalf("%s: op %d %s, %d to %d, n %d, skip %d: bytes beside destination %d changed",
												isa, op, v.name, nsrc, ndst, n, skip, k)
										}
									}
								}
							}
							shape++
						}
					}
				}
			}
		})
	}
}

// TestLarge crosses several blocks, with misaligned streamed destinations.
func TestLarge(t *testing.T) {
	const n = 3*8192 + 77
	r := rand.New(rand.NewSource(3))
	for _, dt := range dtypes {
		for _, v := range variants {
			for _, nsrc := range []int{1, 2, 4} {
				src, want := make([]Source, nsrc), make([]Dest, 2)
				dsz, ssz := v.apply(r, dt, want, src)
				for i := range src {
					src[i].Data = make([]byte, n*ssz[i])
					fill(r, dt, src[i].Partial, src[i].Data)
				}
				for k := range want {
					want[k].Data = make([]byte, n*dsz[k])
				}
				oracle(dt, Sum, want, src, n, v.div)
				for _, isa := range Available() {
					got := slices.Clone(want)
					for k := range got {
						got[k].Data = make([]byte, (n+3)*dsz[k])[(2+k)*dsz[k]:][:n*dsz[k]]
					}
					fold(t, isa, dt, Sum, got, src, n, v.div)
					for k := range got {
						if i := differ(got[k].Data, want[k].Data, dsz[k]); i >= 0 {
							t.Fatalf("%s: type %d %s, %d sources: destination %d element %d is %x, want %x", isa, dt,
								v.name, nsrc, k, i, got[k].Data[i*dsz[k]:][:dsz[k]], want[k].Data[i*dsz[k]:][:dsz[k]])
						}
					}
				}
			}
		}
	}
}

// TestInPlace makes each destination the same memory as a source.
func TestInPlace(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for _, isa := range Available() {
		for _, dt := range dtypes {
			for _, v := range variants {
				for _, nsrc := range []int{1, 2, 3, 8} {
					for _, n := range []int{1, 33, 8195} {
						src, want := make([]Source, nsrc), make([]Dest, min(nsrc, 3))
						dsz, ssz := v.apply(r, dt, want, src)
						for i := range src {
							src[i].Data = make([]byte, n*ssz[i])
							fill(r, dt, src[i].Partial, src[i].Data)
						}
						for k := range want {
							want[k].Data = make([]byte, n*dsz[k])
						}
						fold(t, isa, dt, Sum, want, src, n, v.div)
						got := slices.Clone(want)
						for k := range got {
							same := src[nsrc-1-k]
							if same.Partial == got[k].Partial || dt.Size() == dt.AccSize() {
								got[k].Data = same.Data
							} else {
								got[k].Data = make([]byte, n*dsz[k])
							}
						}
						fold(t, isa, dt, Sum, got, src, n, v.div)
						for k := range got {
							if i := differ(got[k].Data, want[k].Data, dsz[k]); i >= 0 {
								t.Fatalf("%s: type %d %s, %d sources, n %d: destination %d element %d is %x in place, %x apart",
									isa, dt, v.name, nsrc, n, k, i, got[k].Data[i*dsz[k]:][:dsz[k]],
									want[k].Data[i*dsz[k]:][:dsz[k]])
							}
						}
					}
				}
			}
		}
	}
}

// TestDivideExtremes divides the ends of every integer type by divisors on both sides of every boundary.
func TestDivideExtremes(t *testing.T) {
	ints := []uint64{0, 1, 2, 126, 127, 128, 129, 254, 255, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1<<63 - 1, 1 << 63,
		1<<63 + 1, 1<<64 - 1, 1<<64 - 2, 1<<64 - 127, 1<<64 - 128}
	divs := []uint64{1, 2, 3, 7, 127, 128, 255, 256, 257, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 + 1, 1<<63 - 1,
		1 << 63, 1<<63 + 1, 1<<64 - 1}
	for _, isa := range Available() {
		for _, dt := range dtypes[:Uint64+1] {
			in := make([]byte, len(ints)*dt.Size())
			for i, v := range ints {
				putInt(dt, in, i, v)
			}
			for _, div := range divs {
				got, want := []Dest{{Data: make([]byte, len(in))}}, []Dest{{Data: make([]byte, len(in))}}
				src := []Source{{Data: in}}
				fold(t, isa, dt, Sum, got, src, len(ints), div)
				oracle(dt, Sum, want, src, len(ints), div)
				if i := differ(got[0].Data, want[0].Data, dt.Size()); i >= 0 {
					t.Errorf("%s: type %d: element %d of %x / %d is %x", isa, dt, i, in, div, got[0].Data)
				}
			}
		}
	}
}

// TestConvertEveryValue widens every code of every small float, and narrows every value, every midpoint of two
// neighbours and the fp32 numbers on both sides of it.
func TestConvertEveryValue(t *testing.T) {
	for _, dt := range []Dtype{Float16, Bfloat16, Float8e4m3, Float8e5m2} {
		f := smallFor[dt]
		codes := 1 << f.bits()
		in := make([]byte, codes*dt.Size())
		for c := range codes {
			if dt.Size() == 2 {
				binary.NativeEndian.PutUint16(in[2*c:], uint16(c))
			} else {
				in[c] = byte(c)
			}
		}
		var values []float32
		for i := 1; i < len(f.values); i++ {
			mid := float32((f.values[i] + f.values[i-1]) / 2)
			for _, x := range []float32{float32(f.values[i-1]), mid} {
				values = append(values, x, math.Nextafter32(x, 0), math.Nextafter32(x, math.MaxFloat32))
			}
		}
		values = append(values, float32(f.values[len(f.values)-1]), 1, 1e30, math.MaxFloat32, float32(math.Inf(1)),
			math.SmallestNonzeroFloat32, math.Float32frombits(0x7f800001), math.Float32frombits(0x7fffffff))
		for _, x := range values {
			values = append(values, math.Float32frombits(math.Float32bits(x)|1<<31))
		}
		wide := make([]byte, 4*len(values))
		for i, x := range values {
			binary.NativeEndian.PutUint32(wide[4*i:], math.Float32bits(x))
		}
		for _, isa := range Available() {
			got, want := []Dest{{Data: make([]byte, 4*codes), Partial: true}}, []Dest{{Data: make([]byte, 4*codes), Partial: true}}
			src := []Source{{Data: in}}
			fold(t, isa, dt, Sum, got, src, codes, 0)
			oracle(dt, Sum, want, src, codes, 0)
			if i := differ(got[0].Data, want[0].Data, 4); i >= 0 {
				t.Errorf("%s: type %d: code %x widens to %x, want %x", isa, dt, i, got[0].Data[4*i:][:4], want[0].Data[4*i:][:4])
			}
			size := dt.Size()
			got, want = []Dest{{Data: make([]byte, size*len(values))}}, []Dest{{Data: make([]byte, size*len(values))}}
			src = []Source{{Data: wide, Partial: true}}
			fold(t, isa, dt, Sum, got, src, len(values), 0)
			oracle(dt, Sum, want, src, len(values), 0)
			if i := differ(got[0].Data, want[0].Data, size); i >= 0 {
				t.Errorf("%s: type %d: %x (%v) narrows to %x, want %x", isa, dt, math.Float32bits(values[i]), values[i],
					got[0].Data[size*i:][:size], want[0].Data[size*i:][:size])
			}
		}
	}
}

func TestCopy(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	in, out := newArena(t, 40000), newArena(t, 40000)
	r.Read(in.mem)
	for _, isa := range Available() {
		for _, stream := range []bool{false, true} {
			for _, n := range []int{0, 1, 63, 64, 65, 255, 4095, 4096, 4097, 8191, 20000, 33333} {
				for _, skip := range []int{0, 1, 4, 31, 63} {
					for _, atEnd := range []bool{false, true} {
						src, dst := in.place(n, (skip*7)%64, !atEnd), out.place(n, skip, atEnd)
						out.poisonAround(n, skip, atEnd)
						if err := Copy(isa, 1, dst, src, stream); err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(dst, src) || !out.checkAround(n, skip, atEnd) {
							t.Fatalf("%s: copy of %d bytes, stream %v, skip %d: wrong bytes", isa, n, stream, skip)
						}
					}
				}
			}
		}
	}
}
