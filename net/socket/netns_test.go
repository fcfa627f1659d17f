package socket

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// Tests between two hosts, which are network namespaces with links between them. The test starts itself as root of a user
// namespace, in the first host; that one starts the process of the second.

const inside = "GCCL_TEST_INSIDE_NAMESPACE"

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
			script(t, "ip link set eth0 down")
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
				script(t, "ip link set eth0 down; sleep 0.3; ip link set eth0 up")
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
			script(t, "ip link set eth0 down")
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

func script(t testing.TB, text string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", text).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", text, err, out)
	}
}

func namespace(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

func TestHosts(t *testing.T) {
	for name, h := range hosts {
		t.Run(name, func(t *testing.T) {
			if os.Getenv(inside) != "" {
				h.run(t)
				return
			}
			probe := exec.Command("sh", "-ec", "ip link set lo up; ip link add q0 type veth peer name q1; "+h.needs)
			namespace(probe)
			if out, err := probe.CombinedOutput(); err != nil {
				t.Skipf("missing capability: namespaces with links, %s: %v %s", h.needs, err, out)
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^TestHosts$/^"+strings.ReplaceAll(name, " ", "_")+"$", "-test.v", "-test.timeout", "60s")
			namespace(cmd)
			cmd.Env = append(os.Environ(), inside+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// run is the first host.
func (h *host) run(t *testing.T) {
	script(t, "ip link set lo up")
	m := conformance.Maker{
		Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
			e, err := New(h.config).Open(transport.Options{Rank: rank, Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
		Spawn: func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		},
		Started: func(pid int) {
			enter := fmt.Sprintf("nsenter -t %d -n sh -ec ", pid)
			quote := func(s string) string { return "'" + s + "'" }
			script(t, enter+quote("ip link set lo up"))
			for i, l := range h.links {
				script(t, fmt.Sprintf("ip link add %s type veth peer name far%d; ip link set far%d netns %d; ip link set %s up", l, i, i, pid, l))
				script(t, enter+quote(fmt.Sprintf("ip link set far%d name %s; ip link set %s up", i, l, l)))
			}
			script(t, h.first)
			script(t, enter+quote(h.second))
		},
	}
	h.check(t, m)
}
