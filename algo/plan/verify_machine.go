package plan

import (
	"errors"
	"fmt"
	"strings"
)

// place names a piece of memory. User buffers have a piece per round; scratch is used again. A slot has its
// edge's place at the receiver as chunk and its own number as round.
type place struct {
	space              Space
	rank, chunk, round int
}

func (at place) String() string {
	if at.space == Slot {
		return fmt.Sprintf("slot %d of edge %d into rank %d", at.round, at.chunk, at.rank)
	}
	return fmt.Sprintf("%s of rank %d part %d", at.space, at.rank, at.chunk)
}

// access is who touched a place, at which of its own times, in which op.
type access struct {
	rank, op int
	time     uint32
}

// cell is the state of a place: its content, the last write, and the reads since then.
type cell struct {
	val     value
	written bool
	write   access
	reads   []access
}

// moment is a published clock.
type moment struct {
	step  int
	clock []uint32
}

// channel is an edge while it runs: published clocks of each data and credit signal.
type channel struct {
	slots        int
	data, credit []moment
}

// actor is a rank while it runs. clock[q] is the time of rank q up to which all of q's acts are ordered before
// this rank's next act.
type actor struct {
	p       *Plan
	cur     *Cursor
	clock   []uint32
	signals []moment
	edges   []*channel
	blocked string
}

type machine struct {
	plans  []*Plan
	cfg    Config
	actors []*actor
	cells  map[place]*cell
	n      int
}

func newMachine(plans []*Plan, c Config) *machine {
	m := &machine{plans: plans, cfg: c, n: len(plans), cells: map[place]*cell{}}
	if m.cfg.Rounds < 1 || plans[0].Eager() {
		m.cfg.Rounds = 1
	}
	if !plans[0].Coll.HasInPlace() {
		m.cfg.InPlace = false
	}
	type end struct{ receiver, index int }
	channels := map[end]*channel{}
	for r, p := range plans {
		a := &actor{p: p, cur: NewCursor(p, c.View, m.cfg.Rounds), clock: make([]uint32, m.n)}
		a.clock[r] = 1
		for _, e := range p.Edges {
			at := end{r, e.Index}
			if e.Out {
				at.receiver = e.Peer
			}
			if channels[at] == nil {
				channels[at] = &channel{slots: e.Slots}
			}
			a.edges = append(a.edges, channels[at])
		}
		m.actors = append(m.actors, a)
	}
	return m
}

// run executes all ranks to their end, then looks at the results.
func (m *machine) run() error {
	if m.cfg.InPlace && m.plans[0].Split && m.plans[0].SendParts != m.plans[0].RecvParts {
		return m.plans[0].fault(-1, 0, "in place, but send and receive buffers have different parts")
	}
	for {
		moved, left := false, false
		for _, a := range m.actors {
			for !a.cur.Done() {
				ok, err := m.step(a)
				if err != nil {
					return err
				}
				if !ok {
					left = true
					break
				}
				moved = true
			}
		}
		if !left {
			break
		}
		if !moved {
			return m.deadlock()
		}
	}
	for _, a := range m.actors {
		if err := m.checkEnd(a); err != nil {
			return err
		}
	}
	return m.checkResults()
}

// deadlock names what every rank waits for, and blames a rank that waits for one that has ended, if there is one.
func (m *machine) deadlock() error {
	var all []string
	var fault *Fault
	for r, a := range m.actors {
		if a.cur.Done() {
			continue
		}
		_, index, _ := a.cur.Next()
		all = append(all, fmt.Sprintf("rank %d op %d waits for %s", r, index, a.blocked))
		if fault == nil {
			fault = a.p.fault(index, a.cur.Round(), "")
		}
	}
	fault.Reason = "deadlock: " + strings.Join(all, "; ")
	return fault
}

