package sim

import (
	"fmt"
	"math"

	"github.com/gccl/gccl/algo/cost"
)

// Timed is what a world took.
type Timed struct {
	NS        float64 // until the last rank has finished
	Rounds    int
	Simulated int // rounds; the others are taken to be like the last of them
	Events    int // ops that were run
}

// Weather is what makes one run differ from another.
type Weather struct {
	Loss    float64 // share of messages between cliques that are lost and sent again
	Timeout float64 // nanoseconds until they are
	Seed    uint64
}

// maxRounds is how many rounds are simulated.
const maxRounds = 6

// queue is the times of the signals of one direction of an edge, the first of them with number base.
type queue struct {
	base  int
	times []float64
}

func (q *queue) push(t float64) { q.times = append(q.times, t) }

// at is the time of a signal; earlier ones are not asked for again.
func (q *queue) at(k int) (float64, bool) {
	if k-q.base >= len(q.times) {
		return 0, false
	}
	t := q.times[k-q.base]
	if drop := k - q.base; drop > 64 && drop*2 > len(q.times) {
		q.times = append(q.times[:0], q.times[drop:]...)
		q.base = k
	}
	return t, true
}

// wire is an edge between kinds while it runs.
type wire struct {
	data, credit queue
	sent, taken  int
	reader       int32 // actor that waits for data, -1 none
	writer       int32 // actor that waits for credit
}

// actor is one rank of a kind while it runs.
type actor struct {
	clock, tx, rx float64 // now; until when its share of the network is busy, either way
	pc, i, loop   int
	round         int
	steps         []float64 // when it signalled each of its steps
}

// run is one simulation.
type run struct {
	w           *World
	m           *cost.Machine
	weather     Weather
	bytes       float64    // of a chunk
	footprint   float64    // of the user buffers of a clique
	carry       []carriage // by path
	hop, share  float64
	spent       [][]float64 // by program and step: time of a data op
	wires       []wire
	actors      []actor
	ready       []int32
	queued      []bool
	stepMax     []float64 // by step: when the last rank signalled it
	stepSeen    []int
	stepWaiters []int32
	rounds      int
	ends        []float64 // by round
	work        float64   // time of the data ops of all ranks
	events      int
}

// carriage is what a message on a path costs: of the sender's share, and on its way.
type carriage struct{ busy, wire, latency float64 }

// Time runs the world on a machine. bytes is the size of the largest send buffer of a rank.
func (w *World) Time(m *cost.Machine, bytes float64, weather Weather) (Timed, error) {
	r := &run{w: w, m: m, weather: weather, hop: m.Hop(w.clique), share: m.Share(w.clique)}
	rounds, err := r.cut(bytes)
	if err != nil {
		return Timed{}, err
	}
	r.rounds = min(rounds, maxRounds)
	for _, p := range w.paths {
		slow := max(p.Slow, 1)
		t := carriage{busy: m.Between.Gap, latency: m.Between.Latency + p.Latency}
		if m.Between.Rate > 0 {
			t.wire = r.bytes * slow / m.Between.Rate
		}
		r.carry = append(r.carry, t)
	}
	r.footprint = float64(w.clique) * bytes / float64(w.sendParts) * float64(w.sendParts+w.recvParts)
	if r.share > 1 && w.apart != nil {
		r.w, r.hop, r.share = w.apart, m.Inside.Latency, 1
		t, err := r.turns(m.CPUs, rounds)
		t.NS += m.Call
		return t, err
	}
	for _, p := range w.progs {
		r.spent = append(r.spent, r.costs(p, func(int32) bool { return false }))
	}
	t, err := r.pass(rounds)
	if err == nil && r.share > 1 {
		// Too many to take turns one by one. A rank has a processor while others wait, so its own work is not stretched; but the
		// work of all needs processors, and what signals and switches take comes on top.
		work := r.work * float64(rounds) / float64(r.rounds) * r.share / float64(w.nranks)
		for _, p := range r.spent {
			clear(p)
		}
		var bare Timed
		bare, err = r.pass(rounds)
		t.NS = max(t.NS, bare.NS+work)
	}
	t.NS += m.Call * r.share
	return t, err
}

