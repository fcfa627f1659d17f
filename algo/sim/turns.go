package sim

import (
	"fmt"
	"math"
)

// Ranks that share processors take turns: rank r is on processor r modulo their number, as launchers pin ranks and as the scheduler
// spreads them. A rank runs until something that it waits for is not there yet; then it yields, and the next one of its processor that
// has not finished has its turn, which costs a switch, whether it can go on or not (device/host/exec/wait.c). So it matters which
// ranks share a processor: two that exchange on different processors may both be running, two on the same never are.

// maxTurns is the largest clique whose ranks are run one by one; in larger ones they are taken to be alike.
const maxTurns = 64

// processor has the ranks that take turns on it.
type processor struct {
	clock  float64
	ranks  []int32
	at     int     // whose turn it is
	idle   int     // turns since somebody went on
	soon   float64 // when the first of them can go on, as far as is known
	seen   int     // how many signals there were when the first of them could not go on
	parked bool    // until somebody signals
}

// turns runs all ranks once, on a number of processors.
func (r *run) turns(cpus, rounds int) (Timed, error) {
	r.start()
	for a := range r.w.kinds {
		k := &r.w.kinds[a]
		near := func(e int32) bool { return int(k.ports[e].peer)%cpus == a%cpus }
		r.spent = append(r.spent, r.costs(r.w.progs[k.prog], near))
	}
	procs := make([]processor, cpus)
	left, signals := 0, 0
	for a := range r.actors {
		if r.actors[a].round < r.rounds {
			p := &procs[a%cpus]
			p.ranks = append(p.ranks, int32(a))
			left++
		}
	}
	r.ready, r.stepWaiters = nil, nil
	for left > 0 {
		var p *processor
		for k := range procs {
			if q := &procs[k]; len(q.ranks) > 0 && !q.parked && (p == nil || q.clock < p.clock) {
				p = q
			}
		}
		if p == nil {
			return Timed{}, fmt.Errorf("simulate %s method %q: all ranks wait for ever", r.w.coll, r.w.method)
		}
		id := p.ranks[p.at]
		a := &r.actors[id]
		a.clock = p.clock
		went, signalled := r.turn(id, a)
		if !went {
			p.soon = min(p.soon, a.clock)
			p.yield(r.m.Switch, signals)
			continue
		}
		p.clock, p.idle, p.soon = a.clock, 0, math.Inf(1)
		if signalled {
			signals++
			for k := range procs {
				if q := &procs[k]; q.parked {
					q.parked, q.idle, q.clock = false, 0, max(q.clock, a.clock)
				}
			}
		}
		if a.round == r.rounds {
			left--
			p.ranks = append(p.ranks[:p.at], p.ranks[p.at+1:]...)
			if p.at == len(p.ranks) {
				p.at = 0
			}
			if len(p.ranks) > 0 {
				p.clock += r.m.Switch
			}
		}
	}
	return r.timed(rounds), nil
}

// yield gives the next rank its turn. When all have had one and nobody went on, time passes until somebody can, or signals.
func (p *processor) yield(cost float64, signals int) {
	if p.idle == 0 {
		p.seen = signals
	}
	if p.idle++; len(p.ranks) > 1 {
		p.at = (p.at + 1) % len(p.ranks)
		p.clock += cost
	}
	if p.idle < len(p.ranks) {
		return
	}
	p.idle = 0
	if math.IsInf(p.soon, 1) {
		p.parked = p.seen == signals
		return
	}
	p.clock, p.soon = max(p.clock, p.soon), math.Inf(1)
}

// turn runs one op of a rank. It returns false if what the rank waits for is not there yet: then clock is when it will be, or infinite.
func (r *run) turn(id int32, a *actor) (went, signalled bool) {
	k := &r.w.kinds[id]
	prog := r.w.progs[k.prog]
	s := &prog.steps[a.pc]
	if s.kind == kindWait {
		now := a.clock
		if !r.wait(id, a, k, prog, s) {
			a.clock = math.Inf(1)
			return false, false
		}
		if a.clock > now+r.m.Poll*float64(r.w.nranks) {
			return false, false
		}
	}
	r.op(id, a, k, prog, s)
	return true, s.kind == kindSignal
}