// step runs one op if it can.
func (m *machine) step(a *actor) (bool, error) {
	op, index, i := a.cur.Next()
	ok, err := true, error(nil)
	switch {
	case op.Kind == KindReduce:
		err = m.reduce(a, op, index, i)
	case op.Kind == KindSignal && op.Sync == SyncStep:
		err = m.signalStep(a, op)
	case op.Kind == KindSignal:
		m.signalEdge(a, op)
	case op.Sync == SyncStep:
		ok, err = m.waitStep(a, op, i)
	default:
		ok = m.waitEdge(a, op)
	}
	if err != nil {
		var f *Fault
		if !errors.As(err, &f) {
			err = a.p.fault(index, a.cur.Round(), "%s", err)
		}
		return false, err
	}
	if ok {
		a.cur.Step()
	}
	return ok, nil
}

// publish is a release: what the rank did so far is in the moment, what it does next is not.
func (a *actor) publish(step int) moment {
	at := moment{step: step, clock: append([]uint32(nil), a.clock...)}
	a.clock[a.p.Rank]++
	return at
}

// learn is an acquire.
func (a *actor) learn(at moment) {
	for r, t := range at.clock {
		a.clock[r] = max(a.clock[r], t)
	}
}

func (m *machine) signalStep(a *actor, op *Op) error {
	step := a.cur.Round()*a.p.Steps + op.Step
	if k := len(a.signals); k > 0 && a.signals[k-1].step >= step {
		return fmt.Errorf("signals step %d after step %d", step, a.signals[k-1].step)
	}
	a.signals = append(a.signals, a.publish(step))
	return nil
}

func (m *machine) waitStep(a *actor, op *Op, i int) (bool, error) {
	step := a.cur.Round()*a.p.Steps + op.Step
	if !op.Peers.All {
		q := op.Peers.Rank.At(i, 0)
		if q < 0 || q >= m.n || q == a.p.Rank {
			return false, fmt.Errorf("waits for rank %d", q)
		}
		if !a.p.Eager() && !m.cfg.Cliques.Same(q, a.p.Rank) {
			return false, fmt.Errorf("waits for a step of rank %d, which is outside its clique", q)
		}
		return m.acquireStep(a, q, step), nil
	}
	if !a.p.Eager() && m.cfg.Cliques.Count() > 1 {
		return false, fmt.Errorf("waits for a step of all ranks, some of which are outside its clique")
	}
	for q := range m.n {
		if q != a.p.Rank && !m.acquireStep(a, q, step) {
			return false, nil
		}
	}
	return true, nil
}

func (m *machine) acquireStep(a *actor, q, step int) bool {
	for _, s := range m.actors[q].signals {
		if s.step >= step {
			a.learn(s)
			return true
		}
	}
	a.blocked = fmt.Sprintf("step %d of rank %d, which signalled %d of its steps", step, q, len(m.actors[q].signals))
	return false
}

func (m *machine) signalEdge(a *actor, op *Op) {
	ch := a.edges[op.Edge]
	if op.Sync == SyncData {
		ch.data = append(ch.data, a.publish(0))
	} else {
		ch.credit = append(ch.credit, a.publish(0))
	}
}

// waitEdge waits for data that was not read yet, or for a credit for the next slot.
func (m *machine) waitEdge(a *actor, op *Op) bool {
	ch := a.edges[op.Edge]
	if op.Sync == SyncData {
		if len(ch.data) <= len(ch.credit) {
			a.blocked = fmt.Sprintf("data %d on edge %d from rank %d", len(ch.credit)+1, op.Edge, a.p.Edges[op.Edge].Peer)
			return false
		}
		a.learn(ch.data[len(ch.credit)])
		return true
	}
	need := len(ch.data) + 1 - ch.slots
	if need <= 0 {
		return true
	}
	if len(ch.credit) < need {
		a.blocked = fmt.Sprintf("credit %d on edge %d to rank %d", need, op.Edge, a.p.Edges[op.Edge].Peer)
		return false
	}
	a.learn(ch.credit[need-1])
	return true
}
