package pattern

// Core is the largest power of two that is at most n, and its logarithm. Ranks from Core on are extra: each hands
// its data to the core rank that is Core below it.
func Core(n int) (core, levels int) {
	core = 1
	for core*2 <= n {
		core *= 2
		levels++
	}
	return core, levels
}

// Partner is the rank that differs in one bit.
func Partner(rank, bit int) int { return rank ^ 1<<bit }

// Block is the aligned block of 2^bits ranks that holds rank.
func Block(rank, bits int) (first, size int) { return rank >> bits << bits, 1 << bits }
