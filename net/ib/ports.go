package ib

// #include "ib.h"
import "C"

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Config is what the user may set.
type Config struct {
	Disabled     bool   // NCCL_IB_DISABLE: there are no devices then
	HCA          string // NCCL_IB_HCA
	GIDIndex     int    // -1 chooses
	RoCEVersion  int    // 1 or 2, for the choice
	TrafficClass int    // -1: 0
	ServiceLevel int    // -1: 0
	Timeout      int    // 4.096 µs · 2^Timeout until a packet is sent again
	RetryCount   int
}

// Defaults are those of NCCL 2.30.
func Defaults() Config {
	return Config{GIDIndex: -1, RoCEVersion: 2, TrafficClass: -1, ServiceLevel: -1, Timeout: 20, RetryCount: 7}
}

// FromSettings makes the transport that the settings ask for. One that is switched off has no devices and says so.
func FromSettings(s *param.Settings) (*Transport, error) {
	c := Config{Disabled: s.Bool(param.NCCLIbDisable), HCA: s.Str(param.NCCLIbHca), GIDIndex: int(s.Int(param.NCCLIbGidIndex)), RoCEVersion: int(s.Int(param.NCCLIbRoceVersionNum)),
		TrafficClass: int(s.Int(param.NCCLIbTc)), ServiceLevel: int(s.Int(param.NCCLIbSl)), Timeout: int(s.Int(param.NCCLIbTimeout)), RetryCount: int(s.Int(param.NCCLIbRetryCnt))}
	if _, err := parseHCA(c.HCA); err != nil {
		return nil, err
	}
	return New(c), nil
}

// hcaFilter is a parsed NCCL_IB_HCA: a comma list of device[:port[:…]]; ^ excludes, = wants whole names (NCCL user guide, env).
// What follows the port names rails and planes for NCCL's choice of paths and is not used here.
type hcaFilter struct {
	exclude, exact bool
	words          []hcaWord
}

type hcaWord struct {
	name string
	port int // 0: any
}

func parseHCA(text string) (hcaFilter, error) {
	var f hcaFilter
	rest, exclude := strings.CutPrefix(strings.TrimSpace(text), "^")
	rest, exact := strings.CutPrefix(rest, "=")
	f.exclude, f.exact = exclude, exact
	for _, w := range strings.Split(rest, ",") {
		if w = strings.TrimSpace(w); w == "" {
			continue
		}
		parts := strings.Split(w, ":")
		word := hcaWord{name: parts[0]}
		if len(parts) > 1 && parts[1] != "" {
			n, err := strconv.Atoi(parts[1])
			if err != nil || n < 0 || n > 255 {
				return f, badHCA(text, fmt.Sprintf("%q is no port", parts[1]))
			}
			word.port = n
		}
		if word.name == "" || strings.ContainsAny(word.name, "^=") {
			return f, badHCA(text, fmt.Sprintf("%q names no device", w))
		}
		f.words = append(f.words, word)
	}
	if len(f.words) == 0 && (exclude || exact) {
		return f, badHCA(text, "a mark stands without a name")
	}
	return f, nil
}

func badHCA(text, why string) error {
	return xerr.New(xerr.InvalidUsage, "read settings", "NCCL_IB_HCA=%s cannot be read: %s", text, why).
		WithHint("accepted: mlx5 for name beginnings, mlx5_0:1 for a port, =mlx5_0 for whole names, ^mlx5_3 to exclude")
}

func (f hcaFilter) match(name string, port int) bool {
	if len(f.words) == 0 {
		return true
	}
	hit := slices.ContainsFunc(f.words, func(w hcaWord) bool {
		return (f.exact && name == w.name || !f.exact && strings.HasPrefix(name, w.name)) && (w.port == 0 || w.port == port)
	})
	return hit != f.exclude
}

// port is a port that is up, with the GID to use.
type port struct {
	transport.Device
	hca      string
	number   int
	ethernet bool
	gid      int
}

