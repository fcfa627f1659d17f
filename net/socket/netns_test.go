package socket

import (
	"errors"
	"testing"

	"github.com/gccl/gccl/internal/netns"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// Tests between two hosts, which are network namespaces with links between them. The test itself is in the first host and
// starts the process of the second.

// host is what the scripts of a scenario do: first runs here, second in the other host, which has the far ends of the links.
type host struct {
	needs         string // a probe of what this kernel must have, beside namespaces and veth
	links         []string
	first, second string
	check         func(t *testing.T, m conformance.Maker)
	config        Config
}

var hosts = map[string]host{
	"one NIC": {
		links:  []string{"eth0"},
		first:  "ip addr add 10.1.0.1/24 dev eth0",
		second: "ip addr add 10.1.0.2/24 dev eth0",
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(20)
			wantPaths(t, f, 1)
		},
	},
	"two NICs, one is cut": {
		links:  []string{"eth0", "eth1"},
		first:  "ip addr add 10.1.0.1/24 dev eth0; ip addr add 10.2.0.1/24 dev eth1",
		second: "ip addr add 10.1.0.2/24 dev eth0; ip addr add 10.2.0.2/24 dev eth1",
		config: Config{Threads: 1, Sockets: 2},
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(20)
			before := f.Stats().Paths // 4, or 2 if the other end dialed, which has no such setting
			if before != 4 && before != 2 {
				t.Errorf("%d streams", before)
			}
			netns.Run(t, "ip link set eth0 down")
			f.Echo(20)
			wantPaths(t, f, before/2)
			if s := f.Stats(); s.Retries == 0 {
				t.Errorf("nothing was sent again: %v", s)
			}
		},
	},
	"two NICs in one network": {
		links:  []string{"eth0", "eth1"},
		first:  "ip addr add 10.1.0.1/24 dev eth0; ip addr add 10.1.0.11/24 dev eth1; " + strictARP,
		second: "ip addr add 10.1.0.2/24 dev eth0; ip addr add 10.1.0.12/24 dev eth1; " + strictARP,
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(5)
			wantPaths(t, f, 2)
		},
	},
	// The bridge of a container engine has the same address everywhere; a NIC leads nowhere; the good one comes last.
	"misleading interfaces": {
		links: []string{"eth2"},
		first: `ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up
ip link add eth0 type veth peer name nowhere0; ip link set eth0 up; ip link set nowhere0 up; ip addr add 192.0.2.1/24 dev eth0
ip addr add 10.1.0.1/24 dev eth2`,
		second: `ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up
ip link add eth0 type veth peer name nowhere0; ip link set eth0 up; ip link set nowhere0 up; ip addr add 192.0.2.2/24 dev eth0
ip addr add 10.1.0.2/24 dev eth2`,
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(5)
			wantPaths(t, f, 1)
		},
	},
	"only a virtual interface leads there": {
		links: []string{"docker0"},
		first: `ip link add eth0 type veth peer name nowhere0; ip link set eth0 up; ip link set nowhere0 up; ip addr add 192.0.2.1/24 dev eth0
ip addr add 10.1.0.1/24 dev docker0`,
		second: `ip link add eth0 type veth peer name nowhere0; ip link set eth0 up; ip link set nowhere0 up; ip addr add 198.51.100.2/24 dev eth0
ip addr add 10.1.0.2/24 dev docker0`,
		check: func(t *testing.T, m conformance.Maker) { conformance.NewFar(t, m).Echo(5) },
	},
	"IPv6 alone": {
		links:  []string{"eth0"},
		first:  "ip addr del 127.0.0.1/8 dev lo; ip addr add fd00:1::1/64 dev eth0 nodad",
		second: "ip addr del 127.0.0.1/8 dev lo; ip addr add fd00:1::2/64 dev eth0 nodad",
		check:  func(t *testing.T, m conformance.Maker) { conformance.NewFar(t, m).Echo(5) },
	},
	"IPv6 link-local alone": {
		links:  []string{"eth0"},
		first:  "ip addr flush dev eth0; ip addr add fe80::1/64 dev eth0 nodad",
		second: "ip addr flush dev eth0; ip addr add fe80::2/64 dev eth0 nodad",
		check:  func(t *testing.T, m conformance.Maker) { conformance.NewFar(t, m).Echo(5) },
	},
	"the family that is asked for": {
		links:  []string{"eth0"},
		first:  "ip addr add 10.1.0.1/24 dev eth0; ip addr add fd00:1::1/64 dev eth0 nodad",
		second: "ip addr add 10.1.0.2/24 dev eth0; ip addr add fd00:1::2/64 dev eth0 nodad; ip route add blackhole 10.1.0.1/32",
		config: Config{Family: 6},
		check:  func(t *testing.T, m conformance.Maker) { conformance.NewFar(t, m).Echo(5) },
	},
	"loss and delay": {
		needs:  "ip link add p0 type veth peer name p1; tc qdisc add dev p0 root netem delay 1ms loss 1%",
		links:  []string{"eth0"},
		first:  "ip addr add 10.1.0.1/24 dev eth0; tc qdisc add dev eth0 root netem delay 2ms 1ms loss 2%",
		second: "ip addr add 10.1.0.2/24 dev eth0; tc qdisc add dev eth0 root netem delay 2ms 1ms loss 2%",
		check:  func(t *testing.T, m conformance.Maker) { conformance.NewFar(t, m).Echo(5) },
	},
	"a link that comes back": {
		links:  []string{"eth0"},
		first:  "ip addr add 10.1.0.1/24 dev eth0",
		second: "ip addr add 10.1.0.2/24 dev eth0",
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(5)
			for range 3 {
				netns.Run(t, "ip link set eth0 down; sleep 0.3; ip link set eth0 up")
				f.Echo(2)
			}
			wantPaths(t, f, 1)
		},
	},
	"the only link is cut": {
		links:  []string{"eth0"},
		first:  "ip addr add 10.1.0.1/24 dev eth0",
		second: "ip addr add 10.1.0.2/24 dev eth0",
		check: func(t *testing.T, m conformance.Maker) {
			f := conformance.NewFar(t, m)
			f.Echo(5)
			netns.Run(t, "ip link set eth0 down")
			took, err := f.Fault()
			var x *xerr.Error
			if !errors.As(err, &x) || x.Rank != 1 || x.Code != xerr.Remote {
				t.Errorf("error %v", err)
			}
			t.Logf("noticed after %v: %v", took, err)
		},
	},
}

// strictARP has each interface answer for its own addresses alone, as two NICs in one network need (ip-sysctl, arp_ignore,
// rp_filter).
const strictARP = "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore; echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce; echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; for f in /proc/sys/net/ipv4/conf/eth*/rp_filter; do echo 0 >$f; done"

func wantPaths(t *testing.T, f *conformance.Far, n int) {
	t.Helper()
	if s := f.Stats(); s.Paths != n {
		t.Errorf("%d streams live, want %d: %v", s.Paths, n, s)
	}
}

func TestHosts(t *testing.T) {
	for name, h := range hosts {
		t.Run(name, func(t *testing.T) {
			if netns.Enter(t, h.needs) {
				h.run(t)
			}
		})
	}
}

// run is the first host.
func (h *host) run(t *testing.T) {
	m := conformance.Maker{
		Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
			e, err := New(h.config).Open(transport.Options{Rank: rank, Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Spawn: netns.Other,
		Started: func(pid int) {
			netns.Link(t, pid, h.links...)
			netns.Run(t, h.first)
			netns.RunIn(t, pid, h.second)
		},
	}
	h.check(t, m)
}
