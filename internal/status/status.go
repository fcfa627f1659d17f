// Package status owns what a process tells about its communicators while they run, and the Unix socket that tells it: one
// socket for a process, in a folder that only its user may enter.
//
// It must not know what a communicator is, and nothing of it is on the way of an operation: whoever asks pays.
package status

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is what one process tells.
type Process struct {
	PID     int    `json:"pid"`
	Program string `json:"program"` // its executable; empty if unknown
	Library string `json:"library"` // version of the library
	AtNs    int64  `json:"at_ns"`   // clock of the process, for rates between two answers; no meaning besides
	Comms   []Comm `json:"comms"`
}

// Comm is one rank's communicator.
type Comm struct {
	ID       string `json:"id"`   // the same at all ranks of the communicator, for as long as it lives
	Name     string `json:"name"` // commName of the configuration
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks"`
	Device   string `json:"device"` // host or cuda
	State    string `json:"state"`  // ready, finalized, revoked, failed
	Error    string `json:"error,omitempty"`
	Calls    uint64 `json:"calls"`    // communication calls of this rank so far
	Bytes    uint64 `json:"bytes"`    // their payload
	Finished uint64 `json:"finished"` // number of the last collective that this rank has finished; on CUDA: that has ended in its stream
	Running  uint64 `json:"running"`  // number of the collective in flight, on CUDA of the first that was called and has not ended; 0: none
	What     string `json:"what,omitempty"`
	Peers    []Peer `json:"peers"`
}

// Peer is a rank of a communicator as another one sees it in the memory that they share.
type Peer struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Seen     bool   `json:"seen"`     // the fields below are known: its memory is mapped here
	Finished uint64 `json:"finished"` // last collective that it has finished
	Joined   bool   `json:"joined"`   // it has joined the collective that Comm.Running numbers
	Process  string `json:"process"`  // alive, stopped, ended, left (the communicator), unknown
}

// Folder is where the sockets of a user are. dir: of the setting; empty: /tmp/gccl-UID.
func Folder(dir string) string {
	if dir != "" {
		return dir
	}
	return fmt.Sprintf("/tmp/gccl-%d", os.Geteuid())
}

// prepare makes the folder, or makes sure that nobody else can have put anything there.
func prepare(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return ours(dir)
}

// ours says why a folder is not to be trusted.
func ours(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a folder", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to user %d", dir, st.Uid, os.Geteuid())
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s has mode %#o: others may enter it; it has to be 0700", dir, st.Mode&0o777)
	}
	return nil
}

// sockets lists the sockets of a folder.
func sockets(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well formed
	return list
}

// pidOf is the process in the name of a socket; 0 if it is none of ours.
func pidOf(path string) int {
	name := filepath.Base(path)
	for i, c := range name {
		if c == '-' {
			n, _ := strconv.Atoi(name[:i])
			return n
		}
	}
	return 0
}

// ended says that a process is known not to exist. One in another PID namespace looks the same.
func ended(pid int) bool { return pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
