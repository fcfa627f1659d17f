package socket

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// route is a pair of addresses over which a stream may go, with the local interface.
type route struct {
	dev  *device
	rail int // index of dev
	from netip.Addr
	to   place
}

// rank orders routes: the lower, the better. A network in common tells more than the order of the interfaces.
func (r *route) rank() int {
	common := slices.ContainsFunc(r.dev.subnets, func(p netip.Prefix) bool {
		return p.Contains(r.to.at.Addr().WithZone("")) && !p.Addr().IsLinkLocalUnicast()
	})
	n := 4
	if common {
		n = 0
	}
	if r.rail != r.to.rail {
		n += 2
	}
	if r.to.at.Addr().IsLinkLocalUnicast() {
		n++
	}
	return n
}

// routes are all pairs of one family between devices and the places of a peer, best first.
func routes(devs []device, to []place) []route {
	var out []route
	for i := range devs {
		for _, a := range devs[i].Addrs {
			for _, p := range to {
				// A loopback address leads to this host whatever host the peer is on: only from loopback.
				if a.Is4() != p.at.Addr().Is4() || a.IsLinkLocalUnicast() != p.at.Addr().IsLinkLocalUnicast() || a.IsLoopback() != p.at.Addr().IsLoopback() {
					continue
				}
				if a.Is6() && a.IsLinkLocalUnicast() {
					p.at = netip.AddrPortFrom(p.at.Addr().WithZone(devs[i].Name), p.at.Port())
				}
				out = append(out, route{&devs[i], i, a, p})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b route) int { return a.rank() - b.rank() })
	return out
}

// dial opens a TCP connection along a route: from the interface itself, not whichever the routing table prefers when two
// are in one network.
func (r *route) dial(ctx context.Context, local func(netip.Addr) bool) (*stdnet.TCPConn, error) {
	d := stdnet.Dialer{LocalAddr: stdnet.TCPAddrFromAddrPort(netip.AddrPortFrom(r.from, 0)), KeepAlive: -1}
	d.SetMultipathTCP(false)
	if !local(r.to.at.Addr()) { // what stays on this host arrives from the loopback interface
		d.Control = func(_, _ string, c syscall.RawConn) error {
			// Allowed to everybody since Linux 5.7 (socket(7)); before, the routing table decides.
			return c.Control(func(fd uintptr) {
				_ = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, r.dev.Name)
			})
		}
	}
	c, err := d.DialContext(ctx, "tcp", r.to.at.String())
	if err != nil {
		return nil, fmt.Errorf("from %s (%v) to %v: %w", r.dev.Name, r.from, r.to.at, innermost(err))
	}
	return c.(*stdnet.TCPConn), nil
}

// innermost drops the addresses that net repeats.
func innermost(err error) error {
	var op *stdnet.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// path is a route that works, with its first stream.
type path struct {
	route
	conn *stdnet.TCPConn
}

const (
	// grace is how long the other routes may take once one works: a worse NIC is not waited for long. A guess.
	grace = 250 * time.Millisecond
	// patience is how long the routes of one attempt may take. Packets are lost: a SYN is repeated after 1 s and 3 s.
	patience = 4 * time.Second
)

// try dials all routes at once, proves each that answers, and keeps one for every interface, with different interfaces of
// the peer where there are as many.
func try(ctx context.Context, rs []route, local func(netip.Addr) bool, prove func(*stdnet.TCPConn, *route) error) ([]path, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type result struct {
		i    int
		conn *stdnet.TCPConn
		err  error
	}
	results := make(chan result, len(rs))
	for i := range rs {
		go func() {
			c, err := rs[i].dial(ctx, local)
			if err == nil {
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				err = prove(c, &rs[i])
				if !stop() && err == nil { // closed in the last moment
					err = ctx.Err()
				}
				if err != nil {
					_ = c.Close()
					err = fmt.Errorf("from %s to %v: %w", rs[i].dev.Name, rs[i].to.at, err)
				}
			}
			results <- result{i, c, err}
		}()
	}
	conns := make([]*stdnet.TCPConn, len(rs))
	errs := make([]error, len(rs))
	working := 0
	for range rs {
		r := <-results
		if errs[r.i] = r.err; r.err == nil {
			conns[r.i] = r.conn
			if working++; working == 1 {
				time.AfterFunc(grace, cancel)
			}
		}
	}
	var out []path
	devs, rails := map[int]bool{}, map[int]bool{}
	for _, again := range []bool{false, true} { // the second time also interfaces of the peer that are taken
		for i, r := range rs {
			if conns[i] != nil && !devs[r.rail] && (again || !rails[r.to.rail]) {
				devs[r.rail], rails[r.to.rail] = true, true
				out = append(out, path{r, conns[i]})
				conns[i] = nil
			}
		}
	}
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}
