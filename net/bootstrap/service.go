package bootstrap

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// The calls that errors name.
const (
	opInit   = "bootstrap init"
	opListen = "bootstrap listen"
)

// Level says how important a log line is.
type Level int

const (
	Info Level = iota
	Warn
)

// Options of a service. The zero value is usable.
type Options struct {
	// Log takes one line without newline; nil drops it. It may be called from
	// any goroutine, also with our locks held: it must not block for long and
	// must not call this package.
	Log func(level Level, line string)
	// IfFilter decides by name which interfaces are offered; nil means all.
	// IfFilterText is how the user wrote it ("NCCL_SOCKET_IFNAME=^eth"), for errors.
	IfFilter     func(name string) bool
	IfFilterText string
	Family       Family
	// PortMin and PortMax bound the listening port; 0 and 0 leave it to the system.
	PortMin, PortMax int
	// Timeout is how long Join and the exchanges of a group wait by default.
	Timeout time.Duration
	// ReportAfter says when a waiting room names the ranks that are missing.
	ReportAfter []time.Duration
	// RefusedLimit is how long a join goes on when the process that it looks
	// for seems to be gone (see dialer.gone).
	RefusedLimit time.Duration
	// HandshakeTimeout bounds one attempt to connect and prove the secret, and
	// how long a stranger may keep a connection to us.
	HandshakeTimeout time.Duration
	// quiet is after which silence a reset means that the other end has given the
	// connection up, and not that it has ended.
	quiet time.Duration
	// MaxHalfOpen bounds the connections that have not proved a secret.
	MaxHalfOpen int
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if o.Log == nil {
		o.Log = func(Level, string) {}
	}
	if o.ReportAfter == nil {
		o.ReportAfter = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}
	}
	def(&o.Timeout, 30*time.Minute)
	def(&o.RefusedLimit, 10*time.Second)
	def(&o.quiet, quietLimit)
	def(&o.HandshakeTimeout, 5*time.Second)
	if o.MaxHalfOpen <= 0 {
		o.MaxHalfOpen = 128
	}
	return o
}

// Service is the bootstrap side of one process: one listening socket, opened at
// first need, and the rooms hosted there. All methods may be called from any
// goroutine.
type Service struct {
	opt  Options
	host string
	pid  int

	mu     sync.Mutex
	ls     listeners
	port   uint16
	addrs  []netip.Addr
	ifs    []iface // of this host, as of ifsAt
	ifsAt  time.Time
	hubs   map[RoomID]*hub
	ended  []*hub        // hubs kept only to name their fate, oldest first
	opened chan struct{} // closed and replaced whenever a room opens
	static map[uint16]int
	closed bool

	waiting halfOpen
	noise   limiter
	wg      sync.WaitGroup
}

// maxEndedRooms bounds how many past rooms are remembered by name.
const maxEndedRooms = 1024

// NewService makes a service; nothing is opened yet.
func NewService(opt Options) (*Service, error) {
	if opt.PortMin < 0 || opt.PortMax > 65535 || opt.PortMin > opt.PortMax {
		return nil, xerr.New(xerr.InvalidArgument, opListen, "the port range %d-%d is empty or outside 0-65535", opt.PortMin, opt.PortMax).
			WithObject("port range").WithHint("give a range like 50000-50100")
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown host"
	}
	if len(host) > maxHostBytes {
		host = host[:maxHostBytes]
	}
	return &Service{
		opt:    opt.withDefaults(),
		host:   host,
		pid:    os.Getpid(),
		hubs:   map[RoomID]*hub{},
		opened: make(chan struct{}),
		static: map[uint16]int{},
		noise:  limiter{every: noiseEvery},
	}, nil
}

// listening opens the service's socket at first need and returns where it can
// be reached, best first.
func (s *Service) listening() ([]netip.AddrPort, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errServiceClosed()
	}
	if s.ls == nil {
		if err := s.openLocked(); err != nil {
			return nil, err
		}
	}
	return s.addrsLocked(), nil
}

// reachable is where the service listens, nothing if it does not.
func (s *Service) reachable() []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrsLocked()
}

func (s *Service) addrsLocked() []netip.AddrPort {
	out := make([]netip.AddrPort, min(len(s.addrs), maxAddrs))
	for i := range out {
		out[i] = netip.AddrPortFrom(s.addrs[i], s.port)
	}
	return out
}

