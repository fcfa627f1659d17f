package reduce

import (
	"encoding/binary"
	"math"
	"sort"
)

// The oracle: an independent, slow account of what reduce.h promises. Small floats are decoded by arithmetic and
// encoded by searching the list of all values of the format.

// smallFloat is a binary floating-point format of at most 16 bits.
type smallFloat struct {
	expBits, manBits, bias int
	fn                     bool // E4M3FN: no infinity, only the last code is NaN
	saturate               bool
	nan                    uint16
	values                 []float64 // of the codes from 0 upwards to the largest finite one, then what would follow
}

var (
	half     = newSmallFloat(smallFloat{expBits: 5, manBits: 10, bias: 15, nan: 0x7e00})
	brain    = newSmallFloat(smallFloat{expBits: 8, manBits: 7, bias: 127, nan: 0x7fc0})
	e4m3     = newSmallFloat(smallFloat{expBits: 4, manBits: 3, bias: 7, fn: true, saturate: true, nan: 0x7f})
	e5m2     = newSmallFloat(smallFloat{expBits: 5, manBits: 2, bias: 15, saturate: true, nan: 0x7e})
	smallFor = map[Dtype]*smallFloat{Float16: half, Bfloat16: brain, Float8e4m3: e4m3, Float8e5m2: e5m2}
)

func newSmallFloat(f smallFloat) *smallFloat {
	for code := uint16(0); ; code++ {
		v := f.finite(code)
		f.values = append(f.values, v)
		if d := f.decode(code); math.IsInf(d, 0) || math.IsNaN(d) {
			return &f
		}
	}
}

func (f *smallFloat) bits() int { return 1 + f.expBits + f.manBits }

// finite reads a code without sign as if the format had no special codes.
func (f *smallFloat) finite(code uint16) float64 {
	man := int(code) & (1<<f.manBits - 1)
	exp := int(code) >> f.manBits
	if exp == 0 {
		return math.Ldexp(float64(man), 1-f.bias-f.manBits)
	}
	return math.Ldexp(float64(man+1<<f.manBits), exp-f.bias-f.manBits)
}

func (f *smallFloat) decode(code uint16) float64 {
	sign := 1.0
	if code>>(f.bits()-1) != 0 {
		sign = -1
	}
	code &= 1<<(f.bits()-1) - 1
	top := uint16(1<<f.expBits-1) << f.manBits
	switch {
	case f.fn && code == top|(1<<f.manBits-1), !f.fn && code > top:
		return math.NaN()
	case !f.fn && code == top:
		return math.Inf(int(sign))
	}
	return math.Copysign(f.finite(code), sign)
}

// encode rounds to nearest, ties to the even code.
func (f *smallFloat) encode(v float64) uint16 {
	if math.IsNaN(v) {
		return f.nan
	}
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 1 << (f.bits() - 1)
	}
	v = math.Abs(v)
	last := len(f.values) - 1 // past the largest finite value: infinity, or nothing
	i := sort.SearchFloat64s(f.values, v)
	if i > last {
		i = last
	}
	if i > 0 && f.values[i] > v {
		mid := (f.values[i] + f.values[i-1]) / 2
		if v < mid || v == mid && i%2 == 1 {
			i--
		}
	}
	if i == last && f.saturate {
		i--
	}
	return sign | uint16(i)
}

func isSigned(t Dtype) bool { return t == Int8 || t == Int32 || t == Int64 }
func isInt(t Dtype) bool    { return t <= Uint64 }

// getInt reads element i, sign-extended for signed types; putInt writes the low bits.
func getInt(t Dtype, b []byte, i int) uint64 {
	switch t {
	case Int8:
		return uint64(int8(b[i]))
	case Uint8:
		return uint64(b[i])
	case Int32:
		return uint64(int32(binary.NativeEndian.Uint32(b[4*i:])))
	case Uint32:
		return uint64(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return binary.NativeEndian.Uint64(b[8*i:])
}

func putInt(t Dtype, b []byte, i int, v uint64) {
	switch t.Size() {
	case 1:
		b[i] = byte(v)
	case 4:
		binary.NativeEndian.PutUint32(b[4*i:], uint32(v))
	case 8:
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
}

// wrap brings a 64-bit result back into the type.
func wrap(t Dtype, v uint64) uint64 {
	var b [8]byte
	putInt(t, b[:], 0, v)
	return getInt(t, b[:], 0)
}

// getFloat reads element i of a float type, or of its accumulators.
func getFloat(t Dtype, partial bool, b []byte, i int) float64 {
	switch {
	case t == Float64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b[8*i:]))
	case t == Float32 || partial:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])))
	case t.Size() == 2:
		return smallFor[t].decode(binary.NativeEndian.Uint16(b[2*i:]))
	}
	return smallFor[t].decode(uint16(b[i]))
}

