package main

import (
	"encoding/json"
	"io"
	"time"
)

// jsonLines prints one object a line: {"kind":"run"…}, then {"kind":"row"…} for each place of each
// measurement, then {"kind":"end"…}.
type jsonLines struct {
	w       io.Writer
	command string
	now     func() time.Time
	plan    *plan
}

type jsonRun struct {
	Kind      string  `json:"kind"`
	Command   string  `json:"command"`
	Date      string  `json:"date"`
	Ranks     int     `json:"ranks"`
	Processes int     `json:"processes"`
	Threads   int     `json:"threads"`
	Buffers   string  `json:"buffers"`
	Mode      string  `json:"mode"` // batched or isolated
	InitUS    float64 `json:"init_us"`
}

type jsonRow struct {
	Kind    string   `json:"kind"`
	Coll    string   `json:"coll"`
	Bytes   int64    `json:"bytes"`
	Count   int64    `json:"count"`
	Type    string   `json:"type"`
	Op      string   `json:"redop"`
	Root    int      `json:"root"`
	Place   string   `json:"place"`
	Iters   int      `json:"iters"`
	Mean    float64  `json:"time_us"`
	P50     float64  `json:"p50_us"`
	P99     float64  `json:"p99_us"`
	Min     float64  `json:"min_us"`
	Alg     float64  `json:"algbw"`
	Bus     float64  `json:"busbw"`
	Wrong   *int64   `json:"wrong"` // null: not checked
	FrontNS *float64 `json:"front_ns,omitempty"`
}

type jsonEnd struct {
	Kind   string  `json:"kind"`
	Wrong  int64   `json:"wrong"`
	AvgBus float64 `json:"avg_busbw"`
}

func (j *jsonLines) line(v any) {
	// the values are plain structs of numbers and strings: encoding them cannot fail
	_ = json.NewEncoder(j.w).Encode(v)
}

func (j *jsonLines) begin(p *plan, inits []event) {
	j.plan = p
	run := jsonRun{Kind: "run", Command: j.command, Date: j.now().UTC().Format(time.RFC3339), Ranks: p.nranks,
		Processes: p.processes, Threads: p.threads, Buffers: p.buffers(), Mode: "batched"}
	if p.latency {
		run.Mode = "isolated"
	}
	for _, e := range inits {
		run.InitUS = max(run.InitUS, e.InitUS)
	}
	j.line(run)
}

func (j *jsonLines) row(r row) {
	for place, s := range r.places {
		if s == nil {
			continue
		}
		out := jsonRow{Kind: "row", Coll: r.coll.name, Bytes: r.coll.shownBytes(r.count, r.typ.width, j.plan.nranks), Count: r.count,
			Type: r.typ.name, Op: r.op, Root: r.root, Place: [...]string{"out", "in"}[place], Iters: r.iterations,
			Mean: s.Mean, P50: s.P50, P99: s.P99, Min: s.Min, Alg: s.Alg, Bus: s.Bus}
		if s.Wrong != notChecked {
			out.Wrong = &s.Wrong
		}
		if s.FrontNS >= 0 {
			out.FrontNS = &s.FrontNS
		}
		j.line(out)
	}
}

func (j *jsonLines) end(c *collector) {
	j.line(jsonEnd{Kind: "end", Wrong: c.wrong, AvgBus: c.averageBus()})
}
