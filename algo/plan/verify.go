package plan

import "fmt"

// Config is one situation that a plan must be right in.
type Config struct {
	View    View
	InPlace bool     // NCCL's in-place forms; ignored where a collective has none
	Rounds  int      // at least 1; an eager plan always has one
	Cliques *Cliques // nil: all ranks load and store each other
}

// Source gives every rank's plan.
type Source func(rank int) (*Plan, error)

// Verify runs the plans of all ranks on symbols and proves for one situation:
//
//   - every output chunk gets exactly the right contributions, scaled once and rounded once, and for all-reduce
//     in the same order on all ranks;
//   - every wait has its signal and nothing deadlocks. Waits are on counts that only grow, and no op chooses, so
//     if one order of execution ends then all do;
//   - every read is ordered after the write it needs, every write after the reads and writes before it, by
//     signals and waits alone (vector clocks), so that it holds in every order;
//   - when a rank has finished, its peers have finished with its user buffers;
//   - what a rank loads, stores and reads steps of is in its clique: others are reached by edges alone, or by an eager
//     plan, whose slots travel with the records that are its only step.
//
// Ranks may be in different operations, so scratch must also be safe between operations: the executor sees to
// that. A slot is filled only after the receiver's record of this operation was seen.
//
// It returns a *Fault, or the error of the source.
func Verify(n int, source Source, c Config) error {
	plans, err := load(n, source)
	if err != nil {
		return err
	}
	return newMachine(plans, c).run()
}

// VerifyAll is Verify for every situation that can differ: with and without sharing of buffers, and all views of up
// to viewRanks ranks, a selection of views above.
func VerifyAll(n int, cliques *Cliques, source Source) error {
	plans, err := load(n, source)
	if err != nil {
		return err
	}
	views := []View{{}}
	if touchesPeers(plans) {
		views = Views(n)
	}
	for _, inPlace := range []bool{false, true} {
		if inPlace && !plans[0].Coll.HasInPlace() {
			continue
		}
		for _, v := range views {
			if err := newMachine(plans, Config{View: v, InPlace: inPlace, Rounds: 2, Cliques: cliques}).run(); err != nil {
				return fmt.Errorf("in place %t, send reach %v, recv reach %v: %w", inPlace, v.Send, v.Recv, err)
			}
		}
	}
	return nil
}

// HasInPlace says whether NCCL defines an in-place form of the collective.
func (c Coll) HasInPlace() bool { return c != AllToAll && c != SendRecv }

// viewRanks is the number of ranks up to which every view is tried: 4 to its power.
const viewRanks = 4

// Views lists the views worth trying: all of them for few ranks; for more, everything reachable, nothing, and one
// odd rank out either way.
func Views(n int) []View {
	if n <= viewRanks {
		var views []View
		for bits := range 1 << (2 * n) {
			v := View{Send: make([]bool, n), Recv: make([]bool, n)}
			for r := range n {
				v.Send[r] = bits>>r&1 != 0
				v.Recv[r] = bits>>(n+r)&1 != 0
			}
			views = append(views, v)
		}
		return views
	}
	fill := func(most bool, odd int) View {
		v := View{Send: make([]bool, n), Recv: make([]bool, n)}
		for r := range n {
			v.Send[r] = most != (r == odd)
			v.Recv[r] = v.Send[r]
		}
		return v
	}
	return []View{
		{}, fill(false, -1), fill(true, 0), fill(true, n-1), fill(false, 1),
		{Send: fill(false, -1).Send}, {Recv: fill(false, -1).Recv},
	}
}

