package comm

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xerr"
)

// Descriptors. A communicator between processes takes a connection to rank 0 and, at the first one with a process, a
// socket and a memory file for a moment (guesses with a margin).
const (
	wantFiles  = 6
	spareFiles = 8
)

// spares are descriptors that are held back, so that a process which has run out of them can still tell its peers: a
// rank that cannot even connect would leave the others waiting until their deadline.
type spares struct {
	mu  sync.Mutex
	fds []int
}

// fill opens what is missing, as far as that goes.
func (s *spares) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.fds) < spareFiles {
		fd, err := openNothing()
		if err != nil {
			return
		}
		s.fds = append(s.fds, fd)
	}
}

// release closes them.
func (s *spares) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fd := range s.fds {
		_ = unix.Close(fd)
	}
	s.fds = nil
}

func openNothing() (int, error) {
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// enoughFiles finds out whether a communicator can be made with the descriptors that are left.
func enoughFiles() error {
	var fds []int
	var err error
	for len(fds) < wantFiles && err == nil {
		var fd int
		if fd, err = openNothing(); err == nil {
			fds = append(fds, fd)
		}
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if err != unix.EMFILE && err != unix.ENFILE {
		return nil // no /dev/null is another matter
	}
	var lim unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &lim)
	return xerr.Wrap(xerr.System, "communicator init", err, "%d more file descriptors are needed and %d are left; the limit on open files is %d",
		wantFiles, len(fds), lim.Cur).WithHint("raise it (ulimit -n) or destroy communicators that are no longer needed")
}
