package bootstrap

import (
	"errors"
	stdnet "net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A silent connection is noticed after two seconds: by keep-alive when it is
// idle (the user timeout counts there too, tcp(7)), by the user timeout when
// data is under way. The latter also gives up a peer that has stopped reading
// for that long.
const (
	keepAliveIdle     = 1 * time.Second
	keepAliveInterval = 1 * time.Second
	keepAliveCount    = 2
	silenceLimit      = 1900 * time.Millisecond // between two probes, so that the second finds it over
	quietLimit        = 1500 * time.Millisecond // longer than a living peer leaves a probe unanswered
)

// tune sets the options of a control connection. They make the loss of a peer
// visible sooner; without them everything still works.
func tune(conn stdnet.Conn) {
	tcp, ok := conn.(*stdnet.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(stdnet.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit/time.Millisecond))
		})
	}
}

// States of a connection whose other end has closed it (include/net/tcp_states.h of Linux).
const (
	stateCloseWait = 8
	stateLastAck   = 9
)

// tcpInfo is what the kernel knows of a connection.
func tcpInfo(conn stdnet.Conn) (*unix.TCPInfo, bool) {
	tcp, ok := conn.(*stdnet.TCPConn)
	if !ok {
		return nil, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, false
	}
	var info *unix.TCPInfo
	inner := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, inner == nil && err == nil
}

// tcpState is the state of a connection, and for how long nothing was heard of the other kernel.
func tcpState(conn stdnet.Conn) (state uint8, quiet time.Duration, ok bool) {
	info, ok := tcpInfo(conn)
	if !ok {
		return 0, 0, false
	}
	return info.State, time.Duration(info.Last_ack_recv+1) * time.Millisecond, true // the kernel rounds down
}

// inFlight is whether the other kernel has not acknowledged all that was written.
func inFlight(conn stdnet.Conn) bool {
	info, ok := tcpInfo(conn)
	return ok && (info.Unacked > 0 || info.Notsent_bytes > 0)
}

// abandon closes a silent connection without a goodbye that would come late.
func abandon(conn stdnet.Conn) {
	if tcp, ok := conn.(*stdnet.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// outOfDescriptors is true if err says that this process or machine has no
// descriptor or socket memory left.
func outOfDescriptors(err error) bool {
	for _, no := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// descriptorLimit is the soft limit on open files, 0 if unknown.
func descriptorLimit() uint64 {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 0
	}
	return lim.Cur
}
