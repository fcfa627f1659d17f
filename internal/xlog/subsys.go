package xlog

import (
	"math/bits"
	"strings"
)

// Subsys is a set of parts of the library; a line belongs to one.
type Subsys uint64

// The parts, with the names and bits of NCCL_DEBUG_SUBSYS.
const (
	Init Subsys = 1 << iota
	Coll
	P2P
	SHM
	Net
	Graph
	Tuning
	Env
	Alloc
	Call
	Proxy
	NVLS
	Bootstrap
	Reg
	Profile
	RAS
	Destroy
	AllocHost
	All Subsys = ^Subsys(0)
)

// DefaultSubsys is printed at level Info when NCCL_DEBUG_SUBSYS is not set
// (NCCL 2.30.7: INIT, BOOTSTRAP, ENV).
const DefaultSubsys = Init | Bootstrap | Env

var subsysNames = [...]string{
	"INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL",
	"PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "DESTROY", "ALLOC_HOST",
}

// String returns the name of a single part, or a comma list.
func (s Subsys) String() string {
	if s == All {
		return "ALL"
	}
	if bits.OnesCount64(uint64(s)) == 1 {
		if i := bits.TrailingZeros64(uint64(s)); i < len(subsysNames) {
			return subsysNames[i]
		}
	}
	var names []string
	for i, n := range subsysNames {
		if s&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// ParseSubsys reads a value of NCCL_DEBUG_SUBSYS: a comma list of names in any
// case; a leading ^ means all but these. unknown holds the words it did not
// know; they are left out.
func ParseSubsys(list string) (set Subsys, unknown []string) {
	list = strings.TrimSpace(list)
	if list == "" {
		return DefaultSubsys, nil
	}
	rest, inverted := strings.CutPrefix(list, "^")
	for _, w := range strings.Split(rest, ",") {
		w = strings.TrimSpace(w)
		if w == "" {
			continue
		}
		bit := subsysByName(w)
		if bit == 0 {
			unknown = append(unknown, w)
		}
		set |= bit
	}
	if inverted {
		set = ^set
	} else if set == 0 {
		set = DefaultSubsys
	}
	return set, unknown
}

func subsysByName(name string) Subsys {
	if strings.EqualFold(name, "ALL") {
		return All
	}
	for i, n := range subsysNames {
		if strings.EqualFold(name, n) {
			return 1 << i
		}
	}
	return 0
}