func (s *Service) openLocked() error {
	ifs, err := s.interfacesLocked()
	if err != nil {
		return xerr.Wrap(xerr.System, opListen, err, "cannot list the network interfaces")
	}
	addrs, err := candidates(ifs, s.opt)
	if err != nil {
		return err
	}
	ls, err := s.listenInRange(addrs)
	if err != nil {
		return err
	}
	s.ls, s.port, s.addrs = ls, ls.port(), addrs
	s.serveListeners(ls)
	return nil
}

// interfaces lists the interfaces of this host. Asking the system takes a
// message per interface, so many ranks that start together share an answer.
func (s *Service) interfaces() []iface {
	s.mu.Lock()
	defer s.mu.Unlock()
	ifs, err := s.interfacesLocked()
	if err != nil {
		// Only the order of candidates suffers, and link-local ones.
		s.opt.Log(Warn, fmt.Sprintf("bootstrap: cannot list the network interfaces: %v", err))
	}
	return ifs
}

func (s *Service) interfacesLocked() ([]iface, error) {
	if s.ifs != nil && time.Since(s.ifsAt) < interfacesAge {
		return s.ifs, nil
	}
	ifs, err := systemInterfaces()
	if err != nil {
		return s.ifs, err
	}
	s.ifs, s.ifsAt = ifs, time.Now()
	return ifs, nil
}

// interfacesAge is how long an answer about interfaces is believed.
const interfacesAge = 10 * time.Second

// NewID opens a room for a new communicator and returns the invitation to it.
// It does not wait for anybody. This process must live until all ranks have
// joined.
func (s *Service) NewID() (ID, error) {
	at, err := s.listening()
	if err != nil {
		return ID{}, err
	}
	addrs := make([]netip.Addr, len(at))
	for i, a := range at {
		addrs[i] = a.Addr()
	}
	id, err := newID(addrs, at[0].Port(), s.pid)
	if err != nil {
		return ID{}, xerr.Wrap(xerr.System, "bootstrap new id", err, "cannot get random bytes")
	}
	info, err := parseID(id)
	if err != nil {
		return ID{}, err
	}
	h := newHub(s, info.room, info.label())
	if err := s.open(h); err != nil {
		return ID{}, err
	}
	return id, nil
}

// open makes a hub known. A room that is open or has ended in this process is
// not opened twice, unless it is one of a fixed address.
func (s *Service) open(h *hub) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errServiceClosed()
	}
	if _, used := s.hubs[h.room.ID]; used && h.staticLn == nil {
		return xerr.New(xerr.InvalidUsage, opInit, "the room has been opened before in this process").WithObject("%s", h.label).
			WithHint("use a new id or label for every communicator")
	}
	s.hubs[h.room.ID] = h
	close(s.opened)
	s.opened = make(chan struct{})
	return nil
}

// find returns the hub of a room hosted here, and a channel that closes when
// the next room opens.
func (s *Service) find(id RoomID) (*hub, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hubs[id], s.opened
}

// retire is called once by a hub that has ended; it stays known for a while so
// that late comers can be told.
func (s *Service) retire(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, h)
	if len(s.ended) > maxEndedRooms {
		old := s.ended[0]
		s.ended = s.ended[1:]
		// A fixed address may have a newer hub under the same id.
		if s.hubs[old.room.ID] == old {
			delete(s.hubs, old.room.ID)
		}
	}
}

func (s *Service) holdStatic(port uint16, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.static[port] += by
	if s.static[port] == 0 {
		delete(s.static, port)
	}
}

func (s *Service) ownsStatic(port uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.static[port] > 0
}

// Close ends all rooms of this process and waits for what the service started.
// Groups should be closed before.
func (s *Service) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	ls := s.ls
	var hubs []*hub
	for _, h := range s.hubs {
		hubs = append(hubs, h)
	}
	s.mu.Unlock()
	err := ls.Close()
	s.waiting.closeAll()
	for _, h := range hubs {
		h.shutdown()
	}
	s.wg.Wait()
	return err
}

func (s *Service) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// spawn runs f in a goroutine that Close waits for.
func (s *Service) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		f()
	}()
	return true
}

func errServiceClosed() error {
	return xerr.New(xerr.InvalidUsage, opInit, "the bootstrap service of this process has been closed")
}

func limitHint() string {
	return fmt.Sprintf("the limit on open files is %d; raise it (ulimit -n) or close unused communicators", descriptorLimit())
}

// retryLater is the pause between attempts at something that others must end.
const retryLater = 20 * time.Millisecond

// sleep waits for d and is true unless ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
