package plan

import "fmt"

// Fault is what is wrong with a plan: on which rank, at which op (-1: the plan as a whole), in which round.
type Fault struct {
	Coll            Coll
	Method          string
	NRanks          int
	Rank, Op, Round int
	Reason          string
}

func (f *Fault) Error() string {
	where := fmt.Sprintf("rank %d", f.Rank)
	if f.Op >= 0 {
		where += fmt.Sprintf(" op %d", f.Op)
	}
	if f.Round > 0 {
		where += fmt.Sprintf(" round %d", f.Round)
	}
	return fmt.Sprintf("plan %s method %q of %d ranks: %s: %s", f.Coll, f.Method, f.NRanks, where, f.Reason)
}

func (p *Plan) fault(op, round int, format string, args ...any) *Fault {
	return &Fault{Coll: p.Coll, Method: p.Method, NRanks: p.NRanks, Rank: p.Rank, Op: op, Round: round, Reason: fmt.Sprintf(format, args...)}
}

// Check verifies the form of one rank's plan, without looking at others: what is named exists, loops are closed
// and do not nest, eager plans keep to eager rules. It returns a *Fault.
func (p *Plan) Check() error {
	if p.Coll >= NumColls {
		return p.fault(-1, 0, "no such collective")
	}
	if p.NRanks < 1 || p.Rank < 0 || p.Rank >= p.NRanks || p.Root < 0 || p.Root >= p.NRanks {
		return p.fault(-1, 0, "rank %d or root %d is not one of %d ranks", p.Rank, p.Root, p.NRanks)
	}
	if p.SendParts < 1 || p.RecvParts < 1 || p.Steps < 0 {
		return p.fault(-1, 0, "send parts %d, receive parts %d, steps %d", p.SendParts, p.RecvParts, p.Steps)
	}
	for k, e := range p.Edges {
		if e.Peer < 0 || e.Peer >= p.NRanks || e.Slots < 1 || e.Ins < 1 || e.Index < 0 || e.Index >= e.Ins {
			return p.fault(-1, 0, "edge %d is malformed: %+v", k, e)
		}
	}
	eager := p.Eager()
	if eager && len(p.Edges) > 0 {
		return p.fault(-1, 0, "an eager plan has edges")
	}
	loop := -1
	for k := range p.Ops {
		op := &p.Ops[k]
		if op.When > RecvStaged || eager && op.When != Always {
			return p.fault(k, 0, "an op of an eager plan may not depend on reach, nor any op on condition %d", op.When)
		}
		if f := p.checkOp(k, op, eager); f != nil {
			return f
		}
		switch op.Kind {
		case KindLoop:
			if loop >= 0 {
				return p.fault(k, 0, "loops nest")
			}
			loop = k
		case KindEnd:
			if loop < 0 {
				return p.fault(k, 0, "an end without a loop")
			}
			loop = -1
		}
		if loop >= 0 && op.When != p.Ops[loop].When || op.Kind == KindEnd && loop >= 0 {
			return p.fault(k, 0, "an op in a loop has another condition than the loop")
		}
	}
	if loop >= 0 {
		return p.fault(loop, 0, "a loop without an end")
	}
	return nil
}

func (p *Plan) checkOp(k int, op *Op, eager bool) *Fault {
	switch op.Kind {
	case KindReduce:
		return p.checkReduce(k, op, eager)
	case KindPut, KindGet:
		return p.fault(k, 0, "put and get are not supported: there is no peer that cannot be loaded and stored")
	case KindSignal, KindWait:
		if op.Sync == SyncStep {
			if op.Step < 1 || op.Step > p.Steps {
				return p.fault(k, 0, "step %d is not in 1 … %d", op.Step, p.Steps)
			}
			return nil
		}
		if op.Sync > SyncCredit || op.Edge < 0 || op.Edge >= len(p.Edges) {
			return p.fault(k, 0, "no such edge: %d", op.Edge)
		}
		// The sender signals data and waits for credit.
		if out := (op.Sync == SyncData) == (op.Kind == KindSignal); out != p.Edges[op.Edge].Out {
			return p.fault(k, 0, "edge %d has the other direction", op.Edge)
		}
	case KindLoop:
		if op.N < 1 {
			return p.fault(k, 0, "a loop runs %d times", op.N)
		}
	case KindEnd:
	default:
		return p.fault(k, 0, "no such kind of op: %d", op.Kind)
	}
	return nil
}

func (p *Plan) checkReduce(k int, op *Op, eager bool) *Fault {
	if len(op.Src) == 0 || len(op.Dst) == 0 {
		return p.fault(k, 0, "no source or no destination")
	}
	if !op.Fold && (len(op.Src) != 1 || op.Src[0].Count != 1) {
		return p.fault(k, 0, "a copy has several sources")
	}
	if op.Fold && !p.Coll.Reduces() {
		return p.fault(k, 0, "%s has no reduction operator", p.Coll)
	}
	for side, refs := range [2][]Ref{op.Src, op.Dst} {
		for _, r := range refs {
			if r.Space >= NumSpaces || r.Count < 1 || r.Rank.Mod < 0 || r.Chunk.Mod < 0 {
				return p.fault(k, 0, "malformed reference %+v", r)
			}
			if r.Space == Slot && (r.Edge < 0 || r.Edge >= len(p.Edges) || p.Edges[r.Edge].Out != (side == 1)) {
				return p.fault(k, 0, "no edge %d in that direction", r.Edge)
			}
			if r.Space == Slot && (r.Count != 1 || r.Rank != Affine{}) {
				return p.fault(k, 0, "a slot has no rank and no set")
			}
			if r.Partial && r.Space != Slot {
				return p.fault(k, 0, "partial sums in %s", r.Space)
			}
		}
	}
	return nil
}