// costs are the times of a program's data ops. near says whether the other end of an edge is on the rank's own processor: what passes
// through its slots stays in that processor's cache then.
func (r *run) costs(p *program, near func(edge int32) bool) []float64 {
	spent := make([]float64, len(p.steps))
	for k := range p.steps {
		s := &p.steps[k]
		own, scratch := int(s.own), int(s.scratch)
		for _, e := range s.slots {
			if near(e) {
				own++
			} else {
				scratch++
			}
		}
		if int(s.user)+own+scratch > 0 {
			spent[k] = r.m.Work(r.bytes, int(s.user), scratch, r.footprint) + r.bytes*float64(own)*r.m.User.At(min(r.footprint, 2*float64(r.w.clique)*r.bytes))
		}
	}
	return spent
}

// pass runs all ranks once, from the beginning.
func (r *run) pass(rounds int) (Timed, error) {
	r.start()
	for len(r.ready) > 0 {
		a := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.queued[a] = false
		r.advance(a)
	}
	for k := range r.actors {
		if r.actors[k].round < r.rounds {
			return Timed{}, fmt.Errorf("simulate %s method %q: rank %d waits for ever at op %d", r.w.coll, r.w.method, r.w.kinds[k].first, r.actors[k].pc)
		}
	}
	return r.timed(rounds), nil
}

// timed is what was simulated, with the rounds that were not.
func (r *run) timed(rounds int) Timed {
	t := Timed{NS: r.ends[r.rounds-1], Rounds: rounds, Simulated: r.rounds, Events: r.events}
	if rounds > r.rounds {
		t.NS += float64(rounds-r.rounds) * (r.ends[r.rounds-1] - r.ends[r.rounds-2])
	}
	return t
}

// cut finds the size of a chunk and the number of rounds, as the executor does.
func (r *run) cut(bytes float64) (rounds int, err error) {
	part := bytes / float64(r.w.sendParts)
	piece := math.Inf(1)
	switch {
	case r.w.eager:
	case r.w.places > 0:
		piece = float64(r.m.Stage / int64(r.w.places) / 64 * 64)
		if piece == 0 {
			return 0, fmt.Errorf("simulate %s method %q: %d slots do not fit scratch of %d bytes", r.w.coll, r.w.method, r.w.places, r.m.Stage)
		}
	case r.w.staged:
		piece = max(float64(r.m.Stage)/4/float64(r.w.sendParts), 64) // device/host/exec/coll.c, SCRATCH_TURNS
	}
	rounds = max(1, int(math.Ceil(part/piece)))
	r.bytes = part / float64(rounds)
	return rounds, nil
}

func (r *run) start() {
	channels, steps := 0, 0
	for _, k := range r.w.kinds {
		for _, p := range k.ports {
			channels = max(channels, int(p.channel)+1)
		}
		steps = max(steps, r.w.progs[k.prog].nsteps)
	}
	r.wires = make([]wire, channels)
	for k := range r.wires {
		r.wires[k].reader, r.wires[k].writer = -1, -1
	}
	r.actors = make([]actor, len(r.w.kinds))
	r.queued = make([]bool, len(r.actors))
	r.ends = make([]float64, r.rounds)
	r.stepMax, r.stepSeen = make([]float64, steps*r.rounds+1), make([]int, steps*r.rounds+1)
	for k := len(r.actors) - 1; k >= 0; k-- {
		r.actors[k].loop = -1
		if len(r.w.progs[r.w.kinds[k].prog].steps) == 0 {
			r.actors[k].round = r.rounds // nothing to do
			continue
		}
		r.wake(int32(k))
	}
}

func (r *run) wake(a int32) {
	if a >= 0 && !r.queued[a] {
		r.queued[a] = true
		r.ready = append(r.ready, a)
	}
}

// advance runs an actor until it waits or ends.
func (r *run) advance(id int32) {
	a, k := &r.actors[id], &r.w.kinds[id]
	prog := r.w.progs[k.prog]
	for a.round < r.rounds {
		s := &prog.steps[a.pc]
		if s.kind == kindWait && !r.wait(id, a, k, prog, s) {
			return
		}
		r.op(id, a, k, prog, s)
	}
}

