package socket

import (
	"fmt"
	stdnet "net"
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
	Filter     func(name string) bool // interfaces to use; nil: all
	FilterText string                 // the setting, for error texts
	Family     int                    // 4, 6, or 0 for both
	Threads    int                    // times Sockets is the number of streams of a path; 0: the transport chooses
	Sockets    int
}

// FromSettings makes the transport that the settings ask for.
func FromSettings(s *param.Settings) (*Transport, error) {
	c := Config{}
	f, err := s.InterfaceFilter(param.NCCLSocketIfname)
	if err != nil {
		return nil, err
	}
	if !f.Empty() {
		c.Filter, c.FilterText = f.Match, "NCCL_SOCKET_IFNAME="+s.Str(param.NCCLSocketIfname)
	}
	switch s.Str(param.NCCLSocketFamily) {
	case "AF_INET":
		c.Family = 4
	case "AF_INET6":
		c.Family = 6
	}
	if n := s.Int(param.NCCLSocketNthreads); n != param.Auto {
		c.Threads = int(n)
	}
	if n := s.Int(param.NCCLNsocksPerthread); n != param.Auto {
		c.Sockets = int(n)
	}
	return New(c), nil
}

// device is an interface that is up, with what decides about its use.
type device struct {
	transport.Device
	class   int // the lower, the better
	subnets []netip.Prefix
	vendor  string
	link    int // its place in the endpoint's counters, or -1
}

// Classes of interfaces. Those of a better class are used alone as long as they lead to the peer.
const (
	classFabric  = iota // carries IP over InfiniBand
	classNIC            // an ordinary one
	classVirtual        // made by software for something else, mostly
	classLoopback
)

// virtual begins the names of interfaces that seldom lead to another host.
var virtual = []string{"docker", "virbr", "veth", "br-", "cni", "flannel", "cali", "vxlan", "lxc", "lxd", "podman", "kube", "tun", "tap", "vmnet", "dummy"}

func classOf(name string, flags stdnet.Flags) int {
	switch {
	case flags&stdnet.FlagLoopback != 0:
		return classLoopback
	case slices.ContainsFunc(virtual, func(p string) bool { return strings.HasPrefix(name, p) }):
		return classVirtual
	case strings.HasPrefix(name, "ib"):
		return classFabric
	}
	return classNIC
}

// usable is whether an address may be offered to peers.
func (c *Config) usable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && (c.Family == 0 || (c.Family == 4) == a.Is4())
}

// devices lists the interfaces that the configuration allows, best first.
func (c *Config) devices() ([]device, error) {
	sys, err := stdnet.Interfaces()
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "socket transport", err, "cannot list the network interfaces")
	}
	var out []device
	var seen []string
	for _, s := range sys {
		if s.Flags&stdnet.FlagUp == 0 {
			continue
		}
		addrs, err := s.Addrs()
		if err != nil {
			continue // it vanished in between
		}
		d := device{Device: transport.Device{Name: s.Name, NUMA: -1}, class: classOf(s.Name, s.Flags)}
		for _, a := range addrs {
			ipn, ok := a.(*stdnet.IPNet)
			if !ok {
				continue
			}
			ip, ok := netip.AddrFromSlice(ipn.IP)
			if !ok || !c.usable(ip.Unmap()) {
				continue
			}
			ip = ip.Unmap()
			ones, _ := ipn.Mask.Size()
			d.subnets = append(d.subnets, netip.PrefixFrom(ip, ones).Masked())
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(s.Name)
			}
			d.Addrs = append(d.Addrs, ip)
		}
		d.Addrs = oneOfEachFamily(d.Addrs)
		seen = append(seen, fmt.Sprintf("%s %v", s.Name, d.Addrs))
		if len(d.Addrs) > 0 && (c.Filter == nil || c.Filter(s.Name)) {
			d.readSysfs("/sys/class/net")
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		e := xerr.New(xerr.InvalidUsage, "socket transport", "there is no interface that may be used; interfaces that are up: %s", strings.Join(seen, "; "))
		if c.FilterText != "" || c.Family != 0 {
			return nil, e.WithHint("correct or unset NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY (%s)", c.FilterText)
		}
		return nil, e
	}
	slices.SortStableFunc(out, func(a, b device) int { return a.class - b.class })
	return out, nil
}

// oneOfEachFamily keeps the first IPv4 address and the first IPv6 address, global ones before link-local ones.
func oneOfEachFamily(addrs []netip.Addr) []netip.Addr {
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return score(a) - score(b) })
	var out []netip.Addr
	for _, a := range addrs {
		if !slices.ContainsFunc(out, func(b netip.Addr) bool { return a.Is4() == b.Is4() }) {
			out = append(out, a)
		}
	}
	return out
}

func score(a netip.Addr) int {
	if a.IsLinkLocalUnicast() {
		return 1
	}
	return 0
}

// readSysfs asks the system about speed and place (Documentation/ABI/testing/sysfs-class-net and sysfs-bus-pci of Linux).
func (d *device) readSysfs(root string) {
	dir := filepath.Join(root, d.Name)
	if n, err := readInt(filepath.Join(dir, "speed")); err == nil && n > 0 {
		d.Speed = n
	}
	if n, err := readInt(filepath.Join(dir, "device", "numa_node")); err == nil {
		d.NUMA = n
	}
	if link, err := os.Readlink(filepath.Join(dir, "device")); err == nil && strings.Contains(link, ":") {
		d.PCI = filepath.Base(link)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "device", "vendor")); err == nil {
		d.vendor = strings.TrimSpace(string(b))
	}
}

func readInt(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// Limits of NCCL (2.30.7, src/transport/net_socket.cc).
const (
	maxThreads = 16
	maxStreams = 64
)

// streams is how many streams a path over a device gets. What the user leaves open is chosen as NCCL does for the clouds
// whose NICs limit the rate of a single stream (PCI vendors of AWS and Google), and by the speed of the link otherwise.
func (c *Config) streams(d *device) int {
	threads, sockets := 1, 1
	switch {
	case d.vendor == "0x1d0f":
		threads, sockets = 2, 8
	case d.vendor == "0x1ae0":
		threads, sockets = 4, 1
	case d.Speed >= 20_000: // more than a core copies for one stream
		threads, sockets = 1, 4
	}
	if c.Threads > 0 {
		threads, sockets = min(c.Threads, maxThreads), 1
	}
	if c.Sockets > 0 {
		sockets = c.Sockets
	}
	return min(threads*sockets, maxStreams)
}

// preferred are the devices that are used together: the best class, without those much slower than its fastest, which
// would hold up what waits for all.
func preferred(ds []device) []device {
	var out []device
	fastest := 0
	for _, d := range ds {
		if d.class == ds[0].class {
			fastest = max(fastest, d.Speed)
		}
	}
	for _, d := range ds {
		if d.class == ds[0].class && (d.Speed == 0 || 2*d.Speed >= fastest) {
			out = append(out, d)
		}
	}
	return out
}
