package comm

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gccl/gccl/device/host/clique"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/onsignal"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
)

// A collective that does not end: which ranks have not joined it, how far they are, and whether their processes live. Ranks whose
// memory is mapped are read, the others are asked over the control plane (late_ask.go). Nobody has to take part in it: a rank that
// is somewhere else in its program is seen all the same.

// roll is how far the ranks of a communicator are, as one rank sees it.
type roll struct {
	seq      uint64 // the collective in question; 0: none is in flight
	what     string // its call
	finished uint64 // last collective that this rank has finished
	ranks    []mark
}

type mark struct {
	seen     bool   // the rest is known
	finished uint64 // last collective that the rank has finished
	joined   bool   // it has joined the one in question, or has finished it
	process  string // alive, stopped, ended, left (the communicator), unknown
	here     bool   // a rank of this process
}

// roll looks at the memory of the ranks. seq 0: the collective that this rank is in. Preconditions: the communicator is among the
// living, whose lock is held.
func (c *Comm) roll(seq uint64) roll {
	r := roll{seq: seq, ranks: make([]mark, c.nranks)}
	readable := c.nranks > 1
	finished, running := c.reached()
	r.finished = finished
	if r.seq == 0 {
		r.seq = running
	}
	for q := range r.ranks {
		m := &r.ranks[q]
		m.process = c.processOf(q)
		m.here = q == c.rank || c.peerOf(q) == nil && !c.remote(q)
		if !readable || c.remote(q) {
			continue
		}
		m.seen, m.finished = true, c.ctl.Finished(q)
		if r.seq != 0 {
			call, there := c.ctl.Joined(q, r.seq)
			m.joined = there || m.finished >= r.seq
			if there && r.what == "" {
				r.what = call
			}
		}
	}
	return r
}

// reached is the last collective that this rank has finished, and the one that it is in; 0: in none.
func (c *Comm) reached() (finished, running uint64) {
	if d := c.device(); d != nil {
		finished, called := d.Progress(c.ctl)
		if called > finished {
			running = finished + 1
		}
		return finished, running
	}
	called, on := c.ctl.InFlight()
	finished = called
	if c.nranks > 1 {
		finished = c.ctl.Finished(c.rank)
	}
	if on && called > finished {
		running = called
	}
	return finished, running
}

// processOf says how the process of a rank is, as far as this one can see.
func (c *Comm) processOf(q int) string {
	switch {
	case q == c.rank || c.nranks == 1:
		return "alive"
	case !c.remote(q) && c.device() == nil && c.hasLeft(q):
		return "left"
	}
	p := c.peerOf(q)
	if p == nil { // a rank of this process, or a remote one
		if c.remote(q) {
			return "unknown"
		}
		return "alive"
	}
	return processState(p.PID)
}

// peerOf is the process of a rank; nil for this process and for remote ones.
func (c *Comm) peerOf(q int) *clique.Peer {
	if q >= len(c.peers) {
		return nil
	}
	return c.peers[q]
}

// processState reads the state of a process (proc(5), the third field of stat).
func processState(pid int) string {
	if pid <= 0 { // in another PID namespace
		return "unknown"
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if os.IsNotExist(err) {
			return "ended"
		}
		return "unknown"
	}
	rest := text[bytes.LastIndexByte(text, ')')+1:] // the name before may hold anything
	if len(rest) < 2 {
		return "unknown"
	}
	switch rest[1] {
	case 'T', 't':
		return "stopped"
	case 'Z', 'X':
		return "ended"
	}
	return "alive"
}

// speaker is the rank that reports: the first that is known to wait, in a process that can.
func (r roll) speaker() int {
	return slices.IndexFunc(r.ranks, func(m mark) bool { return m.seen && m.joined && m.finished < r.seq && m.process == "alive" })
}

// mostNamed bounds how many ranks a report names; the rest is counted.
const mostNamed = 16

