package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/gccl/gccl/internal/status"
)

// view is one picture of the machine.
type view struct {
	Communicators []communicator `json:"communicators"`
	Problems      []string       `json:"problems"` // processes that could not be asked, and why
}

// communicator is what its ranks say, put together.
type communicator struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Ranks   int      `json:"ranks"`
	Device  string   `json:"device"`
	Members []member `json:"members"` // by rank; ranks that nobody here knows anything of are left out
}

// member is one rank.
type member struct {
	Rank      int     `json:"rank"`
	Host      string  `json:"host"`
	PID       int     `json:"pid"`
	Program   string  `json:"program"`
	Asked     bool    `json:"asked"` // it answered itself; otherwise a peer says what it sees of it
	State     string  `json:"state"`
	Error     string  `json:"error,omitempty"`
	Finished  uint64  `json:"finished"`
	Running   uint64  `json:"running"` // 0: in no collective
	What      string  `json:"what,omitempty"`
	CallRate  float64 `json:"calls_per_s"`
	ByteRate  float64 `json:"bytes_per_s"`
	Straggler bool    `json:"straggler"` // others wait in a collective that it has not joined
	Process   string  `json:"process"`   // alive, stopped, ended, left, unknown
}

type place struct {
	pid  int
	id   string
	rank int
}

// merge puts together what the processes said, now and an interval before.
func merge(before, now []status.Process, errs []error) view {
	type sample struct {
		at           int64
		calls, bytes uint64
	}
	earlier := map[place]sample{}
	for _, p := range before {
		for _, c := range p.Comms {
			earlier[place{p.PID, c.ID, c.Rank}] = sample{p.AtNs, c.Calls, c.Bytes}
		}
	}
	found := map[string]*communicator{}
	members := map[string]map[int]*member{}
	missing := map[string]map[int]bool{} // ranks that somebody waits for, and that have not joined
	for _, p := range now {
		for _, c := range p.Comms {
			if found[c.ID] == nil {
				found[c.ID] = &communicator{ID: c.ID, Name: c.Name, Ranks: c.Ranks, Device: c.Device}
				members[c.ID], missing[c.ID] = map[int]*member{}, map[int]bool{}
			}
			m := &member{Rank: c.Rank, PID: p.PID, Program: p.Program, Asked: true, State: c.State, Error: c.Error,
				Finished: c.Finished, Running: c.Running, What: c.What, Process: "alive"}
			if s, ok := earlier[place{p.PID, c.ID, c.Rank}]; ok && p.AtNs > s.at {
				seconds := float64(p.AtNs-s.at) / 1e9
				m.CallRate, m.ByteRate = float64(c.Calls-s.calls)/seconds, float64(c.Bytes-s.bytes)/seconds
			}
			if old := members[c.ID][c.Rank]; old != nil {
				m.Host = old.Host
			}
			members[c.ID][c.Rank] = m
			for _, q := range c.Peers {
				if c.Running != 0 && q.Seen && !q.Joined {
					missing[c.ID][q.Rank] = true
				}
				if old := members[c.ID][q.Rank]; old == nil {
					members[c.ID][q.Rank] = &member{Rank: q.Rank, Host: q.Host, PID: q.PID, Finished: q.Finished, Process: q.Process}
				} else {
					old.Host = q.Host
				}
			}
		}
	}
	v := view{Communicators: []communicator{}, Problems: []string{}}
	for id, c := range found {
		for r, m := range members[id] {
			m.Straggler = missing[id][r] && m.Running == 0
			c.Members = append(c.Members, *m)
		}
		slices.SortFunc(c.Members, func(a, b member) int { return a.Rank - b.Rank })
		v.Communicators = append(v.Communicators, *c)
	}
	sort.Slice(v.Communicators, func(i, j int) bool { return v.Communicators[i].ID < v.Communicators[j].ID })
	for _, err := range errs {
		v.Problems = append(v.Problems, err.Error())
	}
	return v
}

func (v view) print(out io.Writer) error {
	if len(v.Communicators) == 0 {
		fmt.Fprintln(out, "no communicators of this user on this machine")
	}
	for _, c := range v.Communicators {
		name := ""
		if c.Name != "" {
			name = fmt.Sprintf(" %q", c.Name)
		}
		fmt.Fprintf(out, "communicator %s%s: %d ranks, %s\n", c.ID, name, c.Ranks, c.Device)
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "  rank\tprocess\tprogram\tfinished\tin\tcalls/s\tMB/s\t")
		for _, m := range c.Members {
			in := "-"
			finished := fmt.Sprint(m.Finished)
			if c.Device == "cuda" && !m.Asked { // its streams are known to its process only
				finished, in = "?", "?"
			}
			if m.Running != 0 {
				in = fmt.Sprintf("%d %s", m.Running, m.What)
			}
			rates := fmt.Sprintf("%.0f\t%.1f", m.CallRate, m.ByteRate/1e6)
			if !m.Asked {
				rates = "?\t?"
			}
			where := fmt.Sprint(m.PID)
			if m.Host != "" {
				where = m.Host + ":" + where
			}
			program := "?"
			if m.Program != "" {
				program = filepath.Base(m.Program)
			}
			fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Rank, where, program, finished, in, rates, m.note())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, p := range v.Problems {
		fmt.Fprintln(out, "not asked:", p)
	}
	return nil
}

// note is what is unusual about a rank.
func (m member) note() string {
	var out []string
	if m.Straggler {
		out = append(out, "straggler: the others wait for it")
	}
	if m.Process != "alive" && m.Process != "unknown" {
		out = append(out, map[string]string{"left": "has left", "stopped": "process stopped", "ended": "process ended"}[m.Process])
	}
	if m.State != "" && m.State != "ready" {
		out = append(out, m.State)
	}
	if m.Error != "" {
		out = append(out, m.Error)
	}
	return strings.Join(out, ", ")
}
