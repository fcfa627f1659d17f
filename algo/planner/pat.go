package planner

import (
	"math/bits"
)

// PAT is the family of Bruck's exchanges with the distances in the order that keeps long ways short of data, as in NCCL's
// PAT (S. Jeaugey, arXiv 2506.20252, 2025): a logarithmic number of peers, as much data as on a ring. Only slots and a
// rank's own buffers are touched. Unlike the paper's, the reduce-scatter keeps half of all chunks as partial sums: an order
// that keeps fewer is no loop of a plan.
//
// A chunk's offset is how many ranks it is away from its owner. In level k chunks move 2^k ranks. All-gather begins
// with the longest way, so after level k a rank has the chunks with offsets that are multiples of 2^k.
const PAT = "pat"

// patLevels is the number of levels.
func patLevels(n int) int { return bits.Len(uint(n - 1)) }

// patMoves is how many chunks move in a level: the odd multiples of 2^level below n.
func patMoves(n, level int) int { return (n - 1 + 1<<level) >> (level + 1) }

// patHeld is how many chunks a rank has between levels: the multiples of 2^level below n.
func patHeld(n, level int) int { return (n-1)>>level + 1 }
