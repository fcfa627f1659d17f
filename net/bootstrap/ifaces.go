package bootstrap

import (
	"errors"
	"fmt"
	stdnet "net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/gccl/gccl/internal/xerr"
)

// Family restricts the addresses that a service offers.
type Family int

const (
	FamilyAny Family = iota
	FamilyIPv4
	FamilyIPv6
)

func (f Family) String() string {
	switch f {
	case FamilyIPv4:
		return "IPv4"
	case FamilyIPv6:
		return "IPv6"
	}
	return "any family"
}

func (f Family) allows(a netip.Addr) bool {
	return f == FamilyAny || (f == FamilyIPv4) == a.Is4()
}

// iface is one interface that is up, with its addresses.
type iface struct {
	name     string
	loopback bool
	addrs    []netip.Addr // IPv4 unmapped, link-local IPv6 with zone
}

func systemInterfaces() ([]iface, error) {
	sys, err := uninterrupted(stdnet.Interfaces)
	if err != nil {
		return nil, err
	}
	var out []iface
	for _, s := range sys {
		if s.Flags&stdnet.FlagUp == 0 {
			continue
		}
		as, err := uninterrupted(s.Addrs)
		if err != nil {
			continue // it vanished in between
		}
		f := iface{name: s.Name, loopback: s.Flags&stdnet.FlagLoopback != 0}
		for _, a := range as {
			ipn, ok := a.(*stdnet.IPNet)
			if !ok {
				continue
			}
			ip, ok := netip.AddrFromSlice(ipn.IP)
			if !ok {
				continue
			}
			ip = ip.Unmap()
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(s.Name)
			}
			f.addrs = append(f.addrs, ip)
		}
		out = append(out, f)
	}
	return out, nil
}

// uninterrupted repeats a call that a signal of the host program interrupted:
// package net reads netlink with plain system calls.
func uninterrupted[T any](call func() (T, error)) (T, error) {
	for tries := 0; ; tries++ {
		v, err := call()
		if tries >= maxInterrupts || !errors.Is(err, syscall.EINTR) {
			return v, err
		}
	}
}

// maxInterrupts bounds the repeats (a guess).
const maxInterrupts = 100

// virtualNames begin the names of interfaces that rarely lead to another host.
var virtualNames = []string{"docker", "virbr", "veth", "br-", "cni", "flannel", "cali", "vxlan", "lxc", "lxd", "podman", "kube", "tun", "tap", "vmnet", "dummy"}

// addrClass orders candidates: the lower, the earlier it is tried.
func addrClass(f iface, a netip.Addr) int {
	virtual := slices.ContainsFunc(virtualNames, func(p string) bool { return strings.HasPrefix(f.name, p) })
	switch {
	case f.loopback || a.IsLoopback():
		return 4
	case virtual:
		return 3
	case a.IsLinkLocalUnicast():
		return 2
	case strings.HasPrefix(f.name, "ib"):
		return 0 // the fabric of the cluster, if it carries IP
	}
	return 1
}

// candidates lists the addresses a service offers, best first. Loopback comes
// last and whatever the filter says: only ranks of this host can reach the
// service there, and they must prove the secret like all others.
func candidates(ifs []iface, opt Options) ([]netip.Addr, error) {
	type ranked struct {
		a     netip.Addr
		class int
	}
	var all []ranked
	matched := false
	for _, f := range ifs {
		pass := opt.IfFilter == nil || opt.IfFilter(f.name)
		for _, a := range f.addrs {
			if !opt.Family.allows(a) || a.IsUnspecified() || a.IsMulticast() {
				continue
			}
			if a.IsLoopback() && a.Is4() {
				a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			}
			matched = matched || pass
			if pass || f.loopback && a.IsLoopback() {
				r := ranked{a, addrClass(f, a)}
				if !slices.Contains(all, r) {
					all = append(all, r)
				}
			}
		}
	}
	if !matched || len(all) == 0 {
		return nil, noCandidate(ifs, opt)
	}
	slices.SortStableFunc(all, func(x, y ranked) int { return x.class - y.class })
	out := make([]netip.Addr, len(all))
	for i, r := range all {
		out[i] = r.a
	}
	return out, nil
}

func noCandidate(ifs []iface, opt Options) error {
	var have []string
	for _, f := range ifs {
		var as []string
		for _, a := range f.addrs {
			as = append(as, a.String())
		}
		if len(as) == 0 {
			as = []string{"no address"}
		}
		have = append(have, fmt.Sprintf("%s (%s)", f.name, strings.Join(as, ", ")))
	}
	present := strings.Join(have, "; ")
	if present == "" {
		present = "none"
	}
	want := "an interface with an address of " + opt.Family.String()
	if opt.IfFilterText != "" {
		want += " that matches " + opt.IfFilterText
	}
	e := xerr.New(xerr.InvalidUsage, opListen, "there is no interface that is up and is %s; interfaces that are up: %s", want, present).WithObject("network interfaces")
	if opt.IfFilterText != "" || opt.Family != FamilyAny {
		return e.WithHint("correct or unset the interface and family settings")
	}
	return e.WithHint("bring up at least the loopback interface (ip link set lo up)")
}
