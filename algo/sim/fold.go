package sim

import (
	"fmt"
	"math"
)

// RedOp is a reduction operator, with the numbers of ncclRedOp_t (nccl.h of NCCL 2.30.7).
type RedOp int

const (
	Sum RedOp = iota
	Prod
	Max
	Min
	Avg
	// PreMulSum multiplies every rank's input by a scalar of that rank, then sums. NCCL gives such operators
	// numbers at run time.
	PreMulSum
	NumRedOps
)

func (o RedOp) String() string {
	if o < 0 || o >= NumRedOps {
		return fmt.Sprintf("operator %d", int(o))
	}
	return [...]string{"sum", "prod", "max", "min", "avg", "premulsum"}[o]
}

// arith is the arithmetic of one call.
type arith struct {
	t      DType
	op     RedOp
	n      int
	scalar []num // PreMulSum: a factor of each rank, in the accumulator's type
}

// scale is what a rank's input is multiplied by; ok is false where it is not.
func (a *arith) scale(rank int) (factor num, ok bool) {
	switch {
	case a.op == PreMulSum:
		return a.scalar[rank], true
	case a.op == Avg && a.t == Float64:
		return fromF64(1 / float64(a.n)), true
	case a.op == Avg && a.t.Float():
		return fromF32(1 / float32(a.n)), true
	}
	return 0, false
}

// mul multiplies in the accumulator's type.
func (a *arith) mul(x, y num) num {
	switch acc := a.t.acc(); acc {
	case Float32:
		return fromF32(f32(x) * f32(y))
	case Float64:
		return fromF64(f64(x) * f64(y))
	default:
		return acc.wrap(x * y)
	}
}

// fold applies the operator to two elements. Nothing is fused: every step goes through the bits of the type.
func (a *arith) fold(x, y num) num {
	acc := a.t.acc()
	switch a.op {
	case Prod:
		return a.mul(x, y)
	case Max, Min:
		return a.pick(acc, x, y)
	}
	switch acc {
	case Float32:
		return fromF32(f32(x) + f32(y))
	case Float64:
		return fromF64(f64(x) + f64(y))
	}
	return acc.wrap(x + y)
}

// pick is max or min. A number wins over a NaN, +0 over -0 in max.
func (a *arith) pick(acc DType, x, y num) num {
	less := false
	switch {
	case acc.Float():
		p, q := f64(x), f64(y)
		if acc == Float32 {
			p, q = float64(f32(x)), float64(f32(y))
		}
		if math.IsNaN(p) {
			return y
		}
		if math.IsNaN(q) {
			return x
		}
		less = p < q || p == q && math.Signbit(p) && !math.Signbit(q)
	case acc.signed():
		less = int64(x) < int64(y)
	default:
		less = x < y
	}
	if less == (a.op == Max) {
		return y
	}
	return x
}

// finish divides where an integer average does.
func (a *arith) finish(x num) num {
	if a.op != Avg || a.t.Float() {
		return x
	}
	if a.t.signed() {
		return num(int64(x) / int64(a.n))
	}
	return x / num(a.n)
}

// scalarOf turns a factor into the accumulator's type; small floats round it to their own type first, as the
// scalar of a user operator has the type of the elements.
func scalarOf(t DType, v float64) num {
	b := make([]byte, 8)
	switch {
	case t == Float64:
		return fromF64(v)
	case t.Float():
		t.store(b, fromF32(float32(v)))
		return t.load(b)
	}
	return t.wrap(num(int64(v)))
}
