package planner

import "github.com/gccl/gccl/algo/plan"

// ends is what every planner is told: how many ranks, which one, the root of a rooted collective, and who reaches whom.
type ends struct {
	n, rank, root int
	cliques       *plan.Cliques
}

// start makes a plan without ops. parts are those of the send and of the receive buffer.
func (e ends) start(c plan.Coll, method string, sendParts, recvParts int) *plan.Plan {
	return &plan.Plan{
		Coll: c, Method: method, NRanks: e.n, Rank: e.rank, Root: e.root,
		SendParts: sendParts, RecvParts: recvParts,
		Split: c == plan.AllReduce || c == plan.Broadcast || c == plan.Reduce,
	}
}

// mod is a non-negative remainder.
func mod(a, n int) int { return ((a % n) + n) % n }

// from is start, start+1, … over the ranks as the loop variable grows.
func (e ends) from(start int) plan.Affine {
	return plan.Affine{Base: mod(start, e.n), I: 1, Mod: e.n}
}

// down is start, start-1, … over the ranks as the loop variable grows.
func (e ends) down(start int) plan.Affine {
	return plan.Affine{Base: mod(start, e.n), I: -1, Mod: e.n}
}

// span is first, first+1, … as the loop variable grows.
func span(first int) plan.Affine { return plan.Affine{Base: first, I: 1} }

// at names one chunk of one rank.
func at(s plan.Space, rank, chunk plan.Affine) plan.Ref {
	return plan.Ref{Space: s, Count: 1, Rank: rank, Chunk: chunk}
}

// mine names one chunk of this rank.
func (e ends) mine(s plan.Space, chunk plan.Affine) plan.Ref {
	return at(s, plan.Const(e.rank), chunk)
}

// each names the same chunk at all ranks, in rank order.
func (e ends) each(s plan.Space, chunk int) plan.Ref {
	return plan.Ref{Space: s, Count: e.n, Rank: plan.Affine{J: 1}, Chunk: plan.Const(chunk)}
}

// move copies one place to another.
func move(src, dst plan.Ref) plan.Op {
	return plan.Op{Kind: plan.KindReduce, Src: []plan.Ref{src}, Dst: []plan.Ref{dst}}
}

// signal says that this rank has reached a step.
func signal(step int) plan.Op {
	return plan.Op{Kind: plan.KindSignal, Sync: plan.SyncStep, Step: step}
}

// waitAll waits until all other ranks have reached a step.
func waitAll(step int) plan.Op {
	return plan.Op{Kind: plan.KindWait, Sync: plan.SyncStep, Step: step, Peers: plan.Peers{All: true}}
}

// waitFor waits until one rank has reached a step.
func waitFor(step, rank int) plan.Op {
	return plan.Op{Kind: plan.KindWait, Sync: plan.SyncStep, Step: step, Peers: plan.Peers{Rank: plan.Const(rank)}}
}

// loop repeats body n times; no times is nothing.
func loop(n int, body ...plan.Op) []plan.Op {
	if n <= 0 {
		return nil
	}
	ops := make([]plan.Op, 0, len(body)+2)
	ops = append(ops, plan.Op{Kind: plan.KindLoop, N: n})
	ops = append(ops, body...)
	return append(ops, plan.Op{Kind: plan.KindEnd})
}

// when limits every op that moves data to ranks whose buffer is out of reach.
func when(w plan.When, ops []plan.Op) []plan.Op {
	for k := range ops {
		ops[k].When = w
	}
	return ops
}

// join puts pieces of a plan behind the first one, which it takes over.
func join(ops []plan.Op, pieces ...[]plan.Op) []plan.Op {
	for _, p := range pieces {
		ops = append(ops, p...)
	}
	return ops
}

// do is a piece of a plan.
func do(ops ...plan.Op) []plan.Op { return ops }
