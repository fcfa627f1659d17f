package probe

import (
	"fmt"
	"strconv"
)

// The text of events. It is made at the rate of the calls, so that nothing here goes through fmt.

func (w *Writer) meta(name string, tid int, args string) {
	w.b = append(w.b, fmt.Sprintf(",\n"+`{"ph":"M","name":"%s","pid":%d,"tid":%d,"ts":0,"args":{%s}}`, name, w.process.PID, tid, args)...)
}

func num(b []byte, name string, v int64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return strconv.AppendInt(b, v, 10)
}

func word(b []byte, name, v string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':', '"')
	b = append(b, v...)
	return append(b, '"')
}

// micro is a time in microseconds with its nanoseconds.
func micro(b []byte, name string, ns uint64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	b = strconv.AppendUint(b, ns/1000, 10)
	r := ns % 1000
	return append(b, '.', byte('0'+r/100), byte('0'+r/10%10), byte('0'+r%10))
}

// head begins an event; the arguments follow, and close1 ends it. Names and categories need no quoting: they are ours.
func (w *Writer) head(b []byte, ph byte, cat, name string, tid uint64, ns uint64) []byte {
	b = append(b, ",\n{\"ph\":\""...)
	b = append(b, ph, '"')
	b = word(b, "cat", cat)
	b = word(b, "name", name)
	b = num(b, "pid", int64(w.process.PID))
	b = num(b, "tid", int64(tid))
	return micro(b, "ts", ns)
}

// complete begins an event with its length.
func (w *Writer) complete(b []byte, cat, name string, tid, from, to uint64) []byte {
	b = w.head(b, 'X', cat, name, tid, from)
	return micro(b, "dur", max(to, from)-from)
}

func (w *Writer) args(b []byte, comm uint32) []byte {
	c := w.comms[comm]
	b = append(b, `,"args":{"comm":"`...)
	b = appendHex(b, c.Hash)
	b = append(b, '"')
	return num(b, "rank", int64(c.Rank))
}

func appendHex(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[v>>shift&15])
	}
	return b
}

func close1(b []byte, unfinished bool) []byte {
	if unfinished {
		b = append(b, `,"unfinished":true`...)
	}
	return append(b, '}', '}')
}

func result(b []byte, rc int32, unfinished bool) []byte {
	if !unfinished {
		b = num(b, "result", int64(rc))
	}
	return close1(b, unfinished)
}

func (w *Writer) call(b []byte, c *opened, to uint64, rc int32, unfinished bool) []byte {
	b = w.complete(b, "call", c.callName(), c.thread, c.NS, to)
	b = w.args(b, c.Comm)
	b = num(b, "call", int64(c.CallNumber))
	b = num(b, "count", int64(c.Count))
	b = word(b, "type", nameIn(typeNames, int(c.DType)))
	if c.op() == doColl {
		b = word(b, "op", nameIn(redNames, int(c.Red)))
		b = num(b, "root", int64(c.Peer))
	} else {
		b = num(b, "peer", int64(c.Peer))
	}
	if c.Arg != 0 {
		b = num(b, "group", int64(c.Arg))
	}
	return result(b, rc, unfinished)
}

func (w *Writer) group(b []byte, g *opened, to uint64, rc int32, unfinished bool) []byte {
	b = w.complete(b, "group", "group", g.thread, g.NS, to)
	b = w.args(b, g.Comm)
	b = num(b, "group", int64(g.CallNumber))
	return result(b, rc, unfinished)
}

func (w *Writer) plan(b []byte, p *opened, to uint64, rc int32, unfinished bool) []byte {
	b = w.complete(b, "planning", "planning "+p.collName(), p.thread, p.NS, to)
	b = w.args(b, p.Comm)
	b = num(b, "call", int64(p.CallNumber))
	b = num(b, "class", int64(p.Arg))
	return result(b, rc, unfinished)
}

// pair writes an operation that may overlap others: a beginning and an end with one id.
func (w *Writer) pair(b []byte, cat, name, id string, comm uint32, from, to uint64, args func(b []byte) []byte) []byte {
	tid := uint64(commTrack) + uint64(comm)
	b = word(w.head(b, 'b', cat, name, tid, from), "id", id)
	b = w.args(b, comm)
	b = args(b)
	b = word(w.head(b, 'e', cat, name, tid, max(from, to)), "id", id)
	return append(b, '}')
}

func (w *Writer) id(comm uint32, kind byte, n uint64) string {
	b := strconv.AppendUint(nil, uint64(comm), 10)
	b = append(b, kind)
	return string(strconv.AppendUint(b, n, 10))
}

