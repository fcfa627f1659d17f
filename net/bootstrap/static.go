package bootstrap

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"net/netip"
	"strconv"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// StaticID makes the id of a fixed address (the form of NCCL_COMM_ID):
// "ipv4:port", "[ipv6]:port" or "host:port". Nothing is opened; rank 0 opens
// that address inside Join. The secret is a function of the text, so it keeps
// strangers out by accident only, not by intent.
func StaticID(text string) (ID, error) {
	if _, err := parseStatic(text); err != nil {
		return ID{}, xerr.New(xerr.InvalidArgument, opInit, "%q: %v", text, err).WithObject("fixed id").
			WithHint("write ipv4:port, [ipv6]:port or host:port")
	}
	id, err := newStaticID(text)
	if err != nil {
		return ID{}, xerr.New(xerr.InvalidArgument, opInit, "%q: %v", text, err).WithObject("fixed id").
			WithHint("use a shorter name, or the numeric address")
	}
	return id, nil
}

// staticAddr is a parsed fixed address: ip is invalid if host must be resolved.
type staticAddr struct {
	host string
	ip   netip.Addr
	port uint16
}

func parseStatic(text string) (staticAddr, error) {
	host, portText, err := stdnet.SplitHostPort(text)
	if err != nil {
		var ae *stdnet.AddrError
		if errors.As(err, &ae) {
			return staticAddr{}, errors.New(ae.Err)
		}
		return staticAddr{}, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return staticAddr{}, fmt.Errorf("the port %q is no number from 1 to 65535", portText)
	}
	if host == "" {
		return staticAddr{}, errors.New("the host is empty")
	}
	a := staticAddr{host: host, port: uint16(port)}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.IsUnspecified() || ip.IsMulticast() {
			return staticAddr{}, fmt.Errorf("%s is no address of one host", host)
		}
		a.ip = ip.Unmap()
	} else if text[0] == '[' {
		return staticAddr{}, fmt.Errorf("%q is no IPv6 address", host)
	}
	return a, nil
}

// resolve gives the addresses to connect to.
func (a staticAddr) resolve(ctx context.Context, family Family) ([]netip.AddrPort, error) {
	if a.ip.IsValid() {
		return []netip.AddrPort{netip.AddrPortFrom(a.ip, a.port)}, nil
	}
	ips, err := stdnet.DefaultResolver.LookupNetIP(ctx, "ip", a.host)
	if err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		if ip = ip.Unmap(); family.allows(ip) {
			out = append(out, netip.AddrPortFrom(ip, a.port))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no address of %s", a.host, family)
	}
	return out, nil
}

// bind opens the fixed address. A host name is opened on all interfaces: on
// its own host a name often stands for a loopback address (Debian's 127.0.1.1).
//
// The address may still belong to an earlier communicator of this process
// whose ranks are just coming together, so "in use" is tried again: without
// limit if it is ours, for inUseLimit if it belongs to somebody else.
func (s *Service) bindStatic(ctx context.Context, a staticAddr) (stdnet.Listener, error) {
	addr := stdnet.JoinHostPort("", strconv.Itoa(int(a.port)))
	if a.ip.IsValid() {
		addr = netip.AddrPortFrom(a.ip, a.port).String()
	}
	begin := time.Now()
	for {
		ln, err := listen(ctx, s.opt.Family.network(), addr)
		if err == nil {
			return ln, nil
		}
		if !isAddrInUse(err) || ctx.Err() != nil || time.Since(begin) > s.opt.RefusedLimit && !s.ownsStatic(a.port) {
			return nil, xerr.Wrap(xerr.System, opListen, err, "cannot open the fixed address").WithObject("address %s", addr).WithRank(0).
				WithHint("the address must be one of rank 0's host, and its port free")
		}
		if !sleep(ctx, retryLater) {
			return nil, context.Cause(ctx)
		}
	}
}
