// Package sim owns the oracle: it runs the plans of all ranks on byte slices, in any order of execution, with
// the arithmetic that every executor must have. It must not know devices, networks or time.
package sim

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is an element type, with the numbers of ncclDataType_t (nccl.h of NCCL 2.30.7).
type DType int

const (
	Int8 DType = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	Bfloat16
	Float8E4M3
	Float8E5M2
	NumDTypes
)

var dtypes = [NumDTypes]struct {
	name  string
	bytes int
}{
	{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8},
	{"float16", 2}, {"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1},
}

func (t DType) String() string {
	if t < 0 || t >= NumDTypes {
		return fmt.Sprintf("data type %d", int(t))
	}
	return dtypes[t].name
}

// Bytes is the size of an element.
func (t DType) Bytes() int { return dtypes[t].bytes }

// Float says whether the type is a floating-point type.
func (t DType) Float() bool { return t >= Float16 }

// small says whether sums are kept in fp32.
func (t DType) small() bool { return t.Float() && t != Float32 && t != Float64 }

func (t DType) signed() bool { return t == Int8 || t == Int32 || t == Int64 }

// acc is the type of partial sums.
func (t DType) acc() DType {
	if t.small() {
		return Float32
	}
	return t
}

// num is an element in hand: the bits of an fp32 or fp64, or an integer extended to 64 bits.
type num uint64

func f32(v num) float32     { return math.Float32frombits(uint32(v)) }
func f64(v num) float64     { return math.Float64frombits(uint64(v)) }
func fromF32(v float32) num { return num(math.Float32bits(v)) }
func fromF64(v float64) num { return num(math.Float64bits(v)) }
func (t DType) wrap(v num) num {
	switch t {
	case Int8:
		return num(int64(int8(v)))
	case Uint8:
		return num(uint8(v))
	case Int32:
		return num(int64(int32(v)))
	case Uint32:
		return num(uint32(v))
	}
	return v
}

// load reads an element. Small floats are widened.
func (t DType) load(b []byte) num {
	switch t {
	case Float16, Bfloat16:
		return fromF32(formats[t].widen(uint32(binary.NativeEndian.Uint16(b))))
	case Float8E4M3, Float8E5M2:
		return fromF32(formats[t].widen(uint32(b[0])))
	}
	switch t.Bytes() {
	case 1:
		return t.wrap(num(b[0]))
	case 4:
		return t.wrap(num(binary.NativeEndian.Uint32(b)))
	}
	return num(binary.NativeEndian.Uint64(b))
}

// store writes an element. Small floats are rounded, and NaNs become the one quiet NaN of the type.
func (t DType) store(b []byte, v num) {
	switch {
	case t.small():
		r := formats[t].narrow(f32(v))
		if t.Bytes() == 1 {
			b[0] = uint8(r)
		} else {
			binary.NativeEndian.PutUint16(b, uint16(r))
		}
		return
	case t == Float32 && f32(v) != f32(v):
		v = 0x7fc00000
	case t == Float64 && f64(v) != f64(v):
		v = 0x7ff8000000000000
	}
	switch t.Bytes() {
	case 1:
		b[0] = uint8(v)
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	default:
		binary.NativeEndian.PutUint64(b, uint64(v))
	}
}

// Put writes a number as an element, rounded or wrapped as the type does.
func Put(t DType, b []byte, v float64) {
	switch {
	case t == Float64:
		t.store(b, fromF64(v))
	case t.Float():
		t.store(b, fromF32(float32(v)))
	default:
		t.store(b, num(int64(v)))
	}
}

// Get reads an element as a number; large integers lose bits.
func Get(t DType, b []byte) float64 {
	v := t.load(b)
	switch {
	case t == Float64:
		return f64(v)
	case t.Float():
		return float64(f32(v))
	case t.signed():
		return float64(int64(v))
	}
	return float64(v)
}
