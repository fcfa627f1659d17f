package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// image is a file in memory.
type image struct{ b []byte }

func (m *image) WriteAt(p []byte, at int64) (int, error) {
	if n := int(at) + len(p); n > len(m.b) {
		m.b = append(m.b, make([]byte, n-len(m.b))...)
	}
	return copy(m.b[at:], p), nil
}

func text(s string) (t [24]byte) {
	copy(t[:], s)
	return t
}

const coll, send, wait = doColl << 4, doSend << 4, doWaitSignal << 4

// story is one thread's records: a group of two calls, an operation with steps and its planning, a message that overlaps it, puts.
func story() []Event {
	return []Event{
		{NS: 1000, Kind: Group, Comm: 1, CallNumber: 9, Peer: -1},
		{NS: 1010, Kind: Call, What: coll, DType: 7, Comm: 1, CallNumber: 1, Count: 100, Arg: 9},
		{NS: 1020, Kind: Plan, What: coll, Comm: 1, CallNumber: 1, Arg: 1},
		{NS: 1100, Kind: Planned, What: coll, Comm: 1, CallNumber: 1},
		{NS: 1110, Kind: Called, What: coll, Comm: 1, CallNumber: 1},
		{NS: 1120, Kind: Call, What: send, DType: 0, Comm: 1, CallNumber: 2, Count: 5, Peer: 3, Arg: 9},
		{NS: 1130, Kind: Called, What: send, Comm: 1, CallNumber: 2},
		{NS: 1200, Kind: Run, What: send, Comm: 1, CallNumber: 2, Count: 5, Peer: 3},
		{NS: 1210, Kind: Run, What: coll, DType: 7, Comm: 1, CallNumber: 1, Count: 100, Text: text("ring")},
		{NS: 1220, Kind: Step, What: waitPeers, Comm: 1, CallNumber: 1, Peer: 2},
		{NS: 1230, Kind: Step, What: waitMessage, Comm: 1, CallNumber: 2, Peer: 3},
		{NS: 1300, Kind: Step, What: opReduce, Comm: 1, CallNumber: 1, Count: 1, Peer: -1},
		{NS: 1310, Kind: Put, Comm: 1, Peer: 2, Arg: 1, Count: 4096},
		{NS: 1350, Kind: Step, What: opWait, Comm: 1, CallNumber: 1, Count: 1<<32 | 2, Peer: 2, Arg: 1 << 16},
		{NS: 1400, Kind: Done, What: coll, Comm: 1, CallNumber: 1},
		{NS: 1500, Kind: Done, What: send, Comm: 1, CallNumber: 2},
		{NS: 1600, Kind: Grouped, Comm: 1, CallNumber: 9},
	}
}

func newWriter() *Writer {
	w := NewWriter(Process{PID: 77, Host: `ho"st`, Boot: "b1", Text: "test"})
	w.AddComm(1, Comm{Hash: 0xabc, Name: "name", Rank: 1, NRanks: 4})
	return w
}

