package comm

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/device/probe"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// The writer of a trace empties the rings at least that far apart, and rests traceRest times as long as it took, so that it takes
// no more than a hundredth of a processor from the ranks: what comes faster than it writes is dropped where it arises, and counted.
const (
	traceEvery = 100 * time.Millisecond
	traceMost  = 5 * time.Second
	traceRest  = 100
)

// traceWriter writes the trace of this process. It lives as long as a traced communicator, and goes on with the same file at the next.
type traceWriter struct {
	mu     sync.Mutex // of everything below
	tracer control.Tracer
	path   string
	file   *os.File
	out    *probe.File
	w      *probe.Writer
	number uint32 // of the last communicator
	live   int
	stop   chan struct{}
	buf    []probe.Event
	log    *xlog.Logger
	broken bool // the file takes nothing any more, and that has been said
}

// tracePath is the file of a process: %h, %p and %r in the pattern stand for the host, the process and the rank in the first
// communicator. A pattern without any of the three gets host and process before its extension: processes must not share a
// file.
func tracePath(pattern, host string, pid, rank int) string {
	path := xlog.ExpandFile(strings.ReplaceAll(pattern, "%r", strconv.Itoa(rank)), host, pid)
	if path != pattern {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%s.%d%s", strings.TrimSuffix(path, ext), strings.ReplaceAll(host, "/", "_"), pid, ext)
}

// bootOf names the clock of a machine: all its processes share it.
func bootOf(machine string) string { return strings.Fields(machine + " unknown")[0] }

// add takes a communicator into the trace and gives its number.
func (t *traceWriter) add(c *Comm) (control.Tracer, uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		if err := t.open(c); err != nil {
			return control.Tracer{}, 0, err
		}
	}
	t.number++
	t.w.AddComm(t.number, probe.Comm{Hash: c.hash(), Name: c.cfg.CommName, Rank: c.rank, NRanks: c.nranks})
	if c.clock.known {
		t.w.Clock(t.number, c.clock.offset, c.clock.within)
	}
	if t.live++; t.live == 1 {
		t.stop = make(chan struct{})
		go t.run(t.stop)
	}
	t.flush()
	return t.tracer, t.number, nil
}

func (t *traceWriter) open(c *Comm) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	path := tracePath(c.set.Str(param.GCCLTrace), host, os.Getpid(), c.rank)
	fail := func(err error) error {
		return xerr.Wrap(xerr.InvalidUsage, "trace", err, "%s", c.set.Describe(param.GCCLTrace)).
			WithHint("name a file in a folder that this process may write to")
	}
	if t.tracer, err = c.e.front.Trace.Open(); err != nil {
		return err
	}
	if t.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return fail(err)
	}
	t.path, t.log = path, c.log
	c.e.front.AtExit()
	t.out = probe.NewFile(t.file, c.set.Size(param.GCCLTraceLimit))
	t.w = probe.NewWriter(probe.Process{PID: os.Getpid(), Host: host, Boot: bootOf(ownMachine()), Text: "GCCL " + Version})
	t.buf = make([]probe.Event, 1024)
	c.log.Info(xlog.Init, "trace goes to %s", path)
	return nil
}

// remove ends a communicator in the trace. Preconditions: nothing of it is in flight, or never will end.
func (t *traceWriter) remove(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w.EndComm(number, t.drain())
	t.flush()
	if t.live--; t.live == 0 {
		close(t.stop)
	}
}

func (t *traceWriter) run(stop chan struct{}) {
	runtime.LockOSThread()                         // for good: the thread ends with the goroutine
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // of this thread alone (setpriority(2)): ranks come first
	rest := time.NewTimer(traceEvery)
	defer rest.Stop()
	for {
		select {
		case <-stop:
			return
		case <-rest.C:
		}
		t.mu.Lock()
		start := time.Now()
		t.drain()
		t.flush()
		took := time.Since(start)
		t.mu.Unlock()
		rest.Reset(min(max(traceEvery, traceRest*took), traceMost))
	}
}

// drain takes what the rings have at this moment, and says what time it is then: a thread that goes on storing is not followed for ever.
func (t *traceWriter) drain() uint64 {
	const most = 32 // times buf is about two rings
	t.tracer.Begin()
	for ring := 0; ; ring++ {
		for range most {
			n, thread := t.tracer.Take(ring, t.buf)
			if n < 0 {
				return t.tracer.Now()
			}
			if !t.out.Full() {
				t.w.Add(thread, t.buf[:n])
			}
			if n < len(t.buf) {
				break
			}
		}
	}
}

func (t *traceWriter) flush() {
	t.w.Dropped(t.tracer.Dropped())
	if t.broken {
		t.w.Take()
		return
	}
	room, err := t.out.Write(t.w.Take(), t.w.Tail(t.tracer.Now()))
	switch {
	case err != nil:
		t.broken = true
		t.log.Warn(xlog.Init, "trace: %v: nothing more is written to %s", err, t.path)
	case !room:
		t.broken = true
		t.log.Warn(xlog.Init, "trace: %s has reached GCCL_TRACE_LIMIT: nothing more is written to it", t.path)
	}
}

// atExit writes what is left when the process ends with communicators alive. A writer that is at work is waited for, but not long.
func (t *traceWriter) atExit() {
	for range 100 {
		if t.mu.TryLock() {
			if t.file != nil {
				t.drain()
				t.flush()
			}
			t.mu.Unlock()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
