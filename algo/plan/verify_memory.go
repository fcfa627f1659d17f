package plan

import "fmt"

// reduce loads, combines and stores.
func (m *machine) reduce(a *actor, op *Op, index, i int) error {
	me := access{rank: a.p.Rank, op: index, time: a.clock[a.p.Rank]}
	var vals []value
	var spaces []Space
	var from place
	for k := range op.Src {
		r := &op.Src[k]
		for j := range r.Count {
			at, space, err := m.source(a, r, i, j)
			if err != nil {
				return err
			}
			c := m.cell(at)
			if err := m.read(a, c, at, me); err != nil {
				return err
			}
			if (c.val.form == partial) != r.Partial {
				return fmt.Errorf("%s holds %s, read as partial %t", at, &c.val, r.Partial)
			}
			vals = append(vals, c.val)
			spaces = append(spaces, space)
			from = at
		}
	}
	val, err := combine(op, vals, spaces, m.n)
	if err != nil {
		return err
	}
	if part := op.Dst[0].Chunk.At(i, 0); a.p.Split && part != val.part {
		return fmt.Errorf("moves %s with the length of part %d", &val, part)
	}
	stored := map[place]bool{}
	for k := range op.Dst {
		r := &op.Dst[k]
		for j := range r.Count {
			at, err := m.target(a, r, i, j)
			if err != nil {
				return err
			}
			if (val.form == partial) != r.Partial {
				return fmt.Errorf("%s stored to %s as partial %t", &val, at, r.Partial)
			}
			if at == from && !op.Fold {
				continue // a copy onto itself stores nothing
			}
			if stored[at] {
				if at.space == Out {
					continue // peers' buffers out of reach share it
				}
				return fmt.Errorf("%s is stored twice", at)
			}
			stored[at] = true
			c := m.cell(at)
			if err := m.write(a, c, at, me); err != nil {
				return err
			}
			c.val = val
		}
	}
	return nil
}

// source finds the place of a source and checks that the rank may read it. A peer's send buffer stays Send for
// the purpose of scaling wherever it is read.
func (m *machine) source(a *actor, r *Ref, i, j int) (place, Space, error) {
	if r.Space == Slot {
		return m.slot(a, r), Slot, nil
	}
	s, rank, chunk := m.cfg.View.ReadAt(r, a.p.Rank, i, j)
	at := place{space: s, rank: rank, chunk: chunk}
	if rank < 0 || rank >= m.n {
		return at, s, fmt.Errorf("reads %s, no such rank", at)
	}
	if s == Recv && rank != a.p.Rank {
		return at, s, fmt.Errorf("reads %s, which peers may only write", at)
	}
	if s == Send && !a.p.hasSend(rank) {
		return at, s, fmt.Errorf("reads %s, which has no send buffer", at)
	}
	if err := m.inside(a, at); err != nil {
		return at, s, err
	}
	return m.canonical(a, at), s, nil
}

// target finds the place of a destination and checks that the rank may write it.
func (m *machine) target(a *actor, r *Ref, i, j int) (place, error) {
	if r.Space == Slot {
		return m.slot(a, r), nil
	}
	s, rank, chunk := m.cfg.View.WriteAt(r, a.p.Rank, i, j)
	at := place{space: s, rank: rank, chunk: chunk}
	want := r.Rank.At(i, j)
	if want < 0 || want >= m.n {
		return at, fmt.Errorf("writes %s, no such rank", at)
	}
	if !m.cfg.Cliques.Same(want, a.p.Rank) {
		return at, fmt.Errorf("writes to rank %d, which is outside its clique: only edges lead there", want)
	}
	if s == Send {
		return at, fmt.Errorf("writes %s, a send buffer", at)
	}
	if s != Recv && rank != a.p.Rank {
		return at, fmt.Errorf("writes %s, which only its owner may", at)
	}
	if r.Space == Recv && !a.p.hasRecv(r.Rank.At(i, j)) {
		return at, fmt.Errorf("writes %s, which has no receive buffer", at)
	}
	if s == Eager && len(a.signals) > 0 {
		return at, fmt.Errorf("writes %s after its first signal", at)
	}
	if err := m.inside(a, at); err != nil {
		return at, err
	}
	return m.canonical(a, at), nil
}

