package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gccl/gccl/algo/plan"
)

// Call is one collective of all ranks. Send and Recv are the ranks' buffers; where both share memory the call is in
// place. Buffers that a rank does not have are nil.
type Call struct {
	Count      int
	Type       DType
	Op         RedOp
	Scalar     []float64 // PreMulSum: the factor of each rank
	Send, Recv [][]byte
	View       plan.View
	Piece      int    // elements of a piece; 0 is everything in one round
	Seed       uint64 // 0 runs ranks in turns, else in an order made from the seed
}

// channel counts the signals of an edge.
type channel struct{ data, credit int }

// rank is one rank while it runs.
type rank struct {
	p     *plan.Plan
	cur   *plan.Cursor
	mem   memory
	edges []*channel
	step  int // its step word
}

type world struct {
	ranks []*rank
	view  plan.View
	geo   geometry
	arith arith
}

// Run executes the plans of all ranks. An error names the rank and the op, a deadlock every rank's wait.
func Run(n int, source plan.Source, c Call) error {
	w, err := newWorld(n, source, c)
	if err != nil {
		return err
	}
	if c.Seed == 0 {
		return w.inTurns()
	}
	return w.shuffled(rand.New(rand.NewPCG(c.Seed, uint64(n))))
}

func newWorld(n int, source plan.Source, c Call) (*world, error) {
	if c.Type < 0 || c.Type >= NumDTypes || c.Op < 0 || c.Op >= NumRedOps || c.Count < 0 || c.Piece < 0 {
		return nil, fmt.Errorf("simulate: %s, %s, count %d, piece %d", c.Type, c.Op, c.Count, c.Piece)
	}
	if len(c.Send) != n || len(c.Recv) != n || c.Op == PreMulSum && len(c.Scalar) != n {
		return nil, fmt.Errorf("simulate: %d send buffers, %d receive buffers, %d scalars for %d ranks", len(c.Send), len(c.Recv), len(c.Scalar), n)
	}
	w := &world{view: c.View, arith: arith{t: c.Type, op: c.Op, n: n}}
	for _, v := range c.Scalar {
		w.arith.scalar = append(w.arith.scalar, scalarOf(c.Type, v))
	}
	channels := map[[2]int]*channel{}
	for r := range n {
		p, err := source(r)
		if err != nil {
			return nil, err
		}
		if err := p.Check(); err != nil {
			return nil, err
		}
		if r == 0 {
			w.geo = geometry{count: c.Count, piece: c.Piece, split: p.Split, elem: c.Type.Bytes()}
			if c.Piece == 0 || p.Eager() {
				w.geo.piece = max(1, c.Count)
			}
		}
		// The longest part decides: with Split that is part 0 of either buffer.
		rounds := w.geo.rounds(min(p.SendParts, p.RecvParts))
		k := &rank{p: p, cur: plan.NewCursor(p, c.View, rounds)}
		k.mem = memory{send: c.Send[r], recv: c.Recv[r], stage: map[int]region{}, eager: map[int]region{}, slots: map[[2]int]region{}}
		for _, e := range p.Edges {
			at := [2]int{r, e.Index}
			if e.Out {
				at[0] = e.Peer
			}
			if channels[at] == nil {
				channels[at] = &channel{}
			}
			k.edges = append(k.edges, channels[at])
		}
		w.ranks = append(w.ranks, k)
	}
	return w, nil
}

// inTurns lets every rank run until it waits, one after the other.
func (w *world) inTurns() error {
	for {
		moved, left := false, false
		for _, r := range w.ranks {
			for !r.cur.Done() {
				wait, err := w.do(r)
				if err != nil {
					return err
				}
				if wait != "" {
					left = true
					break
				}
				moved = true
			}
		}
		if !left {
			return nil
		}
		if !moved {
			return w.deadlock()
		}
	}
}

// shuffled runs one op of one rank at a time, any that can.
func (w *world) shuffled(rng *rand.Rand) error {
	order := rng.Perm(len(w.ranks))
	for len(order) > 0 {
		moved := false
		rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		for k := 0; k < len(order); k++ {
			r := w.ranks[order[k]]
			if r.cur.Done() {
				order = append(order[:k], order[k+1:]...)
				moved = true
				break
			}
			wait, err := w.do(r)
			if err != nil {
				return err
			}
			if wait == "" {
				moved = true
				break
			}
		}
		if !moved {
			return w.deadlock()
		}
	}
	return nil
}

func (w *world) deadlock() error {
	var waits []string
	for k, r := range w.ranks {
		if r.cur.Done() {
			continue
		}
		wait, err := w.do(r)
		if err != nil {
			return err
		}
		_, index, _ := r.cur.Next()
		waits = append(waits, fmt.Sprintf("rank %d op %d waits for %s", k, index, wait))
	}
	return fmt.Errorf("simulate %s method %q: deadlock: %s", w.ranks[0].p.Coll, w.ranks[0].p.Method, strings.Join(waits, "; "))
}

// do runs one op, or says what it waits for.
func (w *world) do(r *rank) (wait string, err error) {
	op, index, i := r.cur.Next()
	switch {
	case op.Kind == plan.KindReduce:
		if err := w.reduce(r, op, i); err != nil {
			return "", fmt.Errorf("simulate %s method %q: rank %d op %d round %d: %w", r.p.Coll, r.p.Method, r.p.Rank, index, r.cur.Round(), err)
		}
	case op.Kind == plan.KindSignal:
		switch op.Sync {
		case plan.SyncStep:
			r.step = r.cur.Round()*r.p.Steps + op.Step
		case plan.SyncData:
			r.edges[op.Edge].data++
		case plan.SyncCredit:
			r.edges[op.Edge].credit++
		}
	default:
		wait = w.blocked(r, op, i)
	}
	if wait == "" {
		r.cur.Step()
	}
	return wait, nil
}

// blocked says what a wait still waits for.
func (w *world) blocked(r *rank, op *plan.Op, i int) string {
	switch op.Sync {
	case plan.SyncData:
		if ch := r.edges[op.Edge]; ch.data <= ch.credit {
			return fmt.Sprintf("data %d from rank %d", ch.credit+1, r.p.Edges[op.Edge].Peer)
		}
		return ""
	case plan.SyncCredit:
		e := r.p.Edges[op.Edge]
		if ch := r.edges[op.Edge]; ch.data+1-e.Slots > ch.credit {
			return fmt.Sprintf("credit %d from rank %d", ch.data+1-e.Slots, e.Peer)
		}
		return ""
	}
	step := r.cur.Round()*r.p.Steps + op.Step
	for q, peer := range w.ranks {
		if q != r.p.Rank && (op.Peers.All || q == op.Peers.Rank.At(i, 0)) && peer.step < step {
			return fmt.Sprintf("step %d of rank %d, which is at %d", step, q, peer.step)
		}
	}
	return ""
}