// load gets all plans and checks their form and that they belong together.
func load(n int, source Source) ([]*Plan, error) {
	plans := make([]*Plan, n)
	for r := range n {
		p, err := source(r)
		if err != nil {
			return nil, err
		}
		if err := p.Check(); err != nil {
			return nil, err
		}
		plans[r] = p
		q := plans[0]
		if p.Rank != r || p.NRanks != n {
			return nil, p.fault(-1, 0, "it is the plan of rank %d of %d, not of %d of %d", p.Rank, p.NRanks, r, n)
		}
		if p.Coll != q.Coll || p.Method != q.Method || p.Root != q.Root || p.SendParts != q.SendParts ||
			p.RecvParts != q.RecvParts || p.Split != q.Split || p.Steps != q.Steps || p.Eager() != q.Eager() {
			return nil, p.fault(-1, 0, "it belongs to another operation than rank 0's plan: %s method %q, root %d, parts %d and %d, steps %d, eager %t",
				q.Coll, q.Method, q.Root, q.SendParts, q.RecvParts, q.Steps, q.Eager())
		}
		if n > 1 && (len(p.Edges) > 0) != (len(q.Edges) > 0) {
			return nil, p.fault(-1, 0, "it has %d edges, rank 0's plan %d: they would count different rounds", len(p.Edges), len(q.Edges))
		}
		if err := p.agreesOnRounds(); err != nil {
			return nil, err
		}
	}
	return plans, checkEdges(plans)
}

// agreesOnRounds checks that a plan whose number of rounds depends on the records of all ranks learns them first. With
// edges it follows from the size of a slot, which all know.
func (p *Plan) agreesOnRounds() error {
	if p.Eager() || p.NRanks == 1 || len(p.Edges) > 0 {
		return nil
	}
	for k, op := range p.Ops {
		if op.Kind != KindWait {
			continue
		}
		if op.Sync != SyncStep || op.Step != 1 || !op.Peers.All {
			return p.fault(k, 0, "the first wait is not for step 1 of all ranks, so ranks may not agree on the number of rounds")
		}
		return nil
	}
	return p.fault(-1, 0, "it does not wait for step 1 of all ranks, so ranks may not agree on the number of rounds")
}

// checkEdges checks that both ends of every edge describe the same edge.
func checkEdges(plans []*Plan) error {
	type end struct{ receiver, index int }
	ins, outs := map[end]int{}, map[end]int{}
	for r, p := range plans {
		if p.Places != plans[0].Places {
			return p.fault(-1, 0, "%d slot places, rank %d has %d", p.Places, plans[0].Rank, plans[0].Places)
		}
		for k, e := range p.Edges {
			at, seen := end{r, e.Index}, ins
			if e.Out {
				at, seen = end{e.Peer, e.Index}, outs
			} else {
				for j, o := range p.Edges[:k] {
					if !o.Out && e.Place < o.Place+o.Slots && o.Place < e.Place+e.Slots {
						return p.fault(-1, 0, "edges %d and %d both have slot place %d", j, k, max(e.Place, o.Place))
					}
				}
			}
			if _, twice := seen[at]; twice {
				return p.fault(-1, 0, "edge %d has the place of another edge at rank %d", k, at.receiver)
			}
			seen[at] = k<<32 | r
		}
	}
	for at, where := range ins {
		p, k := plans[at.receiver], where>>32
		in := p.Edges[k]
		o, ok := outs[at]
		if !ok {
			return p.fault(-1, 0, "edge %d from rank %d has no other end", k, in.Peer)
		}
		q := plans[o&(1<<32-1)]
		out := q.Edges[o>>32]
		if q.Rank != in.Peer || out.Slots != in.Slots || out.Place != in.Place {
			return p.fault(-1, 0, "edge %d %+v differs from edge %d of rank %d %+v", k, in, o>>32, q.Rank, out)
		}
	}
	for at, where := range outs {
		if _, ok := ins[at]; !ok {
			p := plans[where&(1<<32-1)]
			return p.fault(-1, 0, "edge %d to rank %d has no other end", where>>32, at.receiver)
		}
	}
	return nil
}

// touchesPeers says whether views make a difference.
func touchesPeers(plans []*Plan) bool {
	for _, p := range plans {
		for _, op := range p.Ops {
			if op.When != Always {
				return true
			}
			for _, refs := range [2][]Ref{op.Src, op.Dst} {
				for _, r := range refs {
					if (r.Space == Send || r.Space == Recv) && r.Rank != Const(p.Rank) {
						return true
					}
				}
			}
		}
	}
	return false
}
