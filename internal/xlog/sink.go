package xlog

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stderrFD = 2

	// maxLine keeps a line within PIPE_BUF (4096 on Linux, pipe(7)): lines of
	// several processes into one pipe then stay whole, and a pipe that poll
	// calls writable takes the line without blocking.
	maxLine = 4096

	// stderrWait is how long a line waits for a reader of standard error that
	// has stopped reading, before it is dropped. A guess: long enough for a
	// pager's hiccup, short enough not to look like a hang.
	stderrWait = time.Second
)

// fileSink writes each line with one write call, straight to the descriptor:
// nothing is buffered, so a line survives _exit and, unless it is just being
// written, SIGKILL. It goes around os.File because that hands pipes to the
// poller, where a write to a full pipe waits for ever.
type fileSink struct {
	mu      sync.Mutex
	fd      int    // -1 after close
	path    string // empty: standard error
	stderr  int
	dropped int  // lines lost since the last one written
	stuck   bool // the last wait for standard error ran out
}

// openSink opens path for appending, or standard error if path is empty or
// cannot be opened; the latter is said in one line.
//
// O_NONBLOCK makes opening a named pipe without reader fail (ENXIO) instead of
// waiting; O_APPEND lets processes share the file.
func openSink(path string, stderr int) *fileSink {
	s := &fileSink{fd: stderr, stderr: stderr}
	if path == "" {
		return s
	}
	fd, err := openRetry(path)
	if err != nil {
		s.say(fmt.Sprintf("cannot open log file %s: %s; lines go to standard error\n", oneLine(path), reason(err)))
		return s
	}
	s.fd, s.path = fd, path
	return s
}

func openRetry(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o644)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func reason(err error) string {
	if errors.Is(err, unix.ENXIO) {
		return "it is a pipe that nobody reads"
	}
	return err.Error()
}

// Write takes one whole line. It never fails: a file that can take no more is
// given up for standard error with one line that says so, a full pipe loses
// lines and their number is said later.
func (s *fileSink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(line)
	if s.fd < 0 {
		return n, nil
	}
	if len(line) > maxLine {
		line = append(append([]byte(nil), line[:maxLine-16]...), " [line cut off]\n"...)
	}
	if s.dropped > 0 {
		note := fmt.Sprintf("%d log lines were lost: the reader was too slow\n", s.dropped)
		if s.put([]byte(note)) == nil {
			s.dropped = 0
		}
	}
	err := s.put(line)
	switch {
	case err == nil:
	case errors.Is(err, unix.EAGAIN):
		s.dropped++
	case s.path != "":
		unix.Close(s.fd)
		s.fd = s.stderr
		s.say(fmt.Sprintf("cannot write log file %s: %s; lines go to standard error\n", oneLine(s.path), err))
		s.path = ""
		s.say(string(line))
	}
	return n, nil
}

// Sync is for zap; nothing is buffered.
func (s *fileSink) Sync() error { return nil }

// say writes to standard error and does not mind when that fails.
func (s *fileSink) say(text string) {
	if s.waitStderr() {
		_ = writeAll(s.stderr, []byte(text))
	}
}

func (s *fileSink) put(line []byte) error {
	if s.path == "" && !s.waitStderr() {
		return unix.EAGAIN
	}
	return writeAll(s.fd, line)
}

// waitStderr waits a bounded time until standard error takes a line. After one
// wait in vain it does not wait again until a line went through.
func (s *fileSink) waitStderr() bool {
	left := stderrWait
	if s.stuck {
		left = 0
	}
	end := time.Now().Add(left)
	for {
		fds := []unix.PollFd{{Fd: int32(s.stderr), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, int(left.Milliseconds()))
		if err == unix.EINTR {
			left = max(0, time.Until(end))
			continue
		}
		s.stuck = err == nil && n == 0
		return !s.stuck
	}
}

// writeAll writes the line with one call in all but one case: a file system
// that takes only a part (it is nearly full) is asked for the rest.
func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		default:
			b = b[n:]
		}
	}
	return nil
}

func (s *fileSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" {
		unix.Close(s.fd)
	}
	s.fd = -1
}
