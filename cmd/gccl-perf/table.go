package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sink takes the run as it unfolds: the table and the JSON lines are two of them.
type sink interface {
	begin(p *plan, inits []event)
	row(r row)
	end(c *collector)
}

// table prints nccl-tests' columns, so that scripts made for it read ours (column widths:
// nccl-tests 2.19.6 src/common.cu). With --latency, median, mean and p99 stand in place of time and algbw.
type table struct {
	w       io.Writer
	latency bool
	section string // collective of the last row
	nranks  int
}

func (t *table) begin(p *plan, inits []event) {
	t.nranks = p.nranks
	step := fmt.Sprintf("%d(bytes)", p.step)
	if p.factor > 1 {
		step = fmt.Sprintf("%d(factor)", p.factor)
	}
	iterations := "by size"
	if p.iterations > 0 {
		iterations = strconv.Itoa(p.iterations)
	}
	fmt.Fprintf(t.w, "# processes %d nThread %d minBytes %d maxBytes %d step: %s warmup iters: %d iters: %s validation: %d buffers: %s\n#\n",
		p.processes, p.threads, p.lowest, p.highest, step, p.warmup, iterations, p.checks, p.buffers())
	fmt.Fprintf(t.w, "# Using ranks\n")
	slowest := 0.0
	for i, e := range inits {
		slowest = max(slowest, e.InitUS)
		if i >= 16 {
			continue
		}
		core := "any core"
		if e.Core >= 0 {
			core = fmt.Sprintf("core %d", e.Core)
		}
		fmt.Fprintf(t.w, "#  Rank %2d Pid %6d on %s %s\n", e.Rank, e.PID, e.Host, core)
	}
	if len(inits) > 16 {
		fmt.Fprintf(t.w, "#  … %d ranks in all\n", len(inits))
	}
	fmt.Fprintf(t.w, "# slowest init %.1f ms\n", slowest/1e3)
}

func (t *table) heading() {
	fmt.Fprintf(t.w, "#\n")
	if t.latency {
		fmt.Fprintf(t.w, "# %10s  %12s  %8s  %6s  %6s  %22s%12s  %22s%12s\n", "", "", "", "", "", "out-of-place", "", "in-place", "")
		fmt.Fprintf(t.w, "# %10s  %12s  %8s  %6s  %6s  %8s %8s %8s %6s %6s  %8s %8s %8s %6s %6s\n", "size", "count", "type", "redop", "root",
			"p50", "mean", "p99", "busbw", "#wrong", "p50", "mean", "p99", "busbw", "#wrong")
		fmt.Fprintf(t.w, "# %10s  %12s  %8s  %6s  %6s  %8s %8s %8s %6s %6s  %8s %8s %8s %6s %6s\n", "(B)", "(elements)", "", "", "",
			"(us)", "(us)", "(us)", "(GB/s)", "", "(us)", "(us)", "(us)", "(GB/s)", "")
		return
	}
	fmt.Fprintf(t.w, "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "", "", "", "")
	columns := "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n"
	fmt.Fprintf(t.w, columns, "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
	fmt.Fprintf(t.w, columns, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
}

// formatTime keeps five significant places in seven columns.
func formatTime(us float64) string {
	switch {
	case us >= 10000:
		return fmt.Sprintf("%.0f", us)
	case us >= 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.2f", us)
}

func (t *table) place(s *summary) string {
	if s == nil && t.latency {
		return fmt.Sprintf("  %8s %8s %8s %6s %6s", "N/A", "N/A", "N/A", "N/A", "N/A")
	}
	if s == nil {
		return fmt.Sprintf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A")
	}
	wrong := "N/A"
	if s.Wrong != notChecked {
		wrong = strconv.FormatInt(s.Wrong, 10)
	}
	if t.latency {
		return fmt.Sprintf("  %8s %8s %8s %6.2f %6s", formatTime(s.P50), formatTime(s.Mean), formatTime(s.P99), s.Bus, wrong)
	}
	return fmt.Sprintf("  %7s  %6.2f  %6.2f  %6s", formatTime(s.Mean), s.Alg, s.Bus, wrong)
}

func (t *table) row(r row) {
	if r.coll.name != t.section {
		fmt.Fprintf(t.w, "#\n# %s\n", r.coll.name)
		t.section = r.coll.name
		t.heading()
	}
	line := fmt.Sprintf("%12d  %12d  %8s  %6s  %6d", r.coll.shownBytes(r.count, r.typ.width, t.nranks), r.count, r.typ.name, r.op, r.root)
	for _, s := range r.places {
		line += t.place(s)
	}
	fmt.Fprintln(t.w, strings.TrimRight(line, " "))
}

func (t *table) end(c *collector) {
	verdict := "OK"
	if c.wrong > 0 {
		verdict = "FAILED"
	}
	fmt.Fprintf(t.w, "# Out of bounds values : %d %s\n", c.wrong, verdict)
	fmt.Fprintf(t.w, "# Avg bus bandwidth    : %.6g \n#\n", c.averageBus())
}
