package probe

import (
	"fmt"
	"slices"
	"strconv"
)

// Process is whose trace it is.
type Process struct {
	PID  int
	Host string
	Boot string // names the clock: equal for processes that share CLOCK_MONOTONIC
	Text string // of the library
}

// Comm is a communicator whose records carry its number.
type Comm struct {
	Hash         uint64 // the same on all its ranks
	Name         string
	Rank, NRanks int
}

// commTrack is the thread number of a communicator's own track. Threads of the kernel have smaller ones (PID_MAX_LIMIT is 2^22).
const commTrack = 1 << 30

type opKey struct {
	comm uint32
	call uint64
}

// operation is one that runs.
type operation struct {
	run    Event
	step   Event // it is in, if inStep
	inStep bool
	cut    bool
}

// opened is a beginning with the thread that it was seen on.
type opened struct {
	Event
	thread uint64
}

// Writer makes trace events of records. It keeps what has begun and not ended; nothing is written by itself: Take gives the text.
type Writer struct {
	process Process
	comms   map[uint32]Comm
	threads map[uint64]bool
	calls   map[opKey]opened
	groups  map[uint64]opened
	plans   map[opKey]opened
	ops     map[opKey]*operation
	puts    map[opKey]Event // call: number of the put
	early   map[opKey]Event // ends of puts that came from another ring before their beginning
	dropped uint64
	free    []*operation // to be used again
	b       []byte
}

// NewWriter makes a writer for a process.
func NewWriter(p Process) *Writer {
	w := &Writer{process: p, comms: map[uint32]Comm{}, threads: map[uint64]bool{}, calls: map[opKey]opened{}, groups: map[uint64]opened{},
		plans: map[opKey]opened{}, ops: map[opKey]*operation{}, puts: map[opKey]Event{}, early: map[opKey]Event{}}
	w.meta("process_name", p.PID, `"name":`+quote(fmt.Sprintf("%s pid %d", p.Host, p.PID)))
	w.meta("gccl_process", p.PID, fmt.Sprintf(`"host":%s,"boot":%s,"clock":"CLOCK_MONOTONIC","library":%s`,
		quote(p.Host), quote(p.Boot), quote(p.Text)))
	return w
}

func quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20:
			b = append(b, fmt.Sprintf(`\u%04x`, r)...)
		default:
			b = append(b, string(r)...) // a wrong byte comes as U+FFFD
		}
	}
	return string(append(b, '"'))
}

// AddComm says what a number stands for.
func (w *Writer) AddComm(number uint32, c Comm) {
	w.comms[number] = c
	name := fmt.Sprintf("rank %d of %d, communicator %016x", c.Rank, c.NRanks, c.Hash)
	if c.Name != "" {
		name += " " + c.Name
	}
	w.meta("thread_name", commTrack+int(number), `"name":`+quote(name))
	w.meta("gccl_comm", commTrack+int(number), fmt.Sprintf(`"comm":"%016x","rank":%d,"nranks":%d`, c.Hash, c.Rank, c.NRanks))
}

// Clock says by how much this process's clock is ahead of that of the communicator's rank 0, and how wrong that may be.
func (w *Writer) Clock(number uint32, offsetNS, errorNS int64) {
	c := w.comms[number]
	w.meta("gccl_clock", commTrack+int(number), fmt.Sprintf(`"comm":"%016x","rank":%d,"offset_ns":%d,"error_ns":%d`,
		c.Hash, c.Rank, offsetNS, errorNS))
}

// EndComm ends what the communicator has open: it never will by itself.
func (w *Writer) EndComm(number uint32, ns uint64) {
	w.b = w.unfinished(w.b, ns, func(comm uint32) bool { return comm == number }, true)
}

// Dropped is how many operations and puts found no room, so far.
func (w *Writer) Dropped(n uint64) { w.dropped = n }

// Take gives the events since the last Take, each with a comma and a newline before it, until the next call of the writer.
func (w *Writer) Take() []byte {
	b := w.b
	w.b = w.b[:0]
	return b
}

// Tail is what stands behind the events at this moment: what is open, and what was lost.
func (w *Writer) Tail(ns uint64) []byte {
	b := w.unfinished(nil, ns, func(uint32) bool { return true }, false)
	pid := w.process.PID
	return fmt.Appendf(b, ",\n"+`{"ph":"M","name":"gccl_dropped","pid":%d,"tid":%d,"ts":0,"args":{"operations":%d}}`, pid, pid, w.dropped)
}