// After each record the file is a JSON text whose events are well formed, and says what is open.
func TestFileIsWholeAfterEveryRecord(t *testing.T) {
	w, m := newWriter(), &image{}
	f := NewFile(m, 1<<20)
	ns := uint64(0)
	for i, e := range story() {
		w.Add(500, []Event{e})
		ns = e.NS
		if _, err := f.Write(w.Take(), w.Tail(ns)); err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := json.Unmarshal(m.b, &any); err != nil {
			t.Fatalf("after record %d: %v\n%s", i, err, m.b)
		}
		tr, err := Read(m.b)
		if err != nil || tr.Cut {
			t.Fatalf("after record %d: %v, cut %v", i, err, tr != nil && tr.Cut)
		}
		if bad := tr.Check(); len(bad) > 0 {
			t.Fatalf("after record %d: %s", i, strings.Join(bad, "\n"))
		}
	}
	w.Add(501, []Event{{NS: 1700, Kind: PutDone, Comm: 1, Peer: 2, Arg: 1}})
	if _, err := f.Write(w.Take(), w.Tail(1700)); err != nil {
		t.Fatal(err)
	}
	got := string(m.b)
	for _, want := range []string{
		`"ph":"X","cat":"group","name":"group","pid":77,"tid":500,"ts":1.000,"dur":0.600`,
		`"cat":"call","name":"ncclAllReduce","pid":77,"tid":500,"ts":1.010,"dur":0.100,"args":{"comm":"0000000000000abc","rank":1,"call":1,"count":100,"type":"float32","op":"sum","root":0,"group":9,"result":0}`,
		`"cat":"planning","name":"planning all-reduce","pid":77,"tid":500,"ts":1.020,"dur":0.080`,
		`"cat":"plan","name":"all-reduce ring","pid":77,"tid":1073741825,"ts":1.210,"dur":0.190`,
		`"cat":"channel","name":"channel 0"`,
		`"cat":"wait","name":"wait for records rank 2","pid":77,"tid":1073741825,"ts":1.220,"dur":0.080`,
		`"cat":"step","name":"reduce","pid":77,"tid":1073741825,"ts":1.300,"dur":0.050`,
		`"cat":"wait","name":"wait data rank 2","pid":77,"tid":1073741825,"ts":1.350,"dur":0.050,"args":{"comm":"0000000000000abc","rank":1,"call":1,"index":2,"round":1,"step":0,"peer":2}`,
		`"ph":"b","cat":"message","name":"send to rank 3","pid":77,"tid":1073741825,"ts":1.200,"id":"1m2"`,
		`"ph":"e","cat":"message","name":"send to rank 3","pid":77,"tid":1073741825,"ts":1.500,"id":"1m2"`,
		`"ph":"b","cat":"network","name":"put to rank 2","pid":77,"tid":1073741825,"ts":1.310,"id":"1p1","args":{"comm":"0000000000000abc","rank":1,"peer":2,"bytes":4096}`,
		`"ph":"e","cat":"network","name":"put to rank 2","pid":77,"tid":1073741825,"ts":1.700`,
		`"name":"gccl_dropped","pid":77,"tid":77,"ts":0,"args":{"operations":0}`,
		`ho\"st`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "unfinished") {
		t.Errorf("something is unfinished:\n%s", got)
	}
}

func whole(t *testing.T, w *Writer, ns uint64) *Trace {
	t.Helper()
	m := &image{}
	if _, err := NewFile(m, 1<<20).Write(w.Take(), w.Tail(ns)); err != nil {
		t.Fatal(err)
	}
	tr, err := Read(m.b)
	if err != nil || tr.Cut {
		t.Fatalf("%v: %s", err, m.b)
	}
	return tr
}

// What is open when its communicator ends, or at the moment of the file, is there with what it is and as unfinished.
func TestUnfinished(t *testing.T) {
	for _, end := range []bool{false, true} {
		w := newWriter()
		all := story()
		w.Add(500, all[:14])
		if end {
			w.EndComm(1, 2000)
		}
		tr := whole(t, w, 2000)
		n := map[string]int{}
		for i := range tr.Events {
			var u bool
			if tr.Events[i].arg("unfinished", &u) && u {
				n[tr.Events[i].Cat+" "+tr.Events[i].Ph]++
			}
		}
		want := map[string]int{"group X": 1, "plan X": 1, "channel X": 1, "wait X": 1, "message b": 1, "wait b": 1, "network b": 1}
		if fmt.Sprint(n) != fmt.Sprint(want) {
			t.Errorf("unfinished: %v, want %v", n, want)
		}
		if bad := tr.Check(); len(bad) > 0 {
			t.Error(strings.Join(bad, "\n"))
		}
		w.Add(500, all[14:])
		again := whole(t, w, 3000)
		if open := strings.Count(fmt.Sprint(again.Events), "unfinished"); end && open != 0 {
			t.Errorf("a communicator that has ended still has something open: %v", again.Events)
		}
	}
}

