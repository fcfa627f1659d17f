package plan

// hasSend says whether a rank gives data.
func (p *Plan) hasSend(rank int) bool {
	switch p.Coll {
	case Broadcast, Scatter:
		return rank == p.Root
	case SendRecv:
		return rank == p.Root || p.NRanks == 1
	}
	return true
}

// hasRecv says whether a rank gets data.
func (p *Plan) hasRecv(rank int) bool {
	switch p.Coll {
	case Reduce, Gather:
		return rank == p.Root
	case SendRecv:
		return rank != p.Root || p.NRanks == 1
	}
	return true
}

// origin is the rank and part that a part of a rank's receive buffer is a copy of.
func (p *Plan) origin(rank, part int) (from, of int) {
	switch p.Coll {
	case AllGather, Gather:
		return part, 0
	case AllToAll:
		return part, rank
	case Scatter:
		return p.Root, rank
	}
	return p.Root, part // Broadcast, SendRecv
}

// checkEnd checks what must hold when a rank has finished.
func (m *machine) checkEnd(a *actor) error {
	p := a.p
	last := 0
	if k := len(a.signals); k > 0 {
		last = a.signals[k-1].step
	}
	if want := m.cfg.Rounds * p.Steps; last != want {
		return p.fault(-1, 0, "it ends at step %d of %d: a signal is missing", last, want)
	}
	for k, ch := range a.edges {
		if len(ch.data) != len(ch.credit) {
			return p.fault(-1, 0, "edge %d with rank %d ends with %d sent and %d read", k, p.Edges[k].Peer, len(ch.data), len(ch.credit))
		}
	}
	return nil
}

// checkResults checks that user buffers are their owners' again, and that they hold what they should.
func (m *machine) checkResults() error {
	var late *Fault // the first by rank and op: the cells are in no order
	for at, c := range m.cells {
		if at.space != Send && at.space != Recv {
			continue
		}
		owner := m.actors[at.rank]
		for _, x := range append([]access{c.write}, c.reads...) {
			if owner.before(x) || late != nil && (x.rank > late.Rank || x.rank == late.Rank && x.op >= late.Op) {
				continue
			}
			late = m.plans[x.rank].fault(x.op, at.round, "uses %s, whose owner may have returned: the owner does not wait for it", at)
		}
	}
	if late != nil {
		return late
	}
	for r, p := range m.plans {
		if !p.hasRecv(r) {
			continue
		}
		for round := range m.cfg.Rounds {
			for part := range p.RecvParts {
				if err := m.checkResult(p, part, round); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *machine) checkResult(p *Plan, part, round int) error {
	rank := p.Rank
	at := m.shared(place{space: Recv, rank: rank, chunk: part, round: round})
	c := m.cell(at)
	op := c.write.op
	if !c.written {
		return p.fault(-1, round, "part %d of its receive buffer was never written", part)
	}
	v := &c.val
	if op >= 0 {
		p = m.plans[c.write.rank] // blame who wrote it
	}
	if v.round != round {
		return p.fault(op, round, "%s holds %s", at, v)
	}
	if !p.Coll.Reduces() {
		from, of := p.origin(rank, part)
		want := input(m.n, from, of, round)
		if v.form != raw || v.part != of || v.shape != want.shape {
			return p.fault(op, round, "%s holds %s, wants %s", at, v, &want)
		}
		return nil
	}
	of := part
	if p.Coll == ReduceScatter {
		of = rank
	}
	if v.form != final || v.part != of || v.count() != m.n {
		return p.fault(op, round, "%s holds %s, wants final results of part %d from all ranks", at, v, of)
	}
	if p.Coll == AllReduce {
		first := m.cell(m.shared(place{space: Recv, chunk: part, round: round}))
		if first.written && first.val.shape != v.shape {
			return p.fault(op, round, "%s is folded in another order than at rank 0, so bits may differ", at)
		}
	}
	return nil
}
