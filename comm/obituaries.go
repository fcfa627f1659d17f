package comm

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
)

// fateDelay is how long the bootstrap has to say how a process ended, before its end alone is taken as the cause (a guess;
// a notice takes well under a millisecond on one host).
const fateDelay = 200 * time.Millisecond

// obituaries tell of the ends of peer processes on this host, which the bootstrap cannot when its rank 0 has left. Each
// process is watched through a pidfd (pidfd_open(2): it becomes readable when the process ends) by the runtime's poller.
// Where the kernel refuses that, nobody is watched, and the bootstrap alone speaks.
type obituaries struct {
	mu sync.Mutex
	m  map[*clique.Peer]*watched
}

// watched is one process; it is kept while communicators with it exist.
type watched struct {
	file  *os.File
	comms map[*Comm]bool
	ended bool
}

func (o *obituaries) add(c *Comm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m == nil {
		o.m = map[*clique.Peer]*watched{}
	}
	for _, p := range distinct(c.peers) {
		w := o.m[p]
		if w == nil {
			w = &watched{comms: map[*Comm]bool{}}
			o.m[p] = w
			o.open(p, w)
		}
		w.comms[c] = true
		if w.ended {
			c.processEnded(p)
		}
	}
}

// remove returns when the communicator is no longer looked at.
func (o *obituaries) remove(c *Comm) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range distinct(c.peers) {
		w := o.m[p]
		if w == nil {
			continue
		}
		if delete(w.comms, c); len(w.comms) == 0 {
			delete(o.m, p)
			if w.file != nil {
				_ = w.file.Close() // ends its wait
			}
		}
	}
}

// open begins to watch a process. Preconditions: mu is held.
func (o *obituaries) open(p *clique.Peer, w *watched) {
	if p.PID <= 0 {
		return
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) { // it was alive when the communicator was made
		w.ended = true
		return
	}
	if err != nil {
		return
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime polls it
		_ = unix.Close(fd)
		return
	}
	w.file = os.NewFile(uintptr(fd), "pidfd")
	raw, err := w.file.SyscallConn()
	if err != nil {
		return
	}
	go func() {
		if raw.Read(hasEnded) == nil {
			o.tell(p, w)
		}
	}()
}

// hasEnded is called before and after each wait for the descriptor.
func hasEnded(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// tell tells the communicators, after the bootstrap has had its time.
func (o *obituaries) tell(p *clique.Peer, w *watched) {
	time.Sleep(fateDelay)
	o.mu.Lock()
	defer o.mu.Unlock()
	w.ended = true
	for c := range w.comms {
		c.processEnded(p)
	}
}

// processEnded latches the failure of the ranks of a process that have not left the communicator before.
func (c *Comm) processEnded(p *clique.Peer) {
	for r, q := range c.peers {
		if q == p && !c.hasLeft(r) {
			c.peerFailed(r, xerr.New(xerr.Remote, "process", "its process has ended"))
		}
	}
}

// hasLeft says whether a rank has destroyed or aborted the communicator.
func (c *Comm) hasLeft(r int) bool {
	return control.HasLeft(c.arena.Base()+uintptr(c.area.Offset), c.ctl.SignalsOffset(), r)
}

func distinct(peers []*clique.Peer) []*clique.Peer {
	var out []*clique.Peer
	seen := map[*clique.Peer]bool{nil: true}
	for _, p := range peers {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
