package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// graceForCause is how long after a first failure others are waited for: the rank that died is reported by its
// own process, its victims often speak first.
const graceForCause = time.Second

// killWait bounds the wait for killed groups to be gone.
const killWait = 5 * time.Second

// runGroups drives one run: waits for the unique id of rank 0, hands out the job, collects results, and ends every
// group whatever happens. events carries what all groups say. watch is told about every event and may be nil.
func runGroups(p *plan, groups []group, events <-chan event, sinks []sink, stop <-chan struct{}, watch func(*collector)) (*collector, error) {
	began := false
	var c *collector
	c = newCollector(p, func(r row) {
		if !began {
			began = true
			sort.Slice(c.inits, func(i, j int) bool { return c.inits[i].Rank < c.inits[j].Rank })
			for _, s := range sinks {
				s.begin(p, c.inits)
			}
		}
		for _, s := range sinks {
			s.row(r)
		}
	})
	run := &run{plan: p, groups: groups, events: events, collector: c, stop: stop, watch: watch, gone: make([]bool, len(groups))}
	err := run.collect()
	err = errors.Join(err, run.end())
	if err != nil {
		return c, err
	}
	if c.done < p.nranks {
		return c, fmt.Errorf("only %d of %d ranks finished", c.done, p.nranks)
	}
	for _, s := range sinks {
		s.end(c)
	}
	return c, nil
}

type run struct {
	plan      *plan
	groups    []group
	events    <-chan event
	collector *collector
	stop      <-chan struct{}
	watch     func(*collector)
	gone      []bool
	started   bool
}

// failure is a reason to end the run. root marks one that cannot be a consequence of another rank's failure.
type failure struct {
	text string
	root bool
}

func (r *run) left() int {
	n := 0
	for _, gone := range r.gone {
		if !gone {
			n++
		}
	}
	return n
}

// collect handles events until all groups are gone, or a failure and its grace have passed.
func (r *run) collect() error {
	var failures []failure
	timer := time.NewTimer(r.plan.timeout)
	defer timer.Stop()
	for r.left() > 0 {
		select {
		case <-r.stop:
			return errors.New("interrupted")
		case <-timer.C:
			if len(failures) == 0 {
				return fmt.Errorf("no rank got on for %v: %s; -T sets the waiting time", r.plan.timeout, r.collector.laggards())
			}
			return worst(failures)
		case e := <-r.events:
			if f := r.handle(e); f != nil {
				if len(failures) == 0 {
					timer.Reset(graceForCause)
				}
				failures = append(failures, *f)
			} else if len(failures) == 0 {
				timer.Reset(r.plan.timeout)
			}
			if r.watch != nil {
				r.watch(r.collector)
			}
		}
	}
	return worst(failures)
}

func (r *run) handle(e event) *failure {
	switch e.Event {
	case "id":
		if r.started || e.Rank != 0 {
			return &failure{text: fmt.Sprintf("a second unique id, from rank %d", e.Rank)}
		}
		r.started = true
		job := r.plan.jobText(e.ID)
		for _, g := range r.groups {
			if err := g.start(job); err != nil {
				return &failure{text: err.Error()}
			}
		}
	case "error":
		return &failure{text: fmt.Sprintf("rank %d: %s: result %d: %s", e.Rank, e.Call, e.Code, e.Text)}
	case "exit":
		r.gone[e.source] = true
		if e.Text != "" {
			return &failure{text: fmt.Sprintf("%s: %s", groupName(r.groups[e.source]), e.Text), root: strings.Contains(e.Text, "signal")}
		}
	default:
		if err := r.collector.add(e); err != nil {
			return &failure{text: err.Error()}
		}
	}
	return nil
}

// worst puts root causes first and drops repetitions; nil without failures.
func worst(failures []failure) error {
	if len(failures) == 0 {
		return nil
	}
	sort.SliceStable(failures, func(i, j int) bool { return failures[i].root && !failures[j].root })
	var lines []string
	for _, f := range failures {
		lines = append(lines, f.text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// end kills what is left and waits until it is gone, so that no process outlives the run.
func (r *run) end() error {
	if r.left() == 0 {
		return nil
	}
	for i, g := range r.groups {
		if !r.gone[i] {
			g.kill()
		}
	}
	deadline := time.After(killWait)
	for r.left() > 0 {
		select {
		case e := <-r.events:
			if e.Event == "exit" {
				r.gone[e.source] = true
			}
		case <-deadline:
			for i, g := range r.groups {
				if !r.gone[i] {
					return fmt.Errorf("%s did not end within %v of being killed", groupName(g), killWait)
				}
			}
		}
	}
	return nil
}
