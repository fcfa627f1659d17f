package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// resultRow is one peer at one size: the format that every benchmark of the project writes.
type resultRow struct {
	What   string   `json:"what"`
	Bytes  int64    `json:"bytes"`
	Ranks  int      `json:"ranks"`
	Launch string   `json:"launch"`
	Mode   string   `json:"mode"`
	Ours   *float64 `json:"ours_us"` // null: not measured
	Peer   string   `json:"peer"`
	PeerUS *float64 `json:"peer_us"`
	Floor  *float64 `json:"floor_us"`
	Spread *float64 `json:"spread"` // (largest - smallest) / median over ours' rounds; the peer's where ours was not measured
}

type result struct {
	Commit    string       `json:"commit"`
	Machine   string       `json:"machine"`
	Command   string       `json:"command"`
	Date      string       `json:"date"`
	Rows      []resultRow  `json:"rows"`
	Lifecycle *lifecycle   `json:"lifecycle,omitempty"`
	FrontNS   *float64     `json:"front_ns,omitempty"` // ours, 8 B, 2 ranks on windows
	Tuner     *tunerResult `json:"tuner,omitempty"`
	Gin       []ginFigure  `json:"gin,omitempty"`
	Missing   []string     `json:"missing,omitempty"`
	Failures  []string     `json:"failures,omitempty"`
}

// number is nil for a figure that was not measured.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

const ours = "ours"

// rowsOf compares ours in each buffer mode with every peer, size by size, for median and mean.
func rowsOf(r regime, t table, modes, peers []string, launch string) []resultRow {
	var rows []resultRow
	for _, statistic := range []struct {
		name string
		of   func(figure) float64
	}{{"p50", p50}, {"mean", mean}} {
		for _, mode := range modes {
			mine := t[ours+" "+mode]
			for _, peer := range peers {
				for _, s := range r.sizes {
					us, them := pick(mine[s.bytes], statistic.of), pick(t[peer][s.bytes], statistic.of)
					if len(us) == 0 && len(them) == 0 {
						continue
					}
					apart := spread(us)
					if len(us) == 0 {
						apart = spread(them)
					}
					rows = append(rows, resultRow{
						What: "all_reduce float sum " + statistic.name, Bytes: s.bytes, Ranks: r.ranks, Launch: launch, Mode: mode,
						Ours: number(median(us)), Peer: peer, PeerUS: number(median(them)),
						Floor: number(median(pick(t[r.floor][s.bytes], statistic.of))), Spread: number(apart),
					})
				}
			}
		}
	}
	return rows
}

func cell(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func sizeName(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// writeRegime prints one regime: contenders as lines, sizes as columns, p50 / mean / p99 and the spread of p50.
func writeRegime(w io.Writer, r regime, t table, names []string) {
	fmt.Fprintf(w, "## %s\n\nMicroseconds: median / mean / p99 (spread of the medians over %d rounds).\n\n", r.name, r.rounds)
	fmt.Fprintf(w, "| |")
	for _, s := range r.sizes {
		fmt.Fprintf(w, " %s |", sizeName(s.bytes))
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" --- |", len(r.sizes)))
	for _, name := range names {
		if len(t[name]) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |", name)
		for _, s := range r.sizes {
			f := t[name][s.bytes]
			if len(f) == 0 {
				fmt.Fprintf(w, " – |")
				continue
			}
			fmt.Fprintf(w, " %s / %s / %s (%.0f %%) |", cell(median(pick(f, p50))), cell(median(pick(f, mean))), cell(median(pick(f, p99))),
				100*spread(pick(f, p50)))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	writeRatios(w, r, t, names)
}

// writeRatios says how many times faster ours is, by medians.
func writeRatios(w io.Writer, r regime, t table, names []string) {
	var lines []string
	for _, mine := range names {
		if !strings.HasPrefix(mine, ours+" ") || len(t[mine]) == 0 {
			continue
		}
		for _, peer := range names {
			if strings.HasPrefix(peer, ours+" ") || len(t[peer]) == 0 {
				continue
			}
			line := fmt.Sprintf("| %s, against %s |", mine, peer)
			for _, s := range r.sizes {
				ratio := median(pick(t[peer][s.bytes], p50)) / median(pick(t[mine][s.bytes], p50))
				if math.IsNaN(ratio) {
					line += " – |"
					continue
				}
				line += fmt.Sprintf(" %.2f |", ratio)
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "Times faster (peer's median / ours):\n\n| |")
	for _, s := range r.sizes {
		fmt.Fprintf(w, " %s |", sizeName(s.bytes))
	}
	fmt.Fprintf(w, "\n| --- |%s\n%s\n\n", strings.Repeat(" --- |", len(r.sizes)), strings.Join(lines, "\n"))
}

func writeGin(w io.Writer, list []ginFigure) {
	fmt.Fprintf(w, "## Descriptor queues\n\n| net/gin | | spread |\n| --- | --- | --- |\n")
	for _, f := range list {
		fmt.Fprintf(w, "| %s | %.4g %s | %.0f %% |\n", f.What, f.Value, f.Unit, 100*f.Spread)
	}
	fmt.Fprintln(w)
}

func writeLifecycle(w io.Writer, l *lifecycle) {
	fmt.Fprintf(w, "## Making and ending communicators\n\n")
	fmt.Fprintf(w, "| | |\n| --- | --- |\n")
	fmt.Fprintf(w, "| init of %d ranks as threads | %.1f ms |\n", initThreads, l.InitThreadsUS/1e3)
	fmt.Fprintf(w, "| init of %d ranks as processes (slowest rank) | %.1f ms |\n", initProcesses, l.InitProcessesUS/1e3)
	fmt.Fprintf(w, "| one-rank communicator, make and destroy | %.1f µs |\n", l.CycleUS)
	fmt.Fprintf(w, "| over %d such cycles: descriptors | %d → %d |\n", cycleCount, l.Fds[0], l.Fds[1])
	fmt.Fprintf(w, "| … threads | %d → %d |\n", l.Threads[0], l.Threads[1])
	fmt.Fprintf(w, "| … resident memory | %d KiB → %d KiB |\n", l.RSSKB[0], l.RSSKB[1])
	fmt.Fprintf(w, "| resident memory of a one-rank communicator | %.1f KiB |\n", l.OneRankKB)
	if l.OneRankOwn >= 0 {
		fmt.Fprintf(w, "| … as the library counts it | %d B |\n", l.OneRankOwn)
	}
	fmt.Fprintln(w)
}

func (r *result) write(dir, name string, text []byte) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), text, 0o644)
}