// The end of a put may be taken from its ring before the beginning.
func TestPutEndsInAnotherRing(t *testing.T) {
	w := newWriter()
	w.Add(1, []Event{{NS: 50, Kind: PutDone, Comm: 1, Arg: 4, Peer: 2}})
	w.Add(2, []Event{{NS: 20, Kind: Put, Comm: 1, Arg: 4, Peer: 2, Count: 8}})
	tr := whole(t, w, 100)
	if bad := tr.Check(); len(bad) > 0 {
		t.Error(strings.Join(bad, "\n"))
	}
	if s := fmt.Sprint(tr.Events); !strings.Contains(s, "network") || len(w.puts)+len(w.early) != 0 {
		t.Errorf("puts %v, early %v, events %s", w.puts, w.early, s)
	}
}

// Records that were lost leave no event without an end, and lost steps are said.
func TestLostRecords(t *testing.T) {
	all := story()
	for skip := range all {
		switch all[skip].Kind {
		case Called, Planned, Grouped: // rings keep room for them
			continue
		}
		w := newWriter()
		w.Dropped(1)
		w.Add(500, append(append([]Event{}, all[:skip]...), all[skip+1:]...))
		tr := whole(t, w, 9000)
		if bad := tr.Check(); len(bad) > 0 {
			t.Errorf("without record %d: %s", skip, strings.Join(bad, "\n"))
		}
	}
	w := newWriter()
	all[14].Red = 1
	w.Add(500, all)
	if s := string(w.Take()); !strings.Contains(s, `"steps_lost":true`) {
		t.Errorf("lost steps are not said: %s", s)
	}
}

func TestLimit(t *testing.T) {
	w, m := newWriter(), &image{}
	f := NewFile(m, 2000)
	room := true
	for range 20 {
		w.Add(500, story())
		var err error
		if room, err = f.Write(w.Take(), w.Tail(9000)); err != nil {
			t.Fatal(err)
		}
	}
	if room || !f.Full() || len(m.b) > 6000 || !json.Valid(m.b) {
		t.Errorf("room %v, %d bytes, valid %v", room, len(m.b), json.Valid(m.b))
	}
}

func trace(t *testing.T, pid int, boot string, offsets map[uint64]int64, ns uint64) Input {
	w := NewWriter(Process{PID: pid, Host: "h" + boot, Boot: boot})
	n := uint32(0)
	for comm, off := range offsets {
		n++
		w.AddComm(n, Comm{Hash: comm, Rank: pid, NRanks: 9})
		w.Clock(n, off, 7)
	}
	w.AddComm(100, Comm{Hash: 1, Rank: pid, NRanks: 9})
	w.Add(uint64(pid), []Event{{NS: ns, Kind: Call, What: coll, Comm: 100, CallNumber: 1},
		{NS: ns + 5, Kind: Called, What: coll, Comm: 100, CallNumber: 1}})
	return Input{Name: fmt.Sprintf("file of %d", pid), Trace: whole(t, w, ns+10)}
}

