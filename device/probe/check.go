package probe

import (
	"cmp"
	"fmt"
	"slices"
)

// Check says what is wrong with a trace: events of a track that overlap without one being inside the other, pairs without an
// end, lengths below zero, operations without their call and steps outside their operation. It finds at most a few of each.
func (t *Trace) Check() []string {
	c := checker{t: t, calls: map[callKey]*TraceEvent{}, plans: map[callKey]*TraceEvent{}, groups: map[callKey]*TraceEvent{}}
	c.tracks()
	c.pairs()
	c.parents()
	return c.found
}

type callKey struct {
	pid  int64
	comm string
	rank int64
	call int64
}

type checker struct {
	t                    *Trace
	found                []string
	calls, plans, groups map[callKey]*TraceEvent
	dropped              bool
}

func (c *checker) say(format string, args ...any) {
	if len(c.found) < 20 {
		c.found = append(c.found, fmt.Sprintf(format, args...))
	}
}

func (e *TraceEvent) String() string {
	return fmt.Sprintf("%s %q of %d/%d at %d..%d ns", e.Cat, e.Name, e.PID, e.TID, int64(e.TS), e.End())
}

func (c *checker) tracks() {
	type track struct{ pid, tid int64 }
	by := map[track][]*TraceEvent{}
	for i := range c.t.Events {
		e := &c.t.Events[i]
		if e.Ph != "X" {
			continue
		}
		if e.Dur == nil || *e.Dur < 0 {
			c.say("%v has no length, or one below zero", e)
			continue
		}
		by[track{e.PID, e.TID}] = append(by[track{e.PID, e.TID}], e)
	}
	for _, list := range by {
		slices.SortStableFunc(list, func(a, b *TraceEvent) int {
			if a.TS != b.TS {
				return cmp.Compare(a.TS, b.TS)
			}
			return cmp.Compare(b.End(), a.End())
		})
		var open []*TraceEvent
		for _, e := range list {
			for len(open) > 0 && open[len(open)-1].End() <= int64(e.TS) {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && e.End() > open[len(open)-1].End() {
				c.say("%v begins inside %v and ends after it", e, open[len(open)-1])
			}
			open = append(open, e)
		}
	}
}

func (c *checker) pairs() {
	type key struct {
		pid     int64
		cat, id string
		name    string
	}
	open := map[key][]*TraceEvent{}
	for i := range c.t.Events {
		e := &c.t.Events[i]
		k := key{pid: e.PID, cat: e.Cat, id: e.ID, name: e.Name}
		switch e.Ph {
		case "b":
			open[k] = append(open[k], e)
		case "e":
			l := open[k]
			if len(l) == 0 {
				c.say("%v ends what never began", e)
				continue
			}
			if l[len(l)-1].TS > e.TS {
				c.say("%v ends before it begins", l[len(l)-1])
			}
			open[k] = l[:len(l)-1]
		}
	}
	for _, l := range open {
		for _, e := range l {
			c.say("%v never ends", e)
		}
	}
}

func (e *TraceEvent) key() (k callKey, ok bool) {
	k.pid = e.PID
	ok = e.arg("comm", &k.comm) && e.arg("rank", &k.rank) && e.arg("call", &k.call)
	return k, ok
}

func (c *checker) parents() {
	for i := range c.t.Events {
		e := &c.t.Events[i]
		switch e.Cat {
		case "call":
			if k, ok := e.key(); ok {
				c.calls[k] = e
			}
		case "plan":
			if k, ok := e.key(); ok {
				c.plans[k] = e
			}
		case "group":
			k := callKey{pid: e.PID}
			if e.arg("group", &k.call) {
				c.groups[k] = e
			}
		}
		var lost uint64
		c.dropped = c.dropped || e.Name == "gccl_dropped" && e.arg("operations", &lost) && lost > 0
	}
	inside := func(in, e *TraceEvent) {
		if in.TS > e.TS || in.End() < e.End() {
			c.say("%v is not inside its parent %v", e, in)
		}
	}
	for i := range c.t.Events {
		e := &c.t.Events[i]
		k, _ := e.key()
		switch e.Cat {
		case "call":
			g := callKey{pid: e.PID}
			if e.arg("group", &g.call) {
				if group := c.groups[g]; group != nil {
					inside(group, e)
				} else if !c.dropped {
					c.say("%v has no group %d", e, g.call)
				}
			}
		case "planning":
			if call := c.calls[k]; call != nil {
				inside(call, e)
			} else if !c.dropped {
				c.say("%v has no call", e)
			}
		case "plan", "copy", "message", "onesided":
			call := c.calls[k]
			switch {
			case e.Ph == "e":
			case call == nil && !c.dropped:
				c.say("%v has no call", e)
			case call != nil && call.TS > e.TS:
				c.say("%v runs before its call %v", e, call)
			}
		case "channel", "step", "wait":
			if e.Ph != "X" {
				continue
			}
			if plan := c.plans[k]; plan != nil {
				inside(plan, e)
			} else {
				c.say("%v is in no plan", e)
			}
		}
	}
}
