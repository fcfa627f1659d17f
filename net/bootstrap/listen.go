package bootstrap

import (
	"context"
	"errors"
	"math/rand/v2"
	stdnet "net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"

	"github.com/gccl/gccl/internal/xerr"
)

// listeners are the sockets of one port: usually one, of both families.
type listeners []stdnet.Listener

func (ls listeners) Close() error {
	var errs []error
	for _, l := range ls {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func listen(ctx context.Context, network, addr string) (stdnet.Listener, error) {
	var lc stdnet.ListenConfig
	// Multipath TCP is package net's default for listeners; it lacks options
	// that tune sets.
	lc.SetMultipathTCP(false)
	return lc.Listen(ctx, network, addr)
}

// listenAll opens a port on all interfaces for the given families.
//
// Package net listens for IPv4 alone if it finds that IPv6 sockets cannot take
// IPv4, and it finds that on every host without 127.0.0.1, so IPv6 then needs
// a socket of its own (seen with Go 1.26).
func listenAll(ctx context.Context, v4, v6 bool, port int) (listeners, error) {
	network := "tcp"
	switch {
	case !v6:
		network = "tcp4"
	case !v4:
		network = "tcp6"
	}
	first, err := listen(ctx, network, stdnet.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	at, ok := first.Addr().(*stdnet.TCPAddr)
	if !ok || !v6 || at.IP.To4() == nil {
		return listeners{first}, nil
	}
	second, err := listen(ctx, "tcp6", stdnet.JoinHostPort("", strconv.Itoa(at.Port)))
	if err != nil {
		first.Close()
		return nil, err
	}
	return listeners{first, second}, nil
}

const minPortTries = 16

// port is the port that listeners share.
func (ls listeners) port() uint16 {
	if at, ok := ls[0].Addr().(*stdnet.TCPAddr); ok {
		return uint16(at.Port)
	}
	return 0
}

// listenInRange tries the ports of the range from a random one on, so that
// processes that start together seldom collide.
func (s *Service) listenInRange(addrs []netip.Addr) (listeners, error) {
	ctx := context.Background() // listening does not block
	v4 := slices.ContainsFunc(addrs, netip.Addr.Is4)
	v6 := slices.ContainsFunc(addrs, netip.Addr.Is6)
	n := s.opt.PortMax - s.opt.PortMin + 1
	from := rand.IntN(n)
	var last error
	// A random port may be free for one family only, so one try is not enough.
	for i := range max(n, minPortTries) {
		ls, err := listenAll(ctx, v4, v6, s.opt.PortMin+(from+i)%n)
		if err == nil {
			return ls, nil
		}
		last = err
		if outOfDescriptors(err) {
			break
		}
	}
	e := xerr.Wrap(xerr.System, opListen, last, "cannot open a listening socket").WithObject("ports %d-%d", s.opt.PortMin, s.opt.PortMax)
	if outOfDescriptors(last) {
		return nil, e.WithHint("%s", limitHint())
	}
	return nil, e.WithHint("widen the port range, or end the processes that use it")
}

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
