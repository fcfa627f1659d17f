package discover

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/unix"
)

// ThisCPU asks the processor itself.
func ThisCPU() CPUKind {
	k := CPUKind{Arch: archName(runtime.GOARCH), Family: Unknown, Model: Unknown}
	if runtime.GOARCH != "amd64" {
		return k // CPUID is x86's
	}
	k.Vendor, k.Family, k.Model = cpuid.CPU.VendorString, cpuid.CPU.Family, cpuid.CPU.Model
	// The library adds the extended family to 15; NCCL 2.30.7 adds it as the higher digit: Zen 3 is 175 instead of 25.
	if k.Family > 15 {
		k.Family = 15 + 16*(k.Family-15)
	}
	return k
}

func archName(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "ppc64le":
		return "ppc64"
	}
	return goarch
}

// ThisAffinity is where this process may run; empty if the kernel does not say.
func ThisAffinity() CPUSet {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var out CPUSet
	for c := range 1024 { // bits of unix.CPUSet
		if set.IsSet(c) {
			out.Add(c)
		}
	}
	return out
}

// readNodes lists the NUMA nodes that the kernel shows.
func readNodes(r root) []Node {
	const dir = "sys/devices/system/node"
	var out []Node
	for _, name := range r.names(dir) {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
		if err != nil || !strings.HasPrefix(name, "node") || id < 0 {
			continue
		}
		cpus, err := ParseCPUMask(r.text(filepath.Join(dir, name), "cpumap"))
		if err != nil {
			cpus = nil
		}
		at := len(out)
		for at > 0 && out[at-1].ID > id { // node10 stands before node2
			at--
		}
		out = append(out[:at], append([]Node{{id, cpus}}, out[at:]...)...)
	}
	return out
}

// NodeOf is the NUMA node where most of a set of CPUs lies, the lowest if several do; Unknown if none does.
func (f *Facts) NodeOf(cpus CPUSet) int {
	best, most := Unknown, 0
	for _, n := range f.Nodes {
		if c := n.CPUs.common(cpus); c > most {
			best, most = n.ID, c
		}
	}
	return best
}