// missing lists the ranks that have not joined, or, when all have, those that have not finished.
func (c *Comm) missing(r roll) string {
	var absent, unknown, behind []int
	for q, m := range r.ranks {
		switch {
		case !m.seen:
			unknown = append(unknown, q)
		case !m.joined:
			absent = append(absent, q)
		case m.finished < r.seq:
			behind = append(behind, q)
		}
	}
	var parts []string
	say := func(list []int, format string, each func(q int) string) {
		if len(list) == 0 {
			return
		}
		named := make([]string, 0, mostNamed)
		for _, q := range list[:min(len(list), mostNamed)] {
			named = append(named, each(q))
		}
		if more := len(list) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("and %d more", more))
		}
		parts = append(parts, fmt.Sprintf(format, len(list), c.nranks)+strings.Join(named, "; "))
	}
	say(absent, "%d of %d ranks have not joined it: ", func(q int) string {
		return fmt.Sprintf("%s finished %d, %s", c.who(q), r.ranks[q].finished, inWords(r.ranks[q].process))
	})
	say(unknown, "%d of %d ranks did not say how far they are: ", func(q int) string {
		return fmt.Sprintf("%s, %s", c.who(q), inWords(r.ranks[q].process))
	})
	if len(absent) == 0 && len(unknown) == 0 {
		say(behind, "all ranks have joined it; %d of %d have not finished: ", func(q int) string {
			return fmt.Sprintf("%s, %s", c.who(q), inWords(r.ranks[q].process))
		})
	}
	return strings.Join(parts, "; ")
}

func inWords(process string) string {
	switch process {
	case "left":
		return "has left the communicator"
	case "stopped":
		return "its process is stopped (by a signal or a debugger)"
	case "ended":
		return "its process has ended"
	case "alive":
		return "its process is alive"
	}
	return "of its process nothing is known here"
}

// Late is called by the executor when collective seq of this rank has waited for long, for the turn-th time. It returns at once; one
// process of all that wait writes the report.
func (c *Comm) Late(seq uint64, turn int, what string, waited time.Duration) {
	go func() {
		var r roll
		if !c.e.live.with(c, func() { r = c.roll(seq) }) || !r.speaksHere() {
			return
		}
		if c.askable() {
			if c.ask(&r); !r.speaksHere() {
				return
			}
		}
		if c.e.live.firstToTell(c, seq, turn) {
			c.log.Warn(xlog.Coll, "collective %d (%s) is late, after %v: %s", seq, what, waited.Round(time.Second), c.missing(r))
		}
	}()
}

// speaksHere says whether the rank that is to report is in this process: one thread may drive several ranks, and then any of them says that it waits.
func (r roll) speaksHere() bool {
	q := r.speaker()
	return q >= 0 && r.ranks[q].here
}

// reportAll writes what all communicators of the process are doing: at a signal.
func (e *Engine) reportAll() {
	type line struct {
		c    *Comm
		r    roll
		text string
	}
	var lines []line
	e.live.each(func(c *Comm) {
		text := ""
		if c.ctl.Error() > 0 {
			text = "has failed: " + c.ctl.Cause()
		} else if s := c.ctl.State(); s != control.Ready {
			text = "is " + stateNames[s]
		}
		lines = append(lines, line{c, c.roll(0), text})
	})
	for _, l := range lines {
		c, r := l.c, l.r
		switch {
		case l.text != "":
		case r.seq == 0:
			l.text = fmt.Sprintf("has finished collective %d, none is in flight", r.finished)
		default:
			if c.askable() {
				c.ask(&r)
			}
			l.text = fmt.Sprintf("has finished collective %d and is in %d (%s): %s", r.finished, r.seq, r.what, c.missing(r))
		}
		c.log.Warn(xlog.Coll, "report: %s, communicator %s: %s", c.who(c.rank), c.publicID(), l.text)
	}
}

// signals are the values of GCCL_REPORT_SIGNAL.
var signals = map[string]syscall.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT}

// reportAtSignal installs the handler, once a process.
func (e *Engine) reportAtSignal(c *Comm) {
	sig, ok := signals[c.set.Str(param.GCCLReportSignal)]
	if !ok {
		return
	}
	if _, err := onsignal.Call(sig, e.reportAll); err != nil {
		c.log.Warn(xlog.Init, "%s has no effect: %v", c.set.Describe(param.GCCLReportSignal), err)
	}
}
