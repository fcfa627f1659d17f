package sim

import (
	"math"
	"testing"
)

func TestWidenAndNarrow(t *testing.T) {
	for _, c := range []struct {
		t    DType
		v    float32
		bits uint32
	}{
		{Float16, 1, 0x3c00}, {Float16, -2, 0xc000}, {Float16, 65504, 0x7bff}, {Float16, 65519, 0x7bff}, {Float16, 65520, 0x7c00},
		{Float16, 0x1p-24, 1}, {Float16, 0x1p-25, 0}, {Float16, 0x1.8p-25, 1}, {Float16, 2049, 0x6800}, {Float16, 2051, 0x6802},
		{Bfloat16, 1, 0x3f80}, {Bfloat16, 257, 0x4380}, {Bfloat16, 259, 0x4382}, {Bfloat16, math.MaxFloat32, 0x7f80},
		{Float8E4M3, 1, 0x38}, {Float8E4M3, 448, 0x7e}, {Float8E4M3, 1e6, 0x7e}, {Float8E4M3, -1e6, 0xfe}, {Float8E4M3, 0x1p-9, 1}, {Float8E4M3, 17, 0x58}, {Float8E4M3, 19, 0x5a},
		{Float8E5M2, 1, 0x3c}, {Float8E5M2, 57344, 0x7b}, {Float8E5M2, 1e9, 0x7b}, {Float8E5M2, 0x1p-16, 1}, {Float8E5M2, 9, 0x48}, {Float8E5M2, 11, 0x4a},
		{Float8E5M2, float32(math.Inf(1)), 0x7b}, {Float16, float32(math.Inf(-1)), 0xfc00},
	} {
		if got := formats[c.t].narrow(c.v); got != c.bits {
			t.Errorf("%s of %v is %#x, want %#x", c.t, c.v, got, c.bits)
		}
	}
	for dt, f := range formats {
		for b := range f.sign * 2 {
			v := f.widen(b)
			back := f.narrow(v)
			switch {
			case v != v:
				if back != f.nan {
					t.Errorf("%s: NaN %#x becomes %#x", dt, b, back)
				}
			case back != b && !(dt == Float8E5M2 && b&^f.sign == 0x7c):
				t.Errorf("%s: %#x is %v and becomes %#x", dt, b, v, back)
			}
		}
	}
}

func TestPick(t *testing.T) {
	nan, zero, minus := float32(math.NaN()), float32(0), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		op         RedOp
		x, y, want float32
	}{
		{Max, nan, 1, 1}, {Max, 1, nan, 1}, {Min, nan, 1, 1}, {Max, zero, minus, zero}, {Max, minus, zero, zero},
		{Min, zero, minus, minus}, {Min, minus, zero, minus}, {Max, 2, 3, 3}, {Min, 2, 3, 2},
	} {
		a := arith{t: Float32, op: c.op}
		if got := a.fold(fromF32(c.x), fromF32(c.y)); got != fromF32(c.want) {
			t.Errorf("%s of %v and %v is %v, want %v", c.op, c.x, c.y, f32(got), c.want)
		}
	}
}

func TestIntegersWrapAndTruncate(t *testing.T) {
	a := arith{t: Int8, op: Avg, n: 3}
	if got := a.fold(a.t.wrap(100), a.t.wrap(100)); int64(got) != -56 {
		t.Errorf("100 + 100 in int8 is %d, want -56", int64(got))
	}
	if got := a.finish(a.t.wrap(num(math.MaxUint64 - 6))); int64(got) != -2 { // -7
		t.Errorf("-7 / 3 is %d, want -2", int64(got))
	}
	u := arith{t: Uint64, op: Avg, n: 2}
	if got := u.finish(math.MaxUint64); got != math.MaxUint64/2 {
		t.Errorf("largest uint64 / 2 is %d", got)
	}
}
