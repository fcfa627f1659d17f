package main

import (
	"fmt"
	"io"
	"time"
)

// progress rewrites one line on a terminal once a run is long enough for somebody to wonder.
type progress struct {
	w     io.Writer
	start time.Time
	last  time.Time
	shown bool
	now   func() time.Time
}

// quietTime is how long a run may take without a word.
const quietTime = 3 * time.Second

// refreshTime is the least time between two lines.
const refreshTime = 500 * time.Millisecond

func newProgress(w io.Writer, now func() time.Time) *progress {
	return &progress{w: w, start: now(), now: now}
}

func (p *progress) update(c *collector) {
	now := p.now()
	if now.Sub(p.start) < quietTime || now.Sub(p.last) < refreshTime {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(p.w, "\r\x1b[K%d of %d measurements, %.0f s", c.next, len(c.plan.measurements), now.Sub(p.start).Seconds())
}

// clear takes the line away, before other output and at the end.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
