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

// crowded says whether this communicator's ranks must share CPUs on any host. Hosts are told apart by their names: what the user
// says of them (NCCL_HOSTID) makes no CPUs.
func (c *Comm) crowded() bool {
	sets := map[string][]string{}
	for r, h := range c.hellos {
		host := c.group.Member(r).Host
		sets[host] = append(sets[host], h.CPUs)
	}
	for _, s := range sets {
		if crowded(s) {
			return true
		}
	}
	return false
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
