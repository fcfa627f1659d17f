package main

// inPlaceAlignment is the unit, in bytes, to which one rank's block is cut where a buffer holds a block of each
// rank, so that every block stays aligned. nccl-tests does the same (src/all_gather.cu, 2.19.6).
const inPlaceAlignment = 16

// collective describes how one operation is counted and rated. The factors are those of nccl-tests'
// doc/PERFORMANCE.md: bus bandwidth is what the busiest link must carry, so that it can be compared
// between collectives and numbers of ranks.
type collective struct {
	name        string
	blocks      bool // a buffer holds one block per rank: the size is divided by the ranks
	sendsAll    bool // the send buffer holds all blocks
	receivesAll bool
	reduces     bool
	rooted      bool
	noInPlace   bool // in place is undefined for this operation
	powerOfTwo  bool // only for such a number of ranks
	// busFactor is bus bandwidth over algorithm bandwidth for n ranks.
	busFactor func(n float64) float64
}

func all(float64) float64           { return 1 }
func butOwn(n float64) float64      { return (n - 1) / n }
func twiceButOwn(n float64) float64 { return 2 * (n - 1) / n }

var collectives = []collective{
	{name: "all_reduce", reduces: true, busFactor: twiceButOwn},
	{name: "all_gather", blocks: true, receivesAll: true, busFactor: butOwn},
	{name: "reduce_scatter", blocks: true, sendsAll: true, reduces: true, busFactor: butOwn},
	{name: "broadcast", rooted: true, busFactor: all},
	{name: "reduce", reduces: true, rooted: true, busFactor: all},
	{name: "alltoall", blocks: true, sendsAll: true, receivesAll: true, noInPlace: true, busFactor: butOwn},
	{name: "gather", blocks: true, receivesAll: true, rooted: true, busFactor: butOwn},
	{name: "scatter", blocks: true, sendsAll: true, rooted: true, busFactor: butOwn},
	{name: "sendrecv", noInPlace: true, busFactor: all},
	// an all-gather whose own block is not counted as moved
	{name: "hypercube", blocks: true, receivesAll: true, powerOfTwo: true, busFactor: all},
}

func findCollective(name string) (collective, bool) {
	for _, c := range collectives {
		if c.name == name {
			return c, true
		}
	}
	return collective{}, false
}

func collectiveNames() []string {
	var names []string
	for _, c := range collectives {
		names = append(names, c.name)
	}
	return names
}

// blockCount is the element count of one call for a total of bytes over elements of width bytes: nccl-tests'
// "count" column.
func (c collective) blockCount(bytes int64, width, nranks int) int64 {
	count := bytes / int64(width)
	if !c.blocks {
		return count
	}
	unit := int64(inPlaceAlignment / width)
	return count / int64(nranks) / unit * unit
}

// shownBytes is nccl-tests' "size" column: the larger of the two buffers.
func (c collective) shownBytes(count int64, width, nranks int) int64 {
	bytes := count * int64(width)
	if c.sendsAll || c.receivesAll {
		bytes *= int64(nranks)
	}
	return bytes
}

// bandwidth gives algorithm and bus bandwidth in GB/s (10^9) for one call that took us microseconds.
func (c collective) bandwidth(count int64, width, nranks int, us float64) (alg, bus float64) {
	if us <= 0 {
		return 0, 0
	}
	bytes := float64(c.shownBytes(count, width, nranks))
	if c.name == "hypercube" {
		bytes = float64(count) * float64(width) * float64(nranks-1)
	}
	alg = bytes / 1e3 / us
	return alg, alg * c.busFactor(float64(nranks))
}
