package main

import (
	"fmt"
	"math"
	"sort"
)

// places of a measurement, as the rank program numbers them.
const (
	outOfPlace = iota
	inPlace
	nplaces
)

// notChecked stands in for a count of wrong elements where no check ran.
const notChecked = -1

// summary is one place of one measurement over all ranks. Times are microseconds.
type summary struct {
	Mean, P50, P99, Min float64
	FrontNS             float64 // negative: the library does not say
	Wrong               int64   // over all ranks, or notChecked
	Alg, Bus            float64
}

// row is a finished measurement; a place that was not measured is nil.
type row struct {
	measurement
	places [nplaces]*summary
}

// collector joins what the ranks report into rows, in the order of the plan.
type collector struct {
	plan    *plan
	results [][nplaces][]event
	next    int   // first measurement that is not complete
	perRank []int // results seen of each rank
	inits   []event
	done    int
	emit    func(row)
	wrong   int64
	busSum  float64
	busN    int
}

func newCollector(p *plan, emit func(row)) *collector {
	return &collector{plan: p, emit: emit, results: make([][nplaces][]event, len(p.measurements)), perRank: make([]int, p.nranks)}
}

// add takes a result, init or done event. Values that fit no measurement are an error: what a rank process
// says is not trusted more than any other input.
func (c *collector) add(e event) error {
	if e.Rank < 0 || e.Rank >= c.plan.nranks {
		return fmt.Errorf("a report of rank %d of %d", e.Rank, c.plan.nranks)
	}
	switch e.Event {
	case "init":
		c.inits = append(c.inits, e)
	case "done":
		c.done++
	case "result":
		if e.Case < 0 || e.Case >= len(c.results) || e.Place < 0 || e.Place >= nplaces {
			return fmt.Errorf("rank %d reports measurement %d, place %d, which was not asked for", e.Rank, e.Case, e.Place)
		}
		c.perRank[e.Rank]++
		at := &c.results[e.Case][e.Place]
		*at = append(*at, e)
		c.flush()
	}
	return nil
}

func (c *collector) flush() {
	for c.next < len(c.results) {
		m := c.plan.measurements[c.next]
		r := row{measurement: m}
		for place := range nplaces {
			if place == inPlace && !m.inPlace {
				continue
			}
			events := c.results[c.next][place]
			if len(events) < c.plan.nranks {
				return
			}
			r.places[place] = c.summarise(m, events)
		}
		c.results[c.next] = [nplaces][]event{} // a long run keeps only what is open
		c.next++
		c.emit(r)
	}
}

// over reduces one figure of all ranks as -a says.
func over(average int, events []event, figure func(event) float64) float64 {
	sort.Slice(events, func(i, j int) bool { return events[i].Rank < events[j].Rank })
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, e := range events {
		v := figure(e)
		sum, least, most = sum+v, min(least, v), max(most, v)
	}
	switch average {
	case 0:
		return figure(events[0])
	case 2:
		return least
	case 3:
		return most
	}
	return sum / float64(len(events))
}

func (c *collector) summarise(m measurement, events []event) *summary {
	s := &summary{
		Mean:    over(c.plan.average, events, func(e event) float64 { return e.Mean }),
		P50:     over(c.plan.average, events, func(e event) float64 { return e.P50 }),
		P99:     over(c.plan.average, events, func(e event) float64 { return e.P99 }),
		Min:     over(c.plan.average, events, func(e event) float64 { return e.Min }),
		FrontNS: over(c.plan.average, events, func(e event) float64 { return e.FrontNS }),
	}
	for _, e := range events {
		if e.Wrong < 0 {
			s.Wrong = notChecked
			break
		}
		s.Wrong += e.Wrong
	}
	s.Alg, s.Bus = m.coll.bandwidth(m.count, m.typ.width, c.plan.nranks, s.Mean)
	c.wrong += max(s.Wrong, 0)
	c.busSum += s.Bus
	c.busN++
	return s
}

// averageBus is the mean bus bandwidth over all rows and places, as in nccl-tests' last line.
func (c *collector) averageBus() float64 {
	if c.busN == 0 {
		return 0
	}
	return c.busSum / float64(c.busN)
}

// laggards names the ranks that have reported least, for the report of a run that stands still.
func (c *collector) laggards() string {
	least, most := c.perRank[0], c.perRank[0]
	for _, n := range c.perRank {
		least, most = min(least, n), max(most, n)
	}
	var ranks []int
	for rank, n := range c.perRank {
		if n == least {
			ranks = append(ranks, rank)
		}
	}
	if len(c.inits) < c.plan.nranks {
		seen := map[int]bool{}
		for _, e := range c.inits {
			seen[e.Rank] = true
		}
		ranks = nil
		for rank := range c.plan.nranks {
			if !seen[rank] {
				ranks = append(ranks, rank)
			}
		}
		return fmt.Sprintf("%s did not get through init", rankList(ranks))
	}
	if least == most {
		return fmt.Sprintf("all %d ranks stand after %d results", c.plan.nranks, least)
	}
	return fmt.Sprintf("%s gave %d results, others up to %d", rankList(ranks), least, most)
}

func rankList(ranks []int) string {
	text := "rank"
	if len(ranks) > 1 {
		text = "ranks"
	}
	for i, r := range ranks {
		if i == 8 {
			return fmt.Sprintf("%s … (%d in all)", text, len(ranks))
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %d", r)
	}
	return text
}
