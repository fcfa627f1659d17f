// Package pattern owns index arithmetic: who is whose neighbour, parent or partner. Pure functions of a few
// integers that cost at most O(log n). It must not know plans, buffers or devices.
package pattern

// Next is the rank after rank on a ring of n.
func Next(rank, n int) int { return (rank + 1) % n }

// Prev is the rank before rank on a ring of n.
func Prev(rank, n int) int { return (rank + n - 1) % n }

// Distance is how many steps forward on a ring of n lead from one rank to another.
func Distance(from, to, n int) int { return ((to-from)%n + n) % n }
