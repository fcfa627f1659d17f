package status

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	stdnet "net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime bounds one answer: a client that does not read must not hold up the next one for long.
const answerTime = 2 * time.Second

// Server answers on the socket of this process.
type Server struct {
	listener *stdnet.UnixListener
	path     string
	done     chan struct{}
}

// Serve begins to answer with what tell says at that moment, one client after another. Sockets that processes left behind are removed.
func Serve(dir string, tell func() Process) (*Server, error) {
	if err := prepare(dir); err != nil {
		return nil, err
	}
	Sweep(dir)
	var tag [4]byte
	if _, err := rand.Read(tag[:]); err != nil {
		return nil, err
	}
	// A number is used again after its process, and two containers may share the folder: so a random part.
	path := filepath.Join(dir, fmt.Sprintf("%d-%x.sock", os.Getpid(), tag))
	l, err := stdnet.ListenUnix("unix", &stdnet.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	s := &Server{listener: l, path: path, done: make(chan struct{})}
	go s.run(tell)
	return s, nil
}

// Path is the socket.
func (s *Server) Path() string { return s.path }

// Close ends the server, removes its socket, and returns when nobody is being answered any more.
func (s *Server) Close() {
	_ = s.listener.Close() // also removes the file
	<-s.done
}

func (s *Server) run(tell func() Process) {
	defer close(s.done)
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, stdnet.ErrClosed) {
				return
			}
			time.Sleep(100 * time.Millisecond) // no descriptors left, or the like
			continue
		}
		answer(c, tell)
	}
}

func answer(c *stdnet.UnixConn, tell func() Process) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	peer, err := credentials(c)
	if err != nil || int(peer.Uid) != os.Geteuid() && peer.Uid != 0 {
		return
	}
	_ = json.NewEncoder(c).Encode(tell()) // the client may have gone
}

// credentials are those of the other end: of the process that connected, or, seen from there, of the one that called listen (unix(7)).
func credentials(c *stdnet.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return nil, e
	}
	return cred, err
}