// inside checks the chunk, the owner's record, and that eager plans leave peers' user buffers alone.
func (m *machine) inside(a *actor, at place) error {
	parts := a.p.SendParts
	switch at.space {
	case Recv:
		parts = a.p.RecvParts
	case Out:
		parts = 1
	}
	if at.chunk < 0 || at.chunk >= parts {
		return fmt.Errorf("%s is not in 0 … %d", at, parts-1)
	}
	if at.space != Eager && !m.cfg.Cliques.Same(at.rank, a.p.Rank) {
		return fmt.Errorf("touches %s, which is outside its clique: only edges lead there", at)
	}
	if at.rank != a.p.Rank && (at.space == Send || at.space == Recv) {
		if a.p.Eager() {
			return fmt.Errorf("an eager plan touches %s", at)
		}
		if a.clock[at.rank] == 0 {
			return fmt.Errorf("touches %s before its record is known: nothing waited for its first signal", at)
		}
	}
	return nil
}

// slot is the present slot of an edge.
func (m *machine) slot(a *actor, r *Ref) place {
	e, ch := a.p.Edges[r.Edge], a.edges[r.Edge]
	if e.Out {
		return place{space: Slot, rank: e.Peer, chunk: e.Index, round: len(ch.data) % ch.slots}
	}
	return place{space: Slot, rank: a.p.Rank, chunk: e.Index, round: len(ch.credit) % ch.slots}
}

// canonical gives user buffers a piece per round, and parts that are shared in place one name.
func (m *machine) canonical(a *actor, at place) place {
	if at.space != Send && at.space != Recv {
		return at
	}
	at.round = a.cur.Round()
	return m.shared(at)
}

// shared maps a part of a receive buffer to the part of the send buffer that it is in place.
func (m *machine) shared(at place) place {
	if !m.cfg.InPlace || at.space != Recv {
		return at
	}
	p := m.plans[0]
	send := at
	send.space = Send
	rooted := p.Coll.Rooted() && at.rank != p.Root
	switch {
	case rooted:
	case p.Coll == AllReduce, p.Coll == Broadcast, p.Coll == Reduce:
		return send
	case p.Coll == ReduceScatter, p.Coll == Scatter:
		send.chunk = at.rank
		return send
	case (p.Coll == AllGather || p.Coll == Gather) && at.chunk == at.rank:
		send.chunk = 0
		return send
	}
	return at
}

func (m *machine) cell(at place) *cell {
	c := m.cells[at]
	if c == nil {
		c = &cell{}
		if at.space == Send {
			c.written = true
			c.val = input(m.n, at.rank, at.chunk, at.round)
			c.write = access{rank: at.rank, op: -1}
		}
		m.cells[at] = c
	}
	return c
}

// before says whether an access is ordered before a rank's next act.
func (a *actor) before(x access) bool { return x.rank == a.p.Rank || x.time <= a.clock[x.rank] }

func (m *machine) read(a *actor, c *cell, at place, me access) error {
	if !c.written {
		return fmt.Errorf("reads %s, which nobody has written", at)
	}
	if !a.before(c.write) {
		return fmt.Errorf("reads %s, not ordered after its write by rank %d op %d: a wait is missing", at, c.write.rank, c.write.op)
	}
	if at.space != Slot && at.space != Send && at.space != Recv && c.val.round != a.cur.Round() {
		return fmt.Errorf("reads %s, still with %s", at, &c.val)
	}
	for k := range c.reads {
		if c.reads[k].rank == me.rank {
			c.reads[k] = me
			return nil
		}
	}
	c.reads = append(c.reads, me)
	return nil
}

func (m *machine) write(a *actor, c *cell, at place, me access) error {
	if c.written && !a.before(c.write) {
		return fmt.Errorf("overwrites %s, not ordered after its write by rank %d op %d", at, c.write.rank, c.write.op)
	}
	for _, x := range c.reads {
		if !a.before(x) {
			return fmt.Errorf("overwrites %s, not ordered after its read by rank %d op %d: reused too early", at, x.rank, x.op)
		}
	}
	if at.space == Eager && c.written {
		return fmt.Errorf("writes %s twice", at)
	}
	c.written, c.write, c.reads = true, me, c.reads[:0]
	return nil
}