// ports lists the ports that the configuration allows, fastest first.
func (c *Config) ports() ([]port, error) {
	if c.Disabled {
		return nil, xerr.New(xerr.InvalidUsage, "ib transport", "NCCL_IB_DISABLE switches verbs devices off")
	}
	f, err := parseHCA(c.HCA)
	if err != nil {
		return nil, err
	}
	var why text
	var raw [C.GCCL_IB_PORTS]C.gccl_ib_port
	n := C.gccl_ib_ports(&raw[0], C.GCCL_IB_PORTS, &why[0])
	if n < 0 {
		return nil, xerr.New(xerr.System, "ib transport", "%v", &why)
	}
	var out []port
	var seen []string
	for _, r := range raw[:n] {
		p := port{hca: C.GoString(&r.name[0]), number: int(r.port), ethernet: r.link == C.VB_LINK_ETHERNET}
		p.Device = transport.Device{Name: fmt.Sprintf("%s:%d", p.hca, p.number), Speed: int(r.mbps), NUMA: -1}
		seen = append(seen, p.Name)
		if !f.match(p.hca, p.number) {
			continue
		}
		p.readSysfs("/sys/class/infiniband")
		p.gid = c.GIDIndex
		if p.gid < 0 {
			p.gid = 0
			if p.ethernet {
				if p.gid, err = chooseGID(p.gids("/sys/class/infiniband"), c.RoCEVersion); err != nil {
					seen[len(seen)-1] += " (" + err.Error() + ")"
					continue
				}
			}
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		e := xerr.New(xerr.InvalidUsage, "ib transport", "there is no verbs port that is up and may be used; ports that are up: %s", strings.Join(append(seen, ""), " "))
		if c.HCA != "" {
			return nil, e.WithHint("correct or unset NCCL_IB_HCA=%s", c.HCA)
		}
		return nil, e
	}
	slices.SortStableFunc(out, func(a, b port) int { return b.Speed - a.Speed })
	return out, nil
}

// readSysfs finds where the device is (Documentation/ABI/stable/sysfs-class-infiniband and sysfs-bus-pci of Linux).
func (p *port) readSysfs(root string) {
	dir := filepath.Join(root, p.hca, "device")
	if b, err := os.ReadFile(filepath.Join(dir, "numa_node")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			p.NUMA = n
		}
	}
	if link, err := os.Readlink(dir); err == nil && strings.Contains(link, ":") {
		p.PCI = filepath.Base(link)
	}
}

// gid is an entry of a port's table.
type gid struct {
	index, version int // version of RoCE; 0 unknown
	addr           netip.Addr
}

// gids reads the table of a port. It has up to a thousand places, and those in use stand at its beginning, with few holes: the
// reading ends behind maxHole unused ones.
func (p *port) gids(root string) []gid {
	const maxHole = 32 // a guess
	var out []gid
	dir := filepath.Join(root, p.hca, "ports", strconv.Itoa(p.number))
	for i, hole := 0, 0; hole < maxHole; i++ {
		b, err := os.ReadFile(filepath.Join(dir, "gids", strconv.Itoa(i)))
		if err != nil {
			return out
		}
		a, err := netip.ParseAddr(strings.TrimSpace(string(b)))
		if err != nil || a.IsUnspecified() {
			hole++
			continue
		}
		hole = 0
		g := gid{index: i, addr: a.Unmap()}
		// Used entries say "RoCE v2" or "IB/RoCE v1".
		if b, err := os.ReadFile(filepath.Join(dir, "gid_attrs", "types", strconv.Itoa(i))); err == nil {
			g.version = 1
			if strings.Contains(string(b), "v2") {
				g.version = 2
			}
		}
		out = append(out, g)
	}
	return out
}

// chooseGID takes the wanted version of RoCE, an address that is routed before a link-local one, IPv4 before IPv6.
func chooseGID(gids []gid, version int) (int, error) {
	best, bestScore := -1, -1
	for _, g := range gids {
		if g.version != version {
			continue
		}
		score := 0
		if !g.addr.IsLinkLocalUnicast() {
			score += 2
		}
		if g.addr.Is4() {
			score++
		}
		if score > bestScore {
			best, bestScore = g.index, score
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("no GID of RoCE v%d among %d", version, len(gids))
	}
	return best, nil
}
