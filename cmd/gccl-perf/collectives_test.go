package main

import (
	"math"
	"testing"
)

// The factors of nccl-tests' doc/PERFORMANCE.md for 4 ranks, written out.
func TestBandwidth(t *testing.T) {
	const nranks, width, us = 4, 4, 100.0
	for _, tt := range []struct {
		coll     string
		count    int64
		alg, bus float64 // GB/s
	}{
		{"all_reduce", 250000, 10, 15},
		{"all_gather", 62500, 10, 7.5},
		{"reduce_scatter", 62500, 10, 7.5},
		{"broadcast", 250000, 10, 10},
		{"reduce", 250000, 10, 10},
		{"alltoall", 62500, 10, 7.5},
		{"gather", 62500, 10, 7.5},
		{"scatter", 62500, 10, 7.5},
		{"sendrecv", 250000, 10, 10},
		{"hypercube", 62500, 7.5, 7.5},
	} {
		c, ok := findCollective(tt.coll)
		if !ok {
			t.Fatalf("no %s", tt.coll)
		}
		alg, bus := c.bandwidth(tt.count, width, nranks, us)
		if math.Abs(alg-tt.alg) > 1e-9 || math.Abs(bus-tt.bus) > 1e-9 {
			t.Errorf("%s: alg %g bus %g, want %g %g", tt.coll, alg, bus, tt.alg, tt.bus)
		}
	}
	c, _ := findCollective("all_reduce")
	if alg, bus := c.bandwidth(1, 4, 1, 0); alg != 0 || bus != 0 {
		t.Errorf("no time: %g %g", alg, bus)
	}
	if _, bus := c.bandwidth(1000, 4, 1, 10); bus != 0 {
		t.Errorf("one rank moves nothing over the bus, got %g", bus)
	}
}

func TestBlockCount(t *testing.T) {
	for _, tt := range []struct {
		coll          string
		bytes         int64
		width, nranks int
		count, shown  int64
	}{
		{"all_reduce", 8, 4, 4, 2, 8},
		{"all_reduce", 7, 4, 4, 1, 4},
		{"all_gather", 1024, 4, 4, 64, 1024},
		{"all_gather", 1000, 4, 3, 80, 960}, // 83 cut to a multiple of 4 elements
		{"scatter", 8, 4, 4, 0, 0},
		{"gather", 1024, 8, 4, 32, 1024},
		{"sendrecv", 12, 8, 4, 1, 8},
	} {
		c, _ := findCollective(tt.coll)
		count := c.blockCount(tt.bytes, tt.width, tt.nranks)
		if shown := c.shownBytes(count, tt.width, tt.nranks); count != tt.count || shown != tt.shown {
			t.Errorf("%s %d B: count %d shown %d, want %d %d", tt.coll, tt.bytes, count, shown, tt.count, tt.shown)
		}
	}
}
