package main

import "fmt"

// size is one message size with its number of calls.
type size struct {
	bytes      int64
	warmup     int
	iterations int
}

// spec is the argument form of the C programs.
func (s size) spec() string { return fmt.Sprintf("%d:%d:%d", s.bytes, s.warmup, s.iterations) }

// regime is a way of placing ranks. Ranks on their own cores and ranks that share cores are different machines:
// their figures never stand in one table.
type regime struct {
	name   string
	ranks  int
	rounds int
	sizes  []size
	floor  string // the contender that nobody can beat
	yield  bool   // more ranks than cores: peers that can yield are told to
}

func regimes(ncores, rounds int) []regime {
	var list []regime
	if ncores >= 2 {
		list = append(list, regime{name: "2 ranks, each on its own core", ranks: 2, rounds: rounds, floor: nameProbe, sizes: []size{
			{8, 20000, 200000}, {4 << 10, 2000, 20000}, {32 << 10, 300, 3000}, {256 << 10, 100, 800}, {2 << 20, 20, 100}, {16 << 20, 4, 20},
		}})
	}
	for _, n := range []int{4, 8} {
		if n <= ncores {
			continue // not oversubscribed here
		}
		list = append(list, regime{name: fmt.Sprintf("%d ranks on %d cores", n, ncores), ranks: n, rounds: rounds, yield: true, sizes: []size{
			{8, 500, 20000}, {4 << 10, 200, 5000}, {32 << 10, 50, 1000}, {256 << 10, 10, 200}, {2 << 20, 3, 32}, {16 << 20, 1, 8},
		}})
	}
	return list
}

// fewer is the regime's sizes for a peer that spins on cores that it shares: a call takes whole time slices, and
// the usual number of calls would take minutes.
func (r regime) fewer() []size {
	var list []size
	for _, s := range r.sizes {
		list = append(list, size{s.bytes, 1, min(20, max(3, s.iterations/20))})
	}
	return list
}