// op runs one op, but for waits, which are over, and goes past it.
func (r *run) op(id int32, a *actor, k *kind, prog *program, s *step) {
	r.events++
	switch s.kind {
	case kindData:
		spent := r.spent[k.prog][a.pc] * k.slow
		a.clock += spent
		r.work += spent * float64(k.ranks)
	case kindSignal:
		r.signal(id, a, k, prog, s)
	case kindLoop:
		a.loop, a.i = a.pc, 0
	case kindEnd:
		if a.i++; a.i < int(prog.steps[a.loop].n) {
			a.pc = a.loop
		}
	}
	if a.pc++; a.pc == len(prog.steps) {
		r.ends[a.round] = max(r.ends[a.round], a.clock)
		a.pc, a.round = 0, a.round+1
	}
}

func (r *run) signal(id int32, a *actor, k *kind, prog *program, s *step) {
	if s.sync == syncStep {
		n := a.round*prog.nsteps + int(s.n)
		at := a.clock
		if r.w.far > 0 { // the record, and the eager slot with it, goes to every rank outside the clique
			a.clock += float64(r.w.far) * r.m.Between.Gap * r.share
			at = a.clock
			if r.w.eager && r.m.Between.Rate > 0 {
				a.tx = max(a.tx, a.clock) + float64(r.w.far)*r.bytes*float64(r.w.sendParts)/r.m.Between.Rate
				at = a.tx
			}
			at += r.m.Between.Latency - r.hop
		}
		for len(a.steps) <= n {
			a.steps = append(a.steps, at)
		}
		r.stepSeen[n]++
		r.stepMax[n] = max(r.stepMax[n], at)
		for _, q := range r.stepWaiters {
			r.wake(q)
		}
		r.stepWaiters = r.stepWaiters[:0]
		return
	}
	p := &k.ports[s.edge]
	w := &r.wires[p.channel]
	a.clock += r.m.Signal * r.share
	at := a.clock + r.hop
	if p.path >= 0 {
		t := &r.carry[p.path]
		a.clock += t.busy * r.share
		at = a.clock + t.latency
		if s.sync == syncData {
			a.tx = max(a.tx, a.clock) + t.wire
			at = a.tx + t.latency
		}
		at += r.lost(k, p, w)
	}
	if s.sync == syncData {
		w.sent++
		w.data.push(at)
		r.wake(w.reader)
		w.reader = -1
		return
	}
	w.taken++
	w.credit.push(at)
	r.wake(w.writer)
	w.writer = -1
}

// lost is how much later a message comes because it was lost and sent again.
func (r *run) lost(k *kind, p *kindPort, w *wire) (late float64) {
	if r.weather.Loss <= 0 {
		return 0
	}
	h := mixer(r.weather.Seed)
	h.add(uint64(k.first)<<32 | uint64(p.channel))
	h.add(uint64(w.sent)<<32 | uint64(w.taken))
	for wait := r.weather.Timeout; float64(h>>11)/(1<<53) < r.weather.Loss && late < 100*r.weather.Timeout; wait *= 2 {
		late += wait
		h.add(1)
	}
	return late
}

// wait goes past a wait if what it is for has a time.
func (r *run) wait(id int32, a *actor, k *kind, prog *program, s *step) bool {
	switch s.sync {
	case syncData:
		p := &k.ports[s.edge]
		w := &r.wires[p.channel]
		at, ok := w.data.at(w.taken)
		if !ok {
			w.reader = id
			return false
		}
		if p.path >= 0 {
			a.rx = max(at, a.rx+r.carry[p.path].wire)
			at = a.rx
		}
		a.clock = max(a.clock, at)
	case syncCredit:
		p := &k.ports[s.edge]
		w := &r.wires[p.channel]
		need := w.sent - int(p.slots)
		if need < 0 {
			return true
		}
		at, ok := w.credit.at(need)
		if !ok {
			w.writer = id
			return false
		}
		a.clock = max(a.clock, at)
	default:
		n := a.round*prog.nsteps + int(s.n)
		at := 0.0
		if s.edge >= 0 {
			q := &r.actors[k.peers[s.edge]]
			if len(q.steps) <= n {
				r.stepWaiters = append(r.stepWaiters, id)
				return false
			}
			at = q.steps[n]
			a.clock += r.m.Poll * r.share
		} else {
			if r.stepSeen[n] < len(r.actors) {
				r.stepWaiters = append(r.stepWaiters, id)
				return false
			}
			at = r.stepMax[n]
			a.clock += r.m.Poll * r.share * float64(r.w.nranks-1)
		}
		if r.w.nranks > 1 {
			a.clock = max(a.clock, at+r.hop)
		}
	}
	return true
}
