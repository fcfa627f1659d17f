package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Trace is a file that has been read.
type Trace struct {
	Events []TraceEvent
	Cut    bool // the file is no complete JSON text: lines that are complete were taken
}

// TraceEvent is one event of a file. Args is kept as it is.
type TraceEvent struct {
	Ph   string          `json:"ph"`
	Cat  string          `json:"cat,omitempty"`
	Name string          `json:"name"`
	ID   string          `json:"id,omitempty"`
	PID  int64           `json:"pid"`
	TID  int64           `json:"tid"`
	TS   Micros          `json:"ts"`
	Dur  *Micros         `json:"dur,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

// End is when the event ends, in ns.
func (e *TraceEvent) End() int64 {
	if e.Dur == nil {
		return int64(e.TS)
	}
	return int64(e.TS) + int64(*e.Dur)
}

// Micros is a time in ns that a file has in microseconds.
type Micros int64

// MarshalJSON writes microseconds with three digits behind the point.
func (m Micros) MarshalJSON() ([]byte, error) {
	sign, v := "", int64(m)
	if v < 0 {
		sign, v = "-", -v
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, v/1000, v%1000), nil
}

// UnmarshalJSON reads what other tools write too.
func (m *Micros) UnmarshalJSON(b []byte) error {
	whole, part, dot := strings.Cut(string(b), ".")
	if dot && len(part) <= 3 && !strings.ContainsAny(part, "eE") { // exactly
		us, err := strconv.ParseInt(whole, 10, 48)
		ns, err2 := strconv.ParseUint((part + "000")[:3], 10, 16)
		if err == nil && err2 == nil && us >= 0 && whole[0] != '-' {
			*m = Micros(us*1000 + int64(ns))
			return nil
		}
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.Abs(f) > 1<<48 {
		return fmt.Errorf("%q is no time in microseconds", b)
	}
	*m = Micros(math.Round(f * 1000))
	return nil
}

// Read reads a file of this package or of merge; of a file that breaks off, the events before that.
func Read(data []byte) (*Trace, error) {
	var whole struct {
		TraceEvents []TraceEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &whole); err == nil && whole.TraceEvents != nil {
		return &Trace{Events: whole.TraceEvents}, nil
	}
	if !bytes.HasPrefix(data, []byte(`{"displayTimeUnit"`)) {
		return nil, fmt.Errorf("this is no trace of GCCL")
	}
	t := &Trace{Cut: true}
	for _, line := range bytes.Split(data, []byte("\n"))[1:] { // one event a line
		var e TraceEvent
		if json.Unmarshal(bytes.TrimSuffix(bytes.TrimSpace(line), []byte(",")), &e) == nil && e.Ph != "" {
			t.Events = append(t.Events, e)
		}
	}
	return t, nil
}

// arg reads one argument into v and says whether it is there.
func (e *TraceEvent) arg(name string, v any) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(e.Args, &all) != nil || all[name] == nil {
		return false
	}
	return json.Unmarshal(all[name], v) == nil
}
