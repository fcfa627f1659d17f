package socket

import (
	"context"
	stdnet "net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharesNetwork is whether another device is in a network of device i.
func sharesNetwork(devs []device, i int) bool {
	for k, other := range devs {
		for _, a := range devs[i].subnets {
			for _, b := range other.subnets {
				if k != i && !a.Addr().IsLinkLocalUnicast() && a.Overlaps(b) {
					return true
				}
			}
		}
	}
	return false
}

// listen opens a port at an address. Where two interfaces are in one network, answers would all leave over the one that the
// routing table has first; a socket that is bound to the interface keeps to it. What comes from this host comes from the
// loopback interface and needs a second one then. Elsewhere no interface is bound: addresses that stand on another interface
// than the packets come from are usual.
func listen(a netip.Addr, device string, bind bool) ([]stdnet.Listener, error) {
	if !bind || a.IsLoopback() {
		l, err := listenOn(netip.AddrPortFrom(a, 0), "")
		if err != nil {
			return nil, err
		}
		return []stdnet.Listener{l}, nil
	}
	first, err := listenOn(netip.AddrPortFrom(a, 0), device)
	if err != nil { // not allowed, before Linux 5.7
		return listen(a, device, false)
	}
	second, err := listenOn(netip.AddrPortFrom(a, portOf(first)), "lo")
	if err != nil {
		_ = first.Close()
		return listen(a, device, false)
	}
	return []stdnet.Listener{first, second}, nil
}

func listenOn(at netip.AddrPort, device string) (stdnet.Listener, error) {
	var lc stdnet.ListenConfig
	lc.SetMultipathTCP(false)
	if device != "" {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			var inner error
			if err := c.Control(func(fd uintptr) {
				inner = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device)
			}); err != nil {
				return err
			}
			return inner
		}
	}
	network := "tcp6"
	if at.Addr().Is4() {
		network = "tcp4"
	}
	return lc.Listen(context.Background(), network, at.String()) // listening does not block
}

func portOf(l stdnet.Listener) uint16 { return uint16(l.Addr().(*stdnet.TCPAddr).Port) }
