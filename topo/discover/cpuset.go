package discover

import (
	"fmt"
	"strconv"
	"strings"
)

// CPUSet is a set of CPU numbers, as 32-bit words, lowest first.
type CPUSet []uint32

// maxCPUs bounds what a file or a peer may say; the kernel's own limit is 8192 (CONFIG_NR_CPUS of x86, Linux 6).
const maxCPUs = 1 << 16

// ParseCPUMask reads the kernel's form (cpumap files) and that of topology files: hexadecimal words, highest first, with commas.
func ParseCPUMask(s string) (CPUSet, error) {
	words := strings.Split(strings.TrimSpace(s), ",")
	if len(words) > maxCPUs/32 {
		return nil, fmt.Errorf("CPU mask of %d words", len(words))
	}
	set := make(CPUSet, len(words))
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("word %d of CPU mask %.40q: %w", i, s, err)
		}
		set[len(words)-1-i] = uint32(v)
	}
	return set, nil
}

// String writes the mask as ParseCPUMask reads it.
func (s CPUSet) String() string {
	var b strings.Builder
	for i := len(s) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%08x", s[i])
	}
	return b.String()
}

// Has says whether a CPU is in the set.
func (s CPUSet) Has(cpu int) bool {
	return cpu >= 0 && cpu/32 < len(s) && s[cpu/32]>>(cpu%32)&1 != 0
}

// Add puts a CPU into the set.
func (s *CPUSet) Add(cpu int) {
	for cpu/32 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[cpu/32] |= 1 << (cpu % 32)
}

// Count is the number of CPUs.
func (s CPUSet) Count() int { return s.common(s) }

// common counts the CPUs of both sets.
func (s CPUSet) common(t CPUSet) int {
	n := 0
	for i := range min(len(s), len(t)) {
		for w := s[i] & t[i]; w != 0; w &= w - 1 {
			n++
		}
	}
	return n
}

// List writes the set for people: 0-3,8.
func (s CPUSet) List() string {
	var b strings.Builder
	for c := 0; c < 32*len(s); c++ {
		if !s.Has(c) {
			continue
		}
		end := c
		for s.Has(end + 1) {
			end++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if end > c {
			fmt.Fprintf(&b, "%d-%d", c, end)
		} else {
			fmt.Fprint(&b, c)
		}
		c = end
	}
	return b.String()
}