func TestMergeAligns(t *testing.T) {
	in := []Input{
		trace(t, 10, "a", map[uint64]int64{5: 0}, 1000),
		trace(t, 10, "b", map[uint64]int64{5: 300, 6: 50}, 1300), // the same number on another host
		trace(t, 12, "b", nil, 1320),                             // the clock of its host
		trace(t, 13, "c", map[uint64]int64{6: -1000}, 290),       // through b: ahead of a by 300 - 50 - 1000
		trace(t, 14, "d", nil, 77),                               // no way there
	}
	var b bytes.Buffer
	notes, err := Merge(&b, in)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b.Bytes()) {
		t.Fatalf("no JSON: %s", b.Bytes())
	}
	tr, err := Read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tr.Events {
		if e.Cat == "call" {
			got = append(got, fmt.Sprint(e.PID, " ", int64(e.TS)))
		}
	}
	if want := "[14 77 10 1000 11 1000 12 1020 13 1040]"; fmt.Sprint(got) != want {
		t.Errorf("calls %v, want %v", got, want)
	}
	if s := strings.Join(notes, "\n"); !strings.Contains(s, "file of 14: another machine, and no communicator") || !strings.Contains(s, "file of 13: another machine: its clock is known to within") {
		t.Errorf("notes: %s", s)
	}
	if bad := tr.Check(); len(bad) > 0 {
		t.Error(strings.Join(bad, "\n"))
	}
}

// Each rule of Check finds what it is for.
func TestCheckFinds(t *testing.T) {
	x := func(cat string, ts, dur int64, args string) TraceEvent {
		d := Micros(dur)
		return TraceEvent{Ph: "X", Cat: cat, Name: cat, PID: 1, TID: 1, TS: Micros(ts), Dur: &d, Args: json.RawMessage("{" + args + "}")}
	}
	of := `"comm":"1","rank":0,"call":1`
	for _, c := range []struct {
		name, want string
		events     []TraceEvent
	}{
		{"overlap", "ends after it", []TraceEvent{x("other", 0, 10, ""), x("other", 5, 10, "")}},
		{"negative", "below zero", []TraceEvent{x("other", 0, -1, "")}},
		{"open pair", "never ends", []TraceEvent{{Ph: "b", Cat: "network", Name: "p", ID: "1"}}},
		{"end alone", "never began", []TraceEvent{{Ph: "e", Cat: "network", Name: "p", ID: "1"}}},
		{"backwards", "ends before", []TraceEvent{{Ph: "b", Cat: "network", Name: "p", ID: "1", TS: 5}, {Ph: "e", Cat: "network", Name: "p", ID: "1", TS: 4}}},
		{"no call", "no call", []TraceEvent{x("plan", 0, 10, of)}},
		{"before its call", "before its call", []TraceEvent{x("plan", 0, 1, of), x("call", 5, 10, of)}},
		{"step alone", "in no plan", []TraceEvent{x("step", 0, 10, of)}},
		{"step outside", "not inside", []TraceEvent{x("call", 0, 100, of), x("plan", 1, 5, of), x("step", 20, 10, of)}},
		{"no group", "no group", []TraceEvent{x("call", 0, 100, of+`,"group":4`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join((&Trace{Events: c.events}).Check(), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadCutFile(t *testing.T) {
	w, m := newWriter(), &image{}
	w.Add(500, story())
	if _, err := NewFile(m, 1<<20).Write(w.Take(), w.Tail(9000)); err != nil {
		t.Fatal(err)
	}
	all, _ := Read(m.b)
	tr, err := Read(m.b[:len(m.b)*3/4])
	if err != nil || !tr.Cut || len(tr.Events) < len(all.Events)/2 || len(tr.Events) >= len(all.Events) {
		t.Fatalf("%v, %+v", err, tr)
	}
	if _, err := Read([]byte("hello")); err == nil {
		t.Error("any text is taken for a trace")
	}
}

func FuzzRead(f *testing.F) {
	w, m := newWriter(), &image{}
	w.Add(500, story())
	_, _ = NewFile(m, 1<<20).Write(w.Take(), w.Tail(9000))
	f.Add(m.b)
	f.Add([]byte(`{"displayTimeUnit":"ns","traceEvents":[` + "\n" + `{"ph":"X","ts":1e3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(data)
		if err != nil {
			return
		}
		tr.Check()
		var b bytes.Buffer
		if _, err := Merge(&b, []Input{{"x", tr}}); err == nil && !json.Valid(b.Bytes()) {
			t.Errorf("merged to no JSON: %s", b.Bytes())
		}
	})
}
