package comm

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// cpuBytes is how much of an affinity mask travels: 1024 CPUs, what glibc's cpu_set_t holds.
const cpuBytes = 128

// ownCPUs is the set of CPUs on which this process may run, as text; empty if the kernel does not say.
func ownCPUs() string {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return ""
	}
	mask := make([]byte, cpuBytes)
	for i := range 8 * cpuBytes {
		if set.IsSet(i) {
			mask[i/8] |= 1 << (i % 8)
		}
	}
	return hex.EncodeToString(mask)
}

// crowded says whether this communicator's ranks must share CPUs.
func (c *Comm) crowded() bool {
	sets := make([]string, len(c.hellos))
	for i, h := range c.hellos {
		sets[i] = h.CPUs
	}
	return crowded(sets)
}

// crowded says whether ranks must share CPUs: all may run on fewer CPUs than there are ranks. It depends on what all ranks
// have told, so they agree. A rank bound to a CPU of its own counts with that one. Unknown sets count as crowded: yielding
// is slower, spinning on a CPU that a peer needs is worse.
func crowded(sets []string) bool {
	var union [cpuBytes]byte
	for _, s := range sets {
		mask, err := hex.DecodeString(s)
		if err != nil || len(mask) != cpuBytes {
			return true
		}
		for i, b := range mask {
			union[i] |= b
		}
	}
	n := 0
	for _, b := range union {
		for ; b != 0; b &= b - 1 {
			n++
		}
	}
	return len(sets) > n
}
