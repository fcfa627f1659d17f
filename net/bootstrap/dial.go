package bootstrap

import (
	"context"
	"errors"
	"fmt"
	stdnet "net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
)

const (
	// stagger is the head start of each candidate over the next one.
	stagger = 50 * time.Millisecond
	// retryMin and retryMax bound the pause between attempts at one candidate.
	retryMin = 5 * time.Millisecond
	retryMax = 250 * time.Millisecond
)

// dialer looks for the host of a room at several addresses at once. Every
// candidate is tried until one proves the secret or the caller gives up.
type dialer struct {
	svc  *Service
	room Room
	// roomMayCome: a host that does not know the room yet is a matter of time.
	roomMayCome bool
	// hostMayCome: so is one that refuses connections.
	hostMayCome bool

	mu   sync.Mutex
	last map[target]error // of every finished attempt
}

// target is where an attempt goes: to an address, by the kernel's choice of way
// or through one interface.
type target struct {
	netip.AddrPort
	device string
}

func (t target) String() string {
	if t.device == "" {
		return t.AddrPort.String()
	}
	return t.AddrPort.String() + " through " + t.device
}

// errHostGone ends a search whose host seems to be gone.
var errHostGone = errors.New("the process that is looked for is gone")

// connect returns a connection whose host has proved the secret.
func (d *dialer) connect(ctx context.Context, targets []target) (stdnet.Conn, error) {
	d.mu.Lock()
	d.last = map[target]error{}
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	won := make(chan stdnet.Conn, len(targets))
	fatal := make(chan error, len(targets))
	var wg sync.WaitGroup
	var before <-chan struct{} // closed when the candidate before has failed once
	for i, at := range targets {
		tried := make(chan struct{})
		start := before
		wg.Add(1)
		go func() {
			defer wg.Done()
			d.pursue(ctx, at, time.Duration(i)*stagger, start, tried, won, fatal)
		}()
		before = tried
	}
	defer func() {
		cancel()
		wg.Wait()
		for len(won) > 0 {
			(<-won).Close()
		}
	}()
	check := time.NewTimer(d.svc.opt.RefusedLimit)
	defer check.Stop()
	for {
		select {
		case l := <-won:
			return l, nil
		case err := <-fatal:
			return nil, err
		case <-check.C:
			if d.gone(targets) {
				return nil, errHostGone
			}
			check.Reset(retryMax)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// pursue tries one candidate until it answers or ctx ends.
func (d *dialer) pursue(ctx context.Context, at target, delay time.Duration, start <-chan struct{}, tried chan struct{}, won chan<- stdnet.Conn, fatal chan<- error) {
	var once sync.Once
	defer once.Do(func() { close(tried) })
	if start != nil {
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-start:
		case <-ctx.Done():
		}
		t.Stop()
	}
	for pause := retryMin; ctx.Err() == nil; pause = min(2*pause, retryMax) {
		l, err := d.attempt(ctx, at)
		if err == nil {
			won <- l
			return
		}
		if ctx.Err() != nil {
			return
		}
		if outOfDescriptors(err) {
			fatal <- xerr.Wrap(xerr.System, opInit, err, "cannot open a connection").WithObject("%s", at).WithHint("%s", limitHint())
			return
		}
		d.mu.Lock()
		d.last[at] = err
		d.mu.Unlock()
		once.Do(func() { close(tried) })
		sleep(ctx, pause)
	}
}

// attempt connects once and does the handshake.
func (d *dialer) attempt(ctx context.Context, at target) (stdnet.Conn, error) {
	limit := d.svc.opt.HandshakeTimeout
	nd := stdnet.Dialer{Timeout: limit, KeepAlive: -1} // tune sets it
	if at.device != "" {
		nd.Control = func(_, _ string, raw syscall.RawConn) error {
			var inner error
			err := raw.Control(func(fd uintptr) {
				inner = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, at.device)
			})
			return errors.Join(err, inner)
		}
	}
	conn, err := nd.DialContext(ctx, "tcp", at.AddrPort.String())
	if err != nil {
		return nil, err
	}
	tune(conn)
	_ = conn.SetDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = proveToHost(conn, d.room)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// redialer finds another way to a room's host.
func (s *Service) redialer(room Room) redialer {
	return func(ctx context.Context, hosts []netip.AddrPort) (stdnet.Conn, error) {
		ifs := s.interfaces()
		targets := throughEach(targetsOf(hosts, ifs), ifs)
		d := &dialer{svc: s, room: room, roomMayCome: true, hostMayCome: true}
		conn, err := d.connect(ctx, targets)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, d.reasons(targets))
		}
		s.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: the connection to the host has gone silent; goes on over %s", room, conn.RemoteAddr()))
		return conn, nil
	}
}

