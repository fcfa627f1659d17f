package layout

import "unsafe"

// An array type whose length is a difference fails to compile where the difference is negative; both ways, it must
// be zero.
var (
	_ [AffineSize - unsafe.Sizeof(Affine{})]struct{}
	_ [unsafe.Sizeof(Affine{}) - AffineSize]struct{}
	_ [RefSize - unsafe.Sizeof(Ref{})]struct{}
	_ [unsafe.Sizeof(Ref{}) - RefSize]struct{}
	_ [OpSize - unsafe.Sizeof(Op{})]struct{}
	_ [unsafe.Sizeof(Op{}) - OpSize]struct{}
	_ [EdgeSize - unsafe.Sizeof(Edge{})]struct{}
	_ [unsafe.Sizeof(Edge{}) - EdgeSize]struct{}
	_ [LoweredSize - unsafe.Sizeof(Lowered{})]struct{}
	_ [unsafe.Sizeof(Lowered{}) - LoweredSize]struct{}
)
