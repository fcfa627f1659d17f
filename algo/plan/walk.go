package plan

// View says which user buffers of which ranks their peers can load and store. Nil means all. It is known when a
// plan runs, not when it is made: a plan must be right for every view.
type View struct{ Send, Recv []bool }

// SendReachable says whether peers can read a rank's send buffer.
func (v View) SendReachable(rank int) bool { return v.Send == nil || v.Send[rank] }

// RecvReachable says whether peers can write a rank's receive buffer.
func (v View) RecvReachable(rank int) bool { return v.Recv == nil || v.Recv[rank] }

// All says whether everything is reachable, so that one round is enough where a plan has no slots.
func (v View) All() bool {
	for _, side := range [2][]bool{v.Send, v.Recv} {
		for _, ok := range side {
			if !ok {
				return false
			}
		}
	}
	return true
}

// Runs says whether an op runs on a rank.
func (v View) Runs(w When, rank int) bool {
	switch w {
	case SendStaged:
		return !v.SendReachable(rank)
	case RecvStaged:
		return !v.RecvReachable(rank)
	}
	return true
}

// ReadAt says where rank me reads element j of a Ref: a peer's send buffer out of reach is read from its Stage.
// Slot has no rank and no chunk.
func (v View) ReadAt(r *Ref, me, i, j int) (s Space, rank, chunk int) {
	rank, chunk = r.Rank.At(i, j), r.Chunk.At(i, j)
	if r.Space == Send && rank != me && rank >= 0 && v.Send != nil && rank < len(v.Send) && !v.Send[rank] {
		return Stage, rank, chunk
	}
	return r.Space, rank, chunk
}

// WriteAt says where rank me stores to element j of a Ref: for a peer's receive buffer out of reach it is the
// own Out.
func (v View) WriteAt(r *Ref, me, i, j int) (s Space, rank, chunk int) {
	rank, chunk = r.Rank.At(i, j), r.Chunk.At(i, j)
	if r.Space == Recv && rank != me && rank >= 0 && v.Recv != nil && rank < len(v.Recv) && !v.Recv[rank] {
		return Out, me, 0
	}
	return r.Space, rank, chunk
}

// Cursor goes through the ops of a plan in the order of their execution, loops unrolled, for a number of rounds.
//
// Preconditions: the plan passes Check.
type Cursor struct {
	p             *Plan
	view          View
	round, rounds int
	pc, i         int
	loop          int // index of the loop that pc is in, or -1
}

// NewCursor stands before the first op.
func NewCursor(p *Plan, view View, rounds int) *Cursor {
	return &Cursor{p: p, view: view, rounds: rounds, loop: -1}
}

// Round is the present round.
func (c *Cursor) Round() int { return c.round }

// Done says whether all rounds have ended.
func (c *Cursor) Done() bool { c.settle(); return c.round == c.rounds }

// Next is the op to run now, its index and the loop variable. There is one until Done.
func (c *Cursor) Next() (op *Op, index, i int) {
	c.settle()
	return &c.p.Ops[c.pc], c.pc, c.i
}

// Step goes past the present op.
func (c *Cursor) Step() { c.pc++ }

// settle moves over what is not executed: loop ends, ops of other ranks' kind, ends of rounds.
func (c *Cursor) settle() {
	for c.round < c.rounds {
		if c.pc == len(c.p.Ops) {
			c.pc, c.round = 0, c.round+1
			continue
		}
		op := &c.p.Ops[c.pc]
		switch {
		case !c.view.Runs(op.When, c.p.Rank):
			c.pc++
		case op.Kind == KindLoop:
			c.loop, c.i = c.pc, 0
			c.pc++
		case op.Kind == KindEnd:
			c.i++
			if c.i < c.p.Ops[c.loop].N {
				c.pc = c.loop + 1
			} else {
				c.loop, c.i = -1, 0
				c.pc++
			}
		default:
			return
		}
	}
}
