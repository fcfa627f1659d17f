package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// event is one JSON line from a rank process (rank/events.c), or from the front-end that started it.
type event struct {
	Event   string  `json:"event"` // id, init, result, error, done; exit and end are the front-end's own
	Rank    int     `json:"rank"`
	ID      string  `json:"id,omitempty"`
	PID     int     `json:"pid,omitempty"`
	Core    int     `json:"core,omitempty"`
	InitUS  float64 `json:"init_us,omitempty"`
	Case    int     `json:"case,omitempty"`
	Place   int     `json:"place,omitempty"`
	Mean    float64 `json:"mean,omitempty"`
	P50     float64 `json:"p50,omitempty"`
	P99     float64 `json:"p99,omitempty"`
	Min     float64 `json:"min,omitempty"`
	Wrong   int64   `json:"wrong,omitempty"`
	FrontNS float64 `json:"front_ns,omitempty"`
	Call    string  `json:"call,omitempty"`
	Code    int     `json:"code,omitempty"`
	Text    string  `json:"text,omitempty"`
	Host    string  `json:"host,omitempty"`

	source int // index of the rank group that said it
}

// readEvents passes every line of r on, as said by a process of host. A line that is no event is an error: then nothing more is read.
func readEvents(r io.Reader, host string, source int, to chan<- event) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 4096), 1<<20)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil || e.Event == "" {
			return fmt.Errorf("a line that is no event: %.100q", scanner.Text())
		}
		e.source, e.Host = source, host
		to <- e
	}
	return scanner.Err()
}
