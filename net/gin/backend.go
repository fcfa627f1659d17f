package gin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gccl/gccl/internal/xerr"
)

// backends are the names that GCCL_GIN may list. host is the executor's, and is always there; the others are of kernels.
var backends = []string{"host", "direct", "gdaki", "proxy"}

// listed reads GCCL_GIN.
func listed(list string) (allowed []string, err error) {
	for _, w := range strings.Split(strings.ToLower(list), ",") {
		if w = strings.TrimSpace(w); w == "" {
			continue
		}
		if !slices.Contains(backends, w) {
			return nil, xerr.New(xerr.InvalidUsage, "gin", "GCCL_GIN=%s: there is no backend %q", list, w).
				WithHint("unset GCCL_GIN, or list names of %s", strings.Join(backends, ", "))
		}
		allowed = append(allowed, w)
	}
	return allowed, nil
}

// CheckList says whether a list of backends makes sense.
func CheckList(list string) error {
	_, err := listed(list)
	return err
}

// Wishes are the user's about kernels.
type Wishes struct {
	List    string // GCCL_GIN
	Type    int    // NCCL_GIN_TYPE: ncclGinType_t, -1 for none
	Off     bool   // NCCL_GIN_ENABLE=0
	SoftNIC bool   // GCCL_SOFTNIC: the software NIC stands for a card that is not there
}

// Choice is how kernels reach peers.
type Choice struct {
	Direct bool   // in the LSA team: they load and store themselves
	Net    string // beyond it: gdaki, proxy, or nothing
	Why    string
}

// ncclGinType_t.
var ginTypes = map[string]int{"": 0, "proxy": 2, "gdaki": 3}

// Type is the ncclGinType_t of a choice.
func (c Choice) Type() int { return ginTypes[c.Net] }

func (c Choice) String() string {
	var names []string
	if c.Direct {
		names = append(names, "direct in the LSA team")
	}
	switch c.Net {
	case "gdaki":
		names = append(names, "gdaki (software NIC)")
	case "proxy":
		names = append(names, "proxy")
	}
	return strings.Join(names, ", then ") + ": " + c.Why
}

// ForKernels picks the backends of kernels: direct inside an LSA team, a NIC's own queues where all ranks can, otherwise the proxy. ownHeader:
// they were compiled with this library's header; others know the proxy alone. A pure function of what all ranks know alike.
//
// The only NIC with queues for kernels is the software NIC, which is nobody's default.
func ForKernels(w Wishes, ownHeader bool) (Choice, error) {
	fail := func(hint, format string, args ...any) (Choice, error) {
		return Choice{}, xerr.New(xerr.InvalidUsage, "gin", format, args...).WithHint("%s", hint)
	}
	allowed, err := listed(w.List)
	if err != nil {
		return Choice{}, err
	}
	if w.Off {
		return fail("unset NCCL_GIN_ENABLE", "GIN is switched off by NCCL_GIN_ENABLE=0")
	}
	c := Choice{Direct: ownHeader, Net: "proxy", Why: "the defaults"}
	if w.SoftNIC && ownHeader {
		c.Net, c.Why = "gdaki", "GCCL_SOFTNIC=1"
	}
	switch w.Type {
	case -1:
	case 2, 3:
		c.Net, c.Why = map[int]string{2: "proxy", 3: "gdaki"}[w.Type], fmt.Sprintf("NCCL_GIN_TYPE=%d", w.Type)
	case 4:
		return fail("use 2 (proxy) or 3 (GDAKI)", "NCCL_GIN_TYPE=4: this library does not offer GPI")
	default:
		return fail("use 2 (proxy) or 3 (GDAKI)", "NCCL_GIN_TYPE=%d is no kind of GIN", w.Type)
	}
	own := slices.DeleteFunc(allowed, func(n string) bool { return n == "host" })
	if len(own) > 0 {
		c = Choice{Why: "GCCL_GIN=" + w.List}
		for _, n := range own {
			if n == "direct" {
				c.Direct = ownHeader
			} else if c.Net == "" {
				c.Net = n
			}
		}
	}
	if c.Net == "gdaki" && !ownHeader {
		if len(own) > 0 && !slices.Contains(own, "proxy") || w.Type == 3 {
			return fail("compile the kernels with gccl_device.h, or allow proxy",
				"%s: kernels that were not compiled with this library's header know the proxy alone", c.Why)
		}
		c.Net = "proxy"
	}
	return c, nil
}
