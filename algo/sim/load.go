package sim

import (
	"math"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
)

// Load is what one rank does in one round, added up: an estimate of time that needs no other rank's plan.
type Load struct {
	work    []work
	signals int // on edges
	far     int // messages that leave the clique
	stalls  int // how often an edge that leaves it waits for a slot
	slow    float64
	latency float64 // of the longest way
	polls   int
	parts   [2]int
	places  int
	eager   bool
	staged  bool
	largest work
	clique  int
	outside int // ranks
}

type work struct{ user, scratch, times int }

// LoadOf adds up a plan.
func LoadOf(p *plan.Plan, set Setting) (*Load, error) {
	c := &compiler{staged: set.Staged, cliques: set.Cliques, known: map[string]int32{}}
	out, err := c.compile(p)
	if err != nil {
		return nil, err
	}
	l := &Load{parts: [2]int{p.SendParts, p.RecvParts}, places: p.Places, eager: p.Eager(), staged: set.Staged, slow: 1, clique: p.NRanks}
	fc, fi := set.Cliques.Of(p.Rank)
	if set.Cliques != nil {
		l.clique = set.Cliques.Size(fc)
	}
	l.outside = p.NRanks - l.clique
	times := 1
	sent := make([]int, len(out.ports))
	for _, s := range c.progs[out.prog].steps {
		if s.kind == kindSignal && s.sync != syncStep {
			l.signals += times
		}
		switch {
		case s.kind == kindLoop:
			times = int(s.n)
		case s.kind == kindEnd:
			times = 1
		case s.kind == kindData:
			w := work{int(s.user + s.own), int(s.scratch) + len(s.slots), times}
			l.work = append(l.work, w)
			if w.user+w.scratch > l.largest.user+l.largest.scratch {
				l.largest = w
			}
		case s.kind == kindWait && s.sync == syncStep && s.edge < 0:
			l.polls += times * (p.NRanks - 1)
		case s.kind == kindSignal && s.sync == syncData:
			peer := int(out.ports[s.edge].peer)
			if set.Cliques.Same(p.Rank, peer) {
				continue
			}
			tc, ti := set.Cliques.Of(peer)
			path := set.Fabric.Between(fc, fi, tc, ti)
			l.far += times
			sent[s.edge] += times
			l.stalls = max(l.stalls, (sent[s.edge]-1)/int(out.ports[s.edge].slots))
			l.slow, l.latency = max(l.slow, path.Slow), max(l.latency, path.Latency)
		}
	}
	return l, nil
}

// Chain is how long the longest chain of signals and ops is: inside a clique, between cliques, ops of others.
type Chain struct{ Inside, Between, Ops int }

// Estimate is the time of a collective in which every rank has this load.
func (l *Load) Estimate(m *cost.Machine, bytes float64, chain Chain) float64 {
	r := &run{m: m, w: &World{sendParts: l.parts[0], recvParts: l.parts[1], places: l.places, eager: l.eager, staged: l.staged}}
	rounds, err := r.cut(bytes)
	if err != nil {
		return math.Inf(1)
	}
	share, hop := m.Share(l.clique), m.Hop(l.clique)
	footprint := float64(l.clique) * bytes / float64(l.parts[0]) * float64(l.parts[0]+l.parts[1])
	cost := func(w work) float64 { return m.Work(r.bytes, w.user, w.scratch, footprint) * share }
	t := (float64(l.polls)*m.Poll + float64(l.signals)*m.Signal) * share
	for _, w := range l.work {
		t += float64(w.times) * cost(w)
	}
	t += float64(chain.Ops) * cost(l.largest)
	t += float64(chain.Inside) * hop
	if l.polls > 0 && l.outside > 0 { // records, and eager slots with them, go to every rank outside the clique
		t += float64(l.outside)*m.Between.Gap*share + m.Between.Latency
		if l.eager && m.Between.Rate > 0 {
			t += float64(l.outside) * r.bytes * float64(l.parts[0]) / m.Between.Rate
		}
	}
	if m.Between.Rate > 0 {
		wire := r.bytes * l.slow / m.Between.Rate
		t += float64(max(l.far, chain.Between)) * wire
	}
	hops := chain.Between + 2*l.stalls
	t += float64(l.far)*m.Between.Gap*share + float64(hops)*(m.Between.Latency+l.latency)
	return float64(rounds)*t + m.Call*share
}
