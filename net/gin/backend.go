package gin

import (
	"cmp"
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
	NIC     string // GCCL_GIN_NIC
	NoCard  string // why not all ranks have a card whose queues kernels can write; empty: they have, or nobody has looked
}

// NICs that GCCL_GIN_NIC may name.
const (
	Card        = "mlx5"
	CardRelayed = "mlx5-relay"
	SoftwareNIC = "soft"
)

// WantsCard says whether a card is worth a look: gdaki may be used, and not the software NIC alone. Wishes that make no sense want none.
func (w Wishes) WantsCard() bool {
	if w.NIC != "" && w.NIC != Card && w.NIC != CardRelayed {
		return false
	}
	c, err := ForKernels(w, true)
	return err == nil && c.Net == "gdaki"
}

// Choice is how kernels reach peers.
type Choice struct {
	Direct bool   // in the LSA team: they load and store themselves
	Net    string // beyond it: gdaki, proxy, or nothing
	NIC    string // of gdaki: Card or SoftwareNIC
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
		names = append(names, map[string]string{Card: "gdaki (mlx5dv)", CardRelayed: "gdaki (mlx5dv)", SoftwareNIC: "gdaki (software NIC)"}[c.NIC])
	case "proxy":
		names = append(names, "proxy")
	}
	return strings.Join(names, ", then ") + ": " + c.Why
}

// ForKernels picks the backends of kernels: direct inside an LSA team, a NIC's own queues where all ranks can, otherwise the proxy. ownHeader:
// they were compiled with this library's header; others know the proxy alone. A pure function of what all ranks know alike.
//
// gdaki is nobody's default: no card has run it yet, and the software NIC is for tests.
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
	switch w.NIC {
	case "", Card, CardRelayed, SoftwareNIC:
	default:
		return fail("unset it, or use mlx5, mlx5-relay or soft", "GCCL_GIN_NIC=%s names no NIC", w.NIC)
	}
	if c.Net == "gdaki" && ownHeader {
		switch {
		case w.NIC == SoftwareNIC:
			c.NIC = SoftwareNIC
		case w.NoCard == "":
			c.NIC = cmp.Or(w.NIC, Card)
		case w.NIC == "":
			c.NIC, c.Why = SoftwareNIC, c.Why+"; no card: "+w.NoCard
		case len(own) > 0 && !slices.Contains(own, "proxy"):
			return fail("allow proxy, or GCCL_GIN_NIC=soft", "%s allows no backend but gdaki, and GCCL_GIN_NIC=%s cannot be met: %s", c.Why, w.NIC, w.NoCard)
		default:
			c.Net, c.Why = "proxy", fmt.Sprintf("%s, but GCCL_GIN_NIC=%s cannot be met: %s", c.Why, w.NIC, w.NoCard)
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
