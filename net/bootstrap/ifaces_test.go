package bootstrap

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

var lo = iface{name: "lo", loopback: true, addrs: addrsOf("127.0.0.1", "::1")}

func TestCandidates(t *testing.T) {
	eth0 := iface{name: "eth0", addrs: addrsOf("10.0.0.5", "fe80::5%eth0", "2001:db8::5")}
	docker := iface{name: "docker0", addrs: addrsOf("172.17.0.1")}
	bare := iface{name: "eth9"}
	ib := iface{name: "ib0", addrs: addrsOf("192.168.9.5")}
	only := func(names ...string) func(string) bool {
		return func(n string) bool { return slices.Contains(names, n) }
	}
	for name, c := range map[string]struct {
		ifs  []iface
		opt  Options
		want []string
		bad  []string
	}{
		"order":        {ifs: []iface{lo, docker, eth0, ib}, want: []string{"192.168.9.5", "10.0.0.5", "2001:db8::5", "fe80::5%eth0", "172.17.0.1", "127.0.0.1", "::1"}},
		"only lo":      {ifs: []iface{lo}, want: []string{"127.0.0.1", "::1"}},
		"only ::1":     {ifs: []iface{{name: "lo", loopback: true, addrs: addrsOf("::1")}}, want: []string{"::1"}},
		"odd loopback": {ifs: []iface{{name: "lo", loopback: true, addrs: addrsOf("127.0.0.1", "127.0.0.53")}}, want: []string{"127.0.0.1"}},
		"filter":       {ifs: []iface{lo, docker, eth0}, opt: Options{IfFilter: only("docker0")}, want: []string{"172.17.0.1", "127.0.0.1", "::1"}},
		"IPv4":         {ifs: []iface{lo, eth0}, opt: Options{Family: FamilyIPv4}, want: []string{"10.0.0.5", "127.0.0.1"}},
		"IPv6":         {ifs: []iface{lo, eth0}, opt: Options{Family: FamilyIPv6}, want: []string{"2001:db8::5", "fe80::5%eth0", "::1"}},
		"filter matches nothing": {ifs: []iface{lo, eth0, bare}, opt: Options{IfFilter: only("eth7"), IfFilterText: "NCCL_SOCKET_IFNAME=eth7"},
			bad: []string{"NCCL_SOCKET_IFNAME=eth7", "eth0 (10.0.0.5", "eth9 (no address)", "lo (127.0.0.1"}},
		"filter matches one without address": {ifs: []iface{lo, eth0, bare}, opt: Options{IfFilter: only("eth9"), IfFilterText: "NCCL_SOCKET_IFNAME=eth9"}, bad: []string{"eth9 (no address)"}},
		"no such family":                     {ifs: []iface{docker}, opt: Options{Family: FamilyIPv6}, bad: []string{"IPv6", "docker0 (172.17.0.1)"}},
		"nothing up":                         {bad: []string{"none", "ip link set lo up"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := candidates(c.ifs, c.opt)
			if c.bad != nil {
				wantError(t, err, xerr.InvalidUsage, c.bad...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, addrsOf(c.want...)) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	ports := func(texts ...string) []netip.AddrPort {
		var out []netip.AddrPort
		for _, a := range addrsOf(texts...) {
			out = append(out, netip.AddrPortFrom(a, 9))
		}
		return out
	}
	mine := []iface{lo, {name: "eth0", addrs: addrsOf("10.0.0.5")}, {name: "eth1"}}
	for name, c := range map[string]struct{ in, want []string }{
		"another host":          {[]string{"10.0.0.6", "127.0.0.1"}, []string{"10.0.0.6", "127.0.0.1"}},
		"this host":             {[]string{"10.0.0.5", "172.17.0.1", "127.0.0.1"}, []string{"127.0.0.1", "10.0.0.5", "172.17.0.1"}},
		"only loopback":         {[]string{"127.0.0.1", "::1"}, []string{"127.0.0.1", "::1"}},
		"zone of the same name": {[]string{"fe80::1%eth1"}, []string{"fe80::1%eth1", "fe80::1%eth0"}},
		"zone unknown here":     {[]string{"fe80::1%ens3"}, []string{"fe80::1%eth0", "fe80::1%eth1"}},
		"link-local of IPv4":    {[]string{"169.254.1.1"}, []string{"169.254.1.1"}},
		"far too many are cut":  {strings.Split(strings.Repeat("10.9.9.9 ", 39)+"10.9.9.9", " "), strings.Split(strings.Repeat("10.9.9.9 ", 31)+"10.9.9.9", " ")},
	} {
		t.Run(name, func(t *testing.T) {
			var got []netip.AddrPort
			for _, to := range targetsOf(ports(c.in...), mine) {
				got = append(got, to.AddrPort)
			}
			if !slices.Equal(got, ports(c.want...)) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

func TestServiceRefusesFilterAndRange(t *testing.T) {
	s := newTestService(t, Options{IfFilter: func(string) bool { return false }, IfFilterText: "NCCL_SOCKET_IFNAME=nope"})
	_, err := s.NewID()
	wantError(t, err, xerr.InvalidUsage, "NCCL_SOCKET_IFNAME=nope", "lo (")
	_, err = NewService(Options{PortMin: 10, PortMax: 9})
	wantError(t, err, xerr.InvalidArgument, "10-9")
}

func TestPortRange(t *testing.T) {
	first := newTestService(t, Options{})
	at, err := first.listening()
	if err != nil {
		t.Fatal(err)
	}
	port := int(at[0].Port())
	second := newTestService(t, Options{PortMin: port, PortMax: port})
	_, err = second.NewID()
	wantError(t, err, xerr.System, "ports", "address already in use", "widen")
}
