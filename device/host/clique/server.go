package clique

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	stdnet "net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/xerr"
)

// maxAsking bounds how many connections are served at a time: anybody in the network namespace may connect.
const maxAsking = 256

// askDeadline bounds a conversation. It is as long as a rank tries to be admitted: on a machine with hundreds of processes
// a thread may not run for seconds, and a shorter deadline would cut off a peer for this process's own slowness. Nobody
// waits for it: with the last Offer all connections are closed.
const askDeadline = 30 * time.Second

// server is the listening side of this process. It exists while any communicator is being set up.
type server struct {
	ln   *stdnet.UnixListener
	name string
	done chan struct{}

	mu     sync.Mutex
	asking map[*stdnet.UnixConn]struct{} // nil once the server is closed
}

// enter remembers a connection, so that close can end it. It says no when the server is closed.
func (s *server) enter(c *stdnet.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking == nil {
		return false
	}
	s.asking[c] = struct{}{}
	return true
}

func (s *server) leave(c *stdnet.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asking, c)
}

// close ends the server. Preconditions: no peer of a granted secret is still asking.
func (s *server) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for c := range s.asking {
		_ = c.Close()
	}
	s.asking = nil
	s.mu.Unlock()
	<-s.done
}

type grant struct {
	secret []byte
	refs   int
}

var local struct {
	mu     sync.Mutex
	srv    *server
	grants map[ID]*grant
}

// Endpoint is what a peer needs to find this process's arena.
type Endpoint struct {
	Nonce  arena.Nonce
	Socket string // abstract name, without the leading NUL
}

// Offer makes this process serve its arena to peers that know the secret. The caller calls Withdraw once; several
// ranks of one process may offer the same secret.
func Offer(secret []byte) (Endpoint, error) {
	a, err := arena.Process()
	if err != nil {
		return Endpoint{}, err
	}
	local.mu.Lock()
	defer local.mu.Unlock()
	if local.srv == nil {
		srv, err := listen(a)
		if err != nil {
			return Endpoint{}, err
		}
		local.srv = srv
	}
	if local.grants == nil {
		local.grants = map[ID]*grant{}
	}
	id := IDOf(secret)
	g := local.grants[id]
	if g == nil {
		g = &grant{secret: append([]byte(nil), secret...)}
		local.grants[id] = g
	}
	g.refs++
	return Endpoint{Nonce: a.Nonce(), Socket: local.srv.name}, nil
}

// Withdraw ends an Offer. With the last one the socket is closed.
func Withdraw(secret []byte) {
	local.mu.Lock()
	id := IDOf(secret)
	var last *server
	if g := local.grants[id]; g != nil {
		if g.refs--; g.refs == 0 {
			delete(local.grants, id)
		}
		if len(local.grants) == 0 {
			last, local.srv = local.srv, nil
		}
	}
	local.mu.Unlock()
	if last != nil {
		last.close()
	}
}

func granted(id ID) []byte {
	local.mu.Lock()
	defer local.mu.Unlock()
	if g := local.grants[id]; g != nil {
		return g.secret
	}
	return nil
}

func listen(a *arena.Arena) (*server, error) {
	const op = "shared memory socket"
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "no random name")
	}
	s := &server{name: "gccl-" + hex.EncodeToString(random[:]), done: make(chan struct{}), asking: map[*stdnet.UnixConn]struct{}{}}
	ln, err := stdnet.ListenUnix("unixpacket", &stdnet.UnixAddr{Name: "@" + s.name, Net: "unixpacket"})
	if err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "cannot listen on an abstract Unix socket").
			WithHint("check the limit of open files (ulimit -n) and that the sandbox allows Unix sockets")
	}
	s.ln = ln
	go s.accept(a)
	return s, nil
}

func (s *server) accept(a *arena.Arena) {
	defer close(s.done)
	var busy sync.WaitGroup
	defer busy.Wait()
	slots := make(chan struct{}, maxAsking)
	for {
		c, err := s.ln.AcceptUnix()
		if err != nil {
			if ne, ok := err.(stdnet.Error); ok && ne.Timeout() {
				continue
			}
			if isClosed(err) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: the peer's deadline bounds this
			continue
		}
		slots <- struct{}{}
		busy.Add(1)
		go func() {
			defer busy.Done()
			if s.enter(c) {
				serve(c, a)
				s.leave(c)
			} else {
				_ = c.Close()
			}
			<-slots
		}()
	}
}

// serve answers one peer. Whoever fails a check is disconnected without a word.
func serve(c *stdnet.UnixConn, a *arena.Arena) {
	defer c.Close()
	if c.SetDeadline(time.Now().Add(askDeadline)) != nil {
		return
	}
	if _, err := sameUser(c); err != nil {
		return
	}
	var mine [challengeBytes]byte
	if _, err := rand.Read(mine[:]); err != nil {
		return
	}
	if _, err := c.Write(mine[:]); err != nil {
		return
	}
	buf := make([]byte, askBytes+1)
	n, err := c.Read(buf)
	if err != nil {
		return
	}
	q, ok := parseAsk(buf[:n])
	if !ok {
		return
	}
	secret := granted(q.id)
	if secret == nil || !hmac.Equal(q.proof, mac(secret, "client", mine[:], q.signed)) {
		return
	}
	fd, size := a.FD(), a.Size()
	if q.item != theArena {
		export := exporter.Load()
		if export == nil {
			return
		}
		if fd, size = (*export)(q.item); fd < 0 {
			return
		}
		defer unix.Close(fd)
	}
	_, _, _ = c.WriteMsgUnix(answer(secret, q.challenge, mine[:], a.Nonce(), size), unix.UnixRights(fd), nil)
}

// exporter makes a descriptor for a device allocation of this process, or -1.
var exporter atomic.Pointer[func(item uint64) (fd int, size uint64)]

// SetExporter says who makes descriptors for device allocations that peers ask for.
func SetExporter(export func(item uint64) (fd int, size uint64)) { exporter.Store(&export) }
