package bootstrap

import (
	"errors"
	stdnet "net"
	"syscall"
	"time"
)

// A peer whose host vanished is noticed in about five seconds: by keep-alive on
// an idle connection, by the user timeout when data is under way. The latter
// also gives up a peer that has stopped reading for that long.
const (
	keepAliveIdle     = 2 * time.Second
	keepAliveInterval = 1 * time.Second
	keepAliveCount    = 3
	userTimeout       = 5 * time.Second

	// TCP_USER_TIMEOUT of linux/tcp.h; package syscall does not name it.
	tcpUserTimeout = 0x12
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
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(userTimeout/time.Millisecond))
		})
	}
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