// Add takes the records of one thread, in order.
func (w *Writer) Add(thread uint64, events []Event) {
	if len(events) > 0 && !w.threads[thread] {
		w.threads[thread] = true
		w.meta("thread_name", int(thread), `"name":"calls of thread `+strconv.FormatUint(thread, 10)+`"`)
	}
	for i := range events {
		e := &events[i]
		key := opKey{e.Comm, e.CallNumber}
		switch e.Kind {
		case Call:
			w.calls[key] = opened{*e, thread}
		case Called:
			if c, ok := w.calls[key]; ok {
				delete(w.calls, key)
				w.b = w.call(w.b, &c, e.NS, int32(e.Arg), false)
			}
		case Group:
			w.groups[e.CallNumber] = opened{*e, thread}
		case Grouped:
			if g, ok := w.groups[e.CallNumber]; ok {
				delete(w.groups, e.CallNumber)
				w.b = w.group(w.b, &g, e.NS, int32(e.Arg), false)
			}
		case Plan:
			w.plans[key] = opened{*e, thread}
		case Planned:
			if p, ok := w.plans[key]; ok {
				delete(w.plans, key)
				w.b = w.plan(w.b, &p, e.NS, int32(e.Arg), false)
			}
		case Run:
			o := &operation{}
			if n := len(w.free); n > 0 {
				o, w.free = w.free[n-1], w.free[:n-1]
			}
			*o = operation{run: *e}
			w.ops[key] = o
		case Step:
			if o := w.ops[key]; o != nil {
				w.b = w.step(w.b, o, e.NS, false)
				o.step, o.inStep = *e, true
			}
		case Done:
			if o := w.ops[key]; o != nil {
				delete(w.ops, key)
				o.cut = e.Red != 0
				w.b = w.op(w.b, o, e.NS, int32(e.Arg), false)
				w.free = append(w.free, o)
			}
		case Put:
			key.call = uint64(e.Arg)
			if end, ok := w.early[key]; ok {
				delete(w.early, key)
				w.b = w.put(w.b, e, end.NS, false)
			} else {
				w.puts[key] = *e
			}
		case PutDone:
			key.call = uint64(e.Arg)
			if p, ok := w.puts[key]; ok {
				delete(w.puts, key)
				w.b = w.put(w.b, &p, e.NS, false)
			} else {
				w.early[key] = *e
			}
		}
	}
}

// unfinished writes what is open on some communicators as it is at a moment, in order of time.
func (w *Writer) unfinished(b []byte, ns uint64, of func(comm uint32) bool, forget bool) []byte {
	type one struct {
		ns    uint64
		write func(b []byte) []byte
	}
	var list []one
	add := func(at uint64, write func(b []byte) []byte) { list = append(list, one{at, write}) }
	for k, c := range w.calls {
		if of(k.comm) {
			add(c.NS, func(b []byte) []byte { return w.call(b, &c, ns, 0, true) })
		}
	}
	for _, g := range w.groups {
		if of(g.Comm) {
			add(g.NS, func(b []byte) []byte { return w.group(b, &g, ns, 0, true) })
		}
	}
	for k, p := range w.plans {
		if of(k.comm) {
			add(p.NS, func(b []byte) []byte { return w.plan(b, &p, ns, 0, true) })
		}
	}
	for k, o := range w.ops {
		if of(k.comm) {
			add(o.run.NS, func(b []byte) []byte { return w.op(b, o, ns, 0, true) })
		}
	}
	for k, p := range w.puts {
		if of(k.comm) {
			add(p.NS, func(b []byte) []byte { return w.put(b, &p, ns, true) })
		}
	}
	slices.SortFunc(list, func(x, y one) int {
		switch {
		case x.ns < y.ns:
			return -1
		case x.ns > y.ns:
			return 1
		}
		return 0
	})
	for _, o := range list {
		b = o.write(b)
	}
	if forget {
		clear1(w.calls, func(k opKey, _ opened) bool { return of(k.comm) })
		clear1(w.groups, func(_ uint64, g opened) bool { return of(g.Comm) })
		clear1(w.plans, func(k opKey, _ opened) bool { return of(k.comm) })
		clear1(w.ops, func(k opKey, _ *operation) bool { return of(k.comm) })
		clear1(w.puts, func(k opKey, _ Event) bool { return of(k.comm) })
		clear1(w.early, func(k opKey, _ Event) bool { return of(k.comm) })
	}
	return b
}

func clear1[K comparable, V any](m map[K]V, del func(K, V) bool) {
	for k, v := range m {
		if del(k, v) {
			delete(m, k)
		}
	}
}
