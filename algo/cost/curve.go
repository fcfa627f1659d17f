package cost

import "math"

// Point is a value at a number of bytes.
type Point struct{ Bytes, Value float64 }

// Curve goes through its points, which are in the order of bytes, straight over the logarithm of bytes, and stays level beyond them.
type Curve []Point

// Level is the curve that has one value.
func Level(v float64) Curve { return Curve{{Bytes: 1, Value: v}} }

// At is the value at a number of bytes; 0 for a curve without points.
func (c Curve) At(bytes float64) float64 {
	if len(c) == 0 {
		return 0
	}
	if bytes <= c[0].Bytes {
		return c[0].Value
	}
	for k := 1; k < len(c); k++ {
		a, b := c[k-1], c[k]
		if bytes <= b.Bytes {
			t := math.Log(bytes/a.Bytes) / math.Log(b.Bytes/a.Bytes)
			return a.Value + t*(b.Value-a.Value)
		}
	}
	return c[len(c)-1].Value
}
