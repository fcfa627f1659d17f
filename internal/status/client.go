package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxAnswer bounds what is read of one process: far above 64 communicators of 4096 ranks.
const maxAnswer = 64 << 20

// errStale: nobody listens on the socket any more.
var errStale = errors.New("its process has ended")

// List asks all processes of a folder. A process that does not answer in time gives an error and the others are asked all the same;
// the sockets of processes that have ended are removed without a word. A folder that does not exist has none.
func List(dir string, limit time.Duration) ([]Process, []error) {
	if err := ours(dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, []error{err}
	}
	var (
		out  []Process
		errs []error
	)
	for _, path := range sockets(dir) {
		p, err := Ask(path, limit)
		switch {
		case err == nil:
			out = append(out, p)
		case errors.Is(err, errStale):
			_ = os.Remove(path)
		case errors.Is(err, os.ErrNotExist): // it has gone meanwhile
		default:
			errs = append(errs, fmt.Errorf("process %d: %w", pidOf(path), err))
		}
	}
	return out, errs
}

// Ask asks one process.
func Ask(path string, limit time.Duration) (Process, error) {
	var p Process
	c, err := dial(path, limit)
	if err != nil {
		return p, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	if err := json.NewDecoder(io.LimitReader(c, maxAnswer)).Decode(&p); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return p, fmt.Errorf("no answer within %v: it may be stopped", limit)
		}
		return p, fmt.Errorf("its answer is not understood: %w", err)
	}
	return p, nil
}

// dial connects, and makes sure that the process that listened is alive: a child that it forked may have inherited the descriptor.
func dial(path string, limit time.Duration) (*stdnet.UnixConn, error) {
	d := stdnet.Dialer{Timeout: limit}
	conn, err := d.Dial("unix", path)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, errStale
	}
	if err != nil {
		return nil, err
	}
	c := conn.(*stdnet.UnixConn) // a dialer of "unix" makes no other
	if cred, err := credentials(c); err == nil && ended(int(cred.Pid)) {
		_ = c.Close()
		return nil, errStale
	}
	return c, nil
}

// Sweep removes the sockets of processes that have ended.
func Sweep(dir string) {
	for _, path := range sockets(dir) {
		if !ended(pidOf(path)) {
			continue
		}
		c, err := dial(path, time.Second)
		if errors.Is(err, errStale) {
			_ = os.Remove(path)
		} else if err == nil { // of another PID namespace
			_ = c.Close()
		}
	}
}
