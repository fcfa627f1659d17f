package comm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/status"
	"github.com/gccl/gccl/internal/xlog"
)

// living are the communicators that may be looked at from outside their calls: by gccl-top, at a signal, or because an operation
// is late. The memory of a communicator stays as long as it is in here. The socket exists while there are any.
type living struct {
	mu     sync.Mutex
	comms  []*Comm
	server *status.Server
	since  time.Time
	told   map[string]told // what has been reported, by public id
}

// told is the last report of a communicator: its collective, and for which time it was late.
type told struct {
	seq  uint64
	turn int
}

// add begins to show a communicator that has become ready.
func (l *living) add(c *Comm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.comms) == 0 {
		l.since = time.Now()
		l.serve(c)
		c.e.reportAtSignal(c)
	}
	l.comms = append(l.comms, c)
}

// serve opens the socket. Preconditions: mu is held.
func (l *living) serve(c *Comm) {
	if !c.set.Bool(param.GCCLTop) {
		return
	}
	dir := status.Folder(c.set.Str(param.GCCLTopDir))
	s, err := status.Serve(dir, c.e.Status)
	if err != nil {
		c.log.Info(xlog.Init, "gccl-top will not see this process: %v", err)
		return
	}
	l.server = s
}

// remove returns when the communicator is no longer looked at.
func (l *living) remove(c *Comm) {
	l.mu.Lock()
	if at := slices.Index(l.comms, c); at >= 0 {
		l.comms = slices.Delete(l.comms, at, at+1)
	}
	delete(l.told, c.publicID())
	server := l.server
	if len(l.comms) > 0 {
		server = nil
	} else {
		l.server = nil
	}
	l.mu.Unlock()
	if server != nil { // without the lock, which an answer takes
		server.Close()
	}
}

// with calls f unless the communicator has gone; its memory stays until f returns. f must not block.
func (l *living) with(c *Comm, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.comms, c) {
		return false
	}
	f()
	return true
}

// firstToTell says whether no rank of this process has reported the same yet.
func (l *living) firstToTell(c *Comm, seq uint64, turn int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, now := c.publicID(), told{seq, turn}
	last := l.told[id]
	if last.seq == seq && last.turn >= turn || !slices.Contains(l.comms, c) {
		return false
	}
	if l.told == nil {
		l.told = map[string]told{}
	}
	l.told[id] = now
	return true
}

func (l *living) each(f func(c *Comm)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.comms {
		f(c)
	}
}

// Status is what gccl-top shows of this process.
func (e *Engine) Status() status.Process {
	exe, _ := os.Readlink("/proc/self/exe") // unknown without /proc
	p := status.Process{PID: os.Getpid(), Program: exe, Library: Version, Comms: []status.Comm{}}
	e.live.each(func(c *Comm) {
		p.AtNs = time.Since(e.live.since).Nanoseconds()
		p.Comms = append(p.Comms, c.status())
	})
	return p
}

var stateNames = map[control.State]string{control.Ready: "ready", control.Finalized: "finalized", control.Revoked: "revoked"}

// status looks at one communicator. Preconditions: it is among the living, whose lock is held.
func (c *Comm) status() status.Comm {
	s := status.Comm{ID: c.publicID(), Name: c.cfg.CommName, Rank: c.rank, Ranks: c.nranks, Device: c.deviceName(), State: stateNames[c.ctl.State()]}
	if c.ctl.Error() > 0 {
		s.State, s.Error = "failed", c.ctl.Cause()
	}
	s.Calls, s.Bytes = c.ctl.Counted()
	r := c.roll(0)
	s.Finished, s.Running, s.What = r.finished, r.seq, r.what
	for q, m := range r.ranks {
		if q == c.rank {
			continue
		}
		host, pid := c.place(q)
		s.Peers = append(s.Peers, status.Peer{Rank: q, Host: host, PID: pid, Seen: m.seen, Finished: m.finished, Joined: m.joined, Process: m.process})
	}
	return s
}

// publicID names the communicator for people: the same at all its ranks, and nothing that helps to join it.
func (c *Comm) publicID() string {
	m := hmac.New(sha256.New, c.secret)
	m.Write([]byte("gccl status"))
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// place is the host and the process of a rank.
func (c *Comm) place(r int) (host string, pid int) {
	if c.group == nil {
		return "", os.Getpid()
	}
	m := c.group.Member(r)
	return m.Host, m.PID
}
