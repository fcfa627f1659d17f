package sim

import "math"

// format is a small float: IEEE 754 binary16, bfloat16, and the OCP 8-bit Floating Point Specification 1.0. Written
// from the definitions with fp64 arithmetic, so that it can be the reference for bit tricks.
type format struct {
	mantissa int    // bits of the fraction
	minExp   int    // exponent of the smallest normal number
	largest  uint32 // bits of the largest finite number
	inf      uint32 // bits of infinity; where conversion saturates, of the largest number
	nan      uint32 // bits of the quiet NaN that is stored
	sign     uint32
	allNaN   bool // no infinity: only the NaN has all ones
}

var formats = map[DType]format{
	Float16:    {mantissa: 10, minExp: -14, largest: 0x7bff, inf: 0x7c00, nan: 0x7e00, sign: 0x8000},
	Bfloat16:   {mantissa: 7, minExp: -126, largest: 0x7f7f, inf: 0x7f80, nan: 0x7fc0, sign: 0x8000},
	Float8E4M3: {mantissa: 3, minExp: -6, largest: 0x7e, inf: 0x7e, nan: 0x7f, sign: 0x80, allNaN: true},
	Float8E5M2: {mantissa: 2, minExp: -14, largest: 0x7b, inf: 0x7b, nan: 0x7e, sign: 0x80},
}

// widen is exact.
func (f format) widen(b uint32) float32 {
	a := b &^ f.sign
	var v float64
	switch {
	case a <= f.largest:
		fraction, exp := a&(1<<f.mantissa-1), int(a>>f.mantissa)
		if exp > 0 {
			fraction |= 1 << f.mantissa
			exp--
		}
		v = math.Ldexp(float64(fraction), exp+f.minExp-f.mantissa)
	case a == f.largest+1 && !f.allNaN:
		v = math.Inf(1)
	default:
		v = math.NaN()
	}
	if b&f.sign != 0 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// narrow rounds to nearest, ties to even. Beyond the largest number it gives inf.
func (f format) narrow(v float32) uint32 {
	if v != v {
		return f.nan
	}
	sign := uint32(0)
	if math.Signbit(float64(v)) {
		sign = f.sign
	}
	a := math.Abs(float64(v))
	if math.IsInf(a, 0) {
		return sign | f.inf
	}
	exp := f.minExp
	if a > 0 {
		exp = max(exp, math.Ilogb(a))
	}
	units := math.RoundToEven(math.Ldexp(a, f.mantissa-exp))
	// A normal number's leading bit adds one to the exponent field, and so does a carry of rounding.
	r := uint32(exp-f.minExp)<<f.mantissa + uint32(units)
	if r > f.largest {
		r = f.inf
	}
	return sign | r
}