func putFloat(t Dtype, partial bool, b []byte, i int, v float64) {
	switch {
	case t == Float64:
		u := math.Float64bits(v)
		if v != v {
			u = 0x7ff8000000000000
		}
		binary.NativeEndian.PutUint64(b[8*i:], u)
	case t == Float32 || partial:
		u := math.Float32bits(float32(v))
		if v != v {
			u = 0x7fc00000
		}
		binary.NativeEndian.PutUint32(b[4*i:], u)
	case t.Size() == 2:
		binary.NativeEndian.PutUint16(b[2*i:], smallFor[t].encode(v))
	default:
		b[i] = byte(smallFor[t].encode(v))
	}
}

// combine applies an operator; all types but fp64 are folded in fp32.
func combine(t Dtype, op Op, a, b float64) float64 {
	switch {
	case op == Max || op == Min:
		switch {
		case a != a:
			return b
		case b != b:
			return a
		case op == Max:
			return math.Max(a, b)
		}
		return math.Min(a, b)
	case t == Float64 && op == Sum:
		return a + b
	case t == Float64:
		return a * b
	case op == Sum:
		return float64(float32(a) + float32(b))
	}
	return float64(float32(a) * float32(b))
}

func combineInt(t Dtype, op Op, a, b uint64) uint64 {
	less := a < b
	if isSigned(t) {
		less = int64(a) < int64(b)
	}
	switch {
	case op == Sum:
		return wrap(t, a+b)
	case op == Prod:
		return wrap(t, a*b)
	case (op == Max) == less:
		return b
	}
	return a
}

func divide(t Dtype, v, div uint64) uint64 {
	if !isSigned(t) {
		return v / div
	}
	neg := int64(v) < 0
	if neg {
		v = -v // magnitude, 2^63 for the smallest
	}
	if v /= div; neg {
		v = -v
	}
	return v
}

// copies says whether nothing is computed: bits pass unchanged, also those of NaNs and of fp8 infinities.
func copies(t Dtype, dst []Dest, src []Source, div uint64) bool {
	if len(src) > 1 || src[0].Scaled || isInt(t) && div != 0 {
		return false
	}
	for _, d := range dst {
		if d.Partial != src[0].Partial && t.Size() != t.AccSize() {
			return false
		}
	}
	return true
}

// oracle is Fold.
func oracle(t Dtype, op Op, dst []Dest, src []Source, n int, div uint64) {
	if copies(t, dst, src, div) {
		for _, d := range dst {
			copy(d.Data, src[0].Data)
		}
		return
	}
	for i := range n {
		if isInt(t) {
			var v uint64
			for k, s := range src {
				x := getInt(t, s.Data, i)
				if s.Scaled {
					x = wrap(t, x*s.Scale)
				}
				if k == 0 {
					v = x
				} else {
					v = combineInt(t, op, v, x)
				}
			}
			for _, d := range dst {
				if div != 0 && !d.Partial {
					putInt(t, d.Data, i, divide(t, v, div))
				} else {
					putInt(t, d.Data, i, v)
				}
			}
			continue
		}
		var v float64
		for k, s := range src {
			x := getFloat(t, s.Partial, s.Data, i)
			if s.Scaled && t == Float64 {
				x *= math.Float64frombits(s.Scale)
			} else if s.Scaled {
				x = float64(float32(x) * math.Float32frombits(uint32(s.Scale)))
			}
			if k == 0 {
				v = x
			} else {
				v = combine(t, op, v, x)
			}
		}
		for _, d := range dst {
			putFloat(t, d.Partial, d.Data, i, v)
		}
	}
}