func (w *Writer) op(b []byte, o *operation, to uint64, rc int32, unfinished bool) []byte {
	r := &o.run
	b = w.step(b, o, to, unfinished)
	if r.sideBySide() {
		var cat, name string
		switch r.op() {
		case doColl:
			return w.pair(b, "plan", r.collName()+" "+r.text(), w.id(r.Comm, 'm', r.CallNumber), r.Comm, r.NS, to, func(b []byte) []byte {
				b = num(b, "call", int64(r.CallNumber))
				b = num(b, "count", int64(r.Count))
				b = word(b, "type", nameIn(typeNames, int(r.DType)))
				b = word(b, "op", nameIn(redNames, int(r.Red)))
				b = num(b, "root", int64(r.Peer))
				return result(b, rc, unfinished)
			})
		case doSend:
			cat, name = "message", "send to rank "
		case doRecv:
			cat, name = "message", "receive from rank "
		case doCopy:
			return w.pair(b, "copy", "copy", w.id(r.Comm, 'm', r.CallNumber), r.Comm, r.NS, to, func(b []byte) []byte {
				b = num(b, "call", int64(r.CallNumber))
				return result(num(b, "count", int64(r.Count)), rc, unfinished)
			})
		case doPut:
			cat, name = "onesided", "put to rank "
		default:
			cat, name = "onesided", "wait for signal of rank "
		}
		name += strconv.Itoa(int(r.Peer))
		return w.pair(b, cat, name, w.id(r.Comm, 'm', r.CallNumber), r.Comm, r.NS, to, func(b []byte) []byte {
			b = num(b, "call", int64(r.CallNumber))
			b = num(b, "peer", int64(r.Peer))
			b = num(b, "count", int64(r.Count))
			b = word(b, "type", nameIn(typeNames, int(r.DType)))
			return result(b, rc, unfinished)
		})
	}
	tid := uint64(commTrack) + uint64(r.Comm)
	b = w.complete(b, "plan", r.collName()+" "+r.text(), tid, r.NS, to)
	b = w.args(b, r.Comm)
	b = num(b, "call", int64(r.CallNumber))
	b = num(b, "count", int64(r.Count))
	b = word(b, "type", nameIn(typeNames, int(r.DType)))
	b = word(b, "op", nameIn(redNames, int(r.Red)))
	b = num(b, "root", int64(r.Peer))
	if o.cut {
		b = append(b, `,"steps_lost":true`...)
	}
	b = result(b, rc, unfinished)
	b = w.complete(b, "channel", "channel 0", tid, r.NS, to) // plans of the host executor have one
	b = w.args(b, r.Comm)
	b = num(b, "call", int64(r.CallNumber))
	return close1(num(b, "channel", 0), unfinished)
}

var stepNames = [256]string{opReduce: "reduce", opPut: "put", opGet: "get",
	waitGuard: "wait for old readers", waitPeers: "wait for records", waitMessage: "wait", stepLaunch: "launch"}

// syncNames are those of ops with an enum gccl_sync.
var syncNames = [...][4]string{opSignal: {"signal step", "signal data", "signal credit", "signal"},
	opWait: {"wait step", "wait data", "wait credit", "wait"}}

// step ends the step that an operation is in.
func (w *Writer) step(b []byte, o *operation, to uint64, unfinished bool) []byte {
	if !o.inStep {
		return b
	}
	s := &o.step
	cat := "step"
	if s.What == opWait || s.What >= waitGuard && s.What != stepLaunch {
		cat = "wait"
	}
	name := stepNames[s.What]
	if s.What == opSignal || s.What == opWait {
		name = syncNames[s.What][min(s.Arg>>16, 3)]
	}
	if s.Peer >= 0 {
		name += " rank " + strconv.Itoa(int(s.Peer))
	}
	if !unfinished {
		o.inStep = false
	}
	args := func(b []byte) []byte {
		b = num(b, "call", int64(s.CallNumber))
		if s.What < waitGuard {
			b = num(b, "index", int64(s.Count&0xffffffff))
			b = num(b, "round", int64(s.Count>>32))
			b = num(b, "step", int64(s.Arg&0xffff))
		}
		if s.Peer >= 0 {
			b = num(b, "peer", int64(s.Peer))
		}
		return close1(b, unfinished)
	}
	if o.run.sideBySide() {
		return w.pair(b, cat, name, w.id(s.Comm, 'm', s.CallNumber), s.Comm, s.NS, to, args)
	}
	b = w.complete(b, cat, name, uint64(commTrack)+uint64(s.Comm), s.NS, to)
	return args(w.args(b, s.Comm))
}

func (w *Writer) put(b []byte, p *Event, to uint64, unfinished bool) []byte {
	name, id := "put to rank "+strconv.Itoa(int(p.Peer)), w.id(p.Comm, 'p', uint64(p.Arg))
	return w.pair(b, "network", name, id, p.Comm, p.NS, to, func(b []byte) []byte {
		b = num(b, "peer", int64(p.Peer))
		return close1(num(b, "bytes", int64(p.Count)), unfinished)
	})
}
