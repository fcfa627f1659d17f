package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// play feeds made-up results of every rank to the sinks.
func play(t *testing.T, p *plan, sinks ...sink) *collector {
	t.Helper()
	var inits []event
	for rank := range p.nranks {
		inits = append(inits, event{Event: "init", Rank: rank, PID: 100 + rank, Core: rank - 1, InitUS: 1500 * float64(rank+1), Host: "here"})
	}
	for _, s := range sinks {
		s.begin(p, inits)
	}
	c := newCollector(p, func(r row) {
		for _, s := range sinks {
			s.row(r)
		}
	})
	for i, m := range p.measurements {
		for place := range nplaces {
			if place == inPlace && !m.inPlace {
				continue
			}
			for rank := p.nranks - 1; rank >= 0; rank-- {
				us := float64(m.count)*0.01 + float64(10*(place+1)+rank)
				wrong := int64(0)
				if p.checks == 0 {
					wrong = notChecked
				} else if i == 1 && rank == 1 {
					wrong = 3
				}
				e := event{Event: "result", Rank: rank, Case: i, Place: place, Mean: us, P50: us - 1, P99: us * 20, Min: us - 2, Wrong: wrong, FrontNS: -1}
				if err := c.add(e); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, s := range sinks {
		s.end(c)
	}
	return c
}

func TestTable(t *testing.T) {
	for _, tt := range []struct{ name, args string }{
		{"table.golden", "-b 8 -e 16M -f 128 -P 2"},
		{"table_rooted.golden", "-b 4K -e 4K --coll all -c 0 -t 2 -n 5"},
		{"table_latency.golden", "-b 8 -e 64K -f 8 --latency --coll sendrecv -P 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			p := testPlan(t, 2, strings.Fields(tt.args)...)
			play(t, p, &table{w: &out, latency: p.latency})
			golden(t, tt.name, out.Bytes())
		})
	}
}

func TestFormatTime(t *testing.T) {
	for us, want := range map[float64]string{0.514: "0.51", 99.99: "99.99", 123.45: "123.5", 9999: "9999.0", 12345.6: "12346"} {
		if got := formatTime(us); got != want {
			t.Errorf("%g: %q, want %q", us, got, want)
		}
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	p := testPlan(t, 2, "-b", "8", "-e", "512", "-f", "64", "-P", "2")
	play(t, p, &jsonLines{w: &out, command: "gccl-perf -P 2", now: now})
	golden(t, "rows.jsonl.golden", out.Bytes())
}

func TestPlot(t *testing.T) {
	p := testPlan(t, 2, "-b", "8", "-e", "1M", "-f", "16", "-P", "2")
	drawing := &plot{}
	play(t, p, drawing)
	picture, err := drawing.draw()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plot.svg.golden", picture)
}

func TestPlotOfNothing(t *testing.T) {
	if _, err := (&plot{}).draw(); err == nil {
		t.Error("no error")
	}
	one := &plot{}
	one.add("only <one>", point{1024, 10})
	one.add("zero bytes", point{0, 10})
	picture, err := one.draw()
	if err != nil || !bytes.Contains(picture, []byte("only &lt;one&gt;")) || bytes.Contains(picture, []byte("NaN")) {
		t.Errorf("%v\n%s", err, picture)
	}
}

func TestAverageOverRanks(t *testing.T) {
	for average, want := range map[int]float64{0: 5, 1: 4, 2: 1, 3: 6} {
		events := []event{{Rank: 2, Mean: 6}, {Rank: 1, Mean: 1}, {Rank: 0, Mean: 5}}
		if got := over(average, events, func(e event) float64 { return e.Mean }); got != want {
			t.Errorf("-a %d: %g, want %g", average, got, want)
		}
	}
}

func TestCollectorRefuses(t *testing.T) {
	p := testPlan(t, 2, "-b", "8", "-e", "8")
	c := newCollector(p, func(row) {})
	for _, e := range []event{
		{Event: "result", Rank: 2}, {Event: "result", Rank: -1}, {Event: "result", Case: 1}, {Event: "result", Case: -1}, {Event: "result", Place: 2},
	} {
		if err := c.add(e); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	bar := newProgress(&out, func() time.Time { return now })
	c := newCollector(testPlan(t, 2, "-b", "8", "-e", "64", "-f", "2"), func(row) {})
	bar.update(c)
	if out.Len() != 0 {
		t.Errorf("a short run said %q", out.String())
	}
	now = now.Add(4 * time.Second)
	bar.update(c)
	bar.update(c) // too soon after
	if got := strings.Count(out.String(), "0 of 4 measurements, 4 s"); got != 1 {
		t.Errorf("%q", out.String())
	}
	bar.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("%q", out.String())
	}
}