// throughEach adds each target through each interface, for a host whose
// addresses are in the network of a link that is cut.
func throughEach(targets []target, ifs []iface) []target {
	out := slices.Clone(targets)
	for _, t := range targets {
		for _, f := range ifs {
			same := slices.ContainsFunc(f.addrs, func(a netip.Addr) bool { return a.Is4() == t.Addr().Is4() })
			if same && !f.loopback && !t.Addr().IsLoopback() && t.Addr().Zone() == "" {
				out = append(out, target{t.AddrPort, f.name})
			}
		}
	}
	return out[:min(len(out), maxTargets)]
}

// gone decides that there is nobody left to wait for. Asked after
// RefusedLimit, it is true if every candidate has been tried and at least one
// that is not loopback (or one at all, if all are) refused or did not know the
// room. Candidates that only stay silent, as behind a firewall, are no proof:
// then the search goes on until its deadline.
func (d *dialer) gone(targets []target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	onlyLoopback := !slices.ContainsFunc(targets, func(a target) bool { return !a.Addr().IsLoopback() })
	proof := false
	for _, at := range targets {
		err, tried := d.last[at]
		if !tried {
			return false
		}
		says := false
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			says = !d.hostMayCome
		case errors.Is(err, errUnknownRoom), errors.Is(err, errImpostor):
			if d.roomMayCome {
				return false
			}
			says = true
		case errors.Is(err, errNotOurs):
			says = !d.hostMayCome
		}
		if says && (onlyLoopback || !at.Addr().IsLoopback()) {
			proof = true
		}
	}
	return proof
}

// reasons writes what came of each candidate.
func (d *dialer) reasons(targets []target) string {
	if len(targets) == 0 {
		return "no candidate address"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, at := range targets {
		why := "no answer yet"
		if err := d.last[at]; err != nil {
			why = shortReason(err)
		}
		out = append(out, fmt.Sprintf("%s -> %s", at, why))
	}
	return strings.Join(out, "; ")
}

// shortReason strips what package net repeats of the address.
func shortReason(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	var t stdnet.Error
	if errors.As(err, &t) && t.Timeout() {
		return "no answer in time"
	}
	return err.Error()
}

// targetsOf turns the candidates of a room into addresses to connect to. A
// link-local IPv6 address is only good together with an interface of this
// host, so it is tried on the one of the same name and then on the others.
// Loopback goes first if another candidate is an address of this host.
func targetsOf(addrs []netip.AddrPort, ifs []iface) []target {
	var out, loop []target
	sameHost := false
	for _, ap := range addrs {
		a := ap.Addr()
		for _, f := range ifs {
			if !a.IsLoopback() && slices.Contains(f.addrs, a) {
				sameHost = true
			}
		}
		switch {
		case a.IsLoopback():
			loop = append(loop, target{AddrPort: ap})
		case a.Is6() && a.IsLinkLocalUnicast():
			var others []target
			for _, f := range ifs {
				v := target{AddrPort: netip.AddrPortFrom(a.WithZone(f.name), ap.Port())}
				switch {
				case f.name == a.Zone():
					out = append(out, v)
				case !f.loopback:
					others = append(others, v)
				}
			}
			out = append(out, others...)
		default:
			out = append(out, target{AddrPort: ap})
		}
	}
	if sameHost {
		out = append(loop, out...)
	} else {
		out = append(out, loop...)
	}
	if len(out) > maxTargets {
		out = out[:maxTargets]
	}
	return out
}

// maxTargets bounds the attempts that go on at the same time.
const maxTargets = 32
