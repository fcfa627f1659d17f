package probe

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Input is a trace to merge, with the name that messages use.
type Input struct {
	Name  string
	Trace *Trace
}

// clockOf is what a file says of its clock.
type clockOf struct {
	boot  string
	ranks map[string]offset // by communicator: ahead of its rank 0
}

type offset struct{ ns, within int64 }

func readClock(t *Trace) clockOf {
	c := clockOf{ranks: map[string]offset{}}
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Name {
		case "gccl_process":
			e.arg("boot", &c.boot)
		case "gccl_clock":
			var comm string
			var o offset
			if e.arg("comm", &comm) && e.arg("offset_ns", &o.ns) && e.arg("error_ns", &o.within) {
				c.ranks[comm] = o
			}
		}
	}
	return c
}

// align finds by how much the clock of each input is ahead of the first one's. Inputs of one boot share a clock; the others
// are reached through communicators that have ranks in both. ok is false where there is no way.
func align(inputs []Input) (ahead []offset, ok []bool) {
	clocks := make([]clockOf, len(inputs))
	for i, in := range inputs {
		clocks[i] = readClock(in.Trace)
	}
	ahead, ok = make([]offset, len(inputs)), make([]bool, len(inputs))
	ok[0] = true
	for again := true; again; {
		again = false
		for i := range inputs {
			for k := range inputs {
				if !ok[k] || ok[i] {
					continue
				}
				way, found := offset{}, clocks[i].boot != "" && clocks[i].boot == clocks[k].boot
				for comm, a := range clocks[i].ranks {
					b, both := clocks[k].ranks[comm]
					if both && clocks[i].boot != clocks[k].boot && (!found || a.within+b.within < way.within) {
						way, found = offset{a.ns - b.ns, a.within + b.within}, true
					}
				}
				if found {
					ahead[i], ok[i], again = offset{ahead[k].ns + way.ns, ahead[k].within + way.within}, true, true
				}
			}
		}
	}
	return ahead, ok
}

// Merge writes all traces as one, on the clock of the first. notes say what the reader of the result must know.
func Merge(w io.Writer, inputs []Input) (notes []string, err error) {
	if len(inputs) == 0 {
		return nil, fmt.Errorf("nothing to merge")
	}
	ahead, ok := align(inputs)
	out := bufio.NewWriter(w)
	var all []TraceEvent
	used := map[int64]bool{}
	for i, in := range inputs {
		if in.Trace.Cut {
			notes = append(notes, in.Name+": the file breaks off; what is complete was taken")
		}
		switch {
		case !ok[i]:
			notes = append(notes, in.Name+": another machine, and no communicator whose ranks have compared their clocks leads there: "+
				"its times are its own")
		case ahead[i].within > 0:
			notes = append(notes, fmt.Sprintf("%s: another machine: its clock is known to within %.1f µs", in.Name, float64(ahead[i].within)/1000))
		}
		pids := map[int64]int64{}
		taken := map[int64]bool{}
		for _, e := range in.Trace.Events {
			pid, known := pids[e.PID]
			if !known { // processes of two hosts may have one number
				for pid = e.PID; used[pid]; pid++ {
				}
				pids[e.PID], taken[pid] = pid, true
			}
			e.PID = pid
			if e.ID != "" {
				e.ID = fmt.Sprintf("%d.%s", pid, e.ID)
			}
			if e.Ph != "M" && ok[i] {
				e.TS -= Micros(ahead[i].ns)
			}
			var lost uint64
			if e.Name == "gccl_dropped" && e.arg("operations", &lost) && lost > 0 {
				notes = append(notes, fmt.Sprintf("%s: %d calls, operations and puts came faster than they were written and are missing",
					in.Name, lost))
			}
			all = append(all, e)
		}
		for pid := range taken {
			used[pid] = true
		}
	}
	slices.SortStableFunc(all, func(a, b TraceEvent) int { // enclosing ones first
		if a.TS != b.TS {
			return cmp.Compare(a.TS, b.TS)
		}
		return cmp.Compare(b.End(), a.End())
	})
	fmt.Fprint(out, fileHead)
	for i := range all {
		b, err := json.Marshal(&all[i])
		if err != nil {
			return notes, err
		}
		fmt.Fprintf(out, ",\n%s", b)
	}
	fmt.Fprint(out, fileEnd)
	return notes, out.Flush()
}
