package main

import (
	"math"
	"sort"
)

// figure is one peer's result for one size in one round, microseconds.
type figure struct {
	p50, mean, p99 float64
	frontNS        float64 // ours only; negative where unknown
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	v := append([]float64(nil), values...)
	sort.Float64s(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// spread is (largest - smallest) / median: how far the rounds lay apart.
func spread(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return (high - low) / median(values)
}

func pick(figures []figure, of func(figure) float64) []float64 {
	var values []float64
	for _, f := range figures {
		values = append(values, of(f))
	}
	return values
}

func p50(f figure) float64  { return f.p50 }
func mean(f figure) float64 { return f.mean }
func p99(f figure) float64  { return f.p99 }

// table is the figures of one regime: by contender, then by size, one for each round.
type table map[string]map[int64][]figure

func (t table) add(contender string, bytes int64, f figure) {
	if t[contender] == nil {
		t[contender] = map[int64][]figure{}
	}
	t[contender][bytes] = append(t[contender][bytes], f)
}
