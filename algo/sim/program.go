package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/gccl/gccl/algo/plan"
)

// A program is what a plan does as far as time is concerned: without ranks and chunks, so that ranks that do the same at
// different places have the same program.

// step is one op of a program.
type step struct {
	kind          plan.Kind
	sync          plan.Sync
	edge          int32   // signal or wait of an edge: which; wait for the step of one rank: which of peers, -1 for all
	n             int32   // loop: trip count; step: its number
	user, scratch int32   // references of a data op
	own           int32   // those to slots of a rank's queue to itself
	slots         []int32 // those to slots of edges with others: the edges
}

type program struct {
	steps  []step
	nsteps int // step numbers of a round
}

// port is one end of an edge: where its sync words are.
type port struct {
	peer  int32
	index int32 // of the in-edge at the receiver
	slots int32
	out   bool
}

// compiled is a rank's program and its peers.
type compiled struct {
	prog  int32
	ports []port
	peers []int32 // ranks whose steps it waits for, one by one
}

// compiler collects programs and finds equal ones.
type compiler struct {
	staged  bool // buffers are out of reach: pieces pass through scratch
	cliques *plan.Cliques
	known   map[string]int32
	progs   []*program
	key     []byte
}

// compile reads one rank's plan.
func (c *compiler) compile(p *plan.Plan) (compiled, error) {
	out := compiled{}
	for _, e := range p.Edges {
		out.ports = append(out.ports, port{peer: int32(e.Peer), index: int32(e.Index), slots: int32(e.Slots), out: e.Out})
	}
	prog := program{nsteps: p.Steps}
	loop := 1
	for k := range p.Ops {
		op := &p.Ops[k]
		if op.When != plan.Always && !c.staged {
			continue
		}
		s := step{kind: op.Kind, sync: op.Sync, edge: -1}
		switch op.Kind {
		case plan.KindReduce:
			c.count(p, op, &s)
		case plan.KindSignal, plan.KindWait:
			if op.Sync != plan.SyncStep {
				s.edge = int32(op.Edge)
				break
			}
			s.n = int32(op.Step)
			if op.Kind == plan.KindWait && !op.Peers.All {
				if loop != 1 {
					return out, fmt.Errorf("simulate %s method %q: rank %d op %d: a wait for single ranks in a loop has no time model", p.Coll, p.Method, p.Rank, k)
				}
				s.edge = int32(len(out.peers))
				out.peers = append(out.peers, int32(op.Peers.Rank.At(0, 0)))
			}
		case plan.KindLoop:
			s.n, loop = int32(op.N), op.N
		case plan.KindEnd:
			loop = 1
		default:
			return out, fmt.Errorf("simulate %s method %q: rank %d op %d: %s has no time model", p.Coll, p.Method, p.Rank, k, op.Kind)
		}
		prog.steps = append(prog.steps, s)
	}
	out.prog = c.intern(&prog)
	return out, nil
}

// count finds what an op touches. A set of all ranks has one reference of its own rank. What is loaded costs the same wherever it is;
// what is stored where another rank of the clique has looked costs more, as its cache lines have to come back from there. A slot of a
// rank's queue to itself, and the copy of one in another clique, nobody else looks at.
func (c *compiler) count(p *plan.Plan, op *plan.Op, s *step) {
	for side, refs := range [2][]plan.Ref{op.Src, op.Dst} {
		for k := range refs {
			r := &refs[k]
			n := int32(r.Count)
			own := r.Rank == plan.Const(p.Rank)
			switch {
			case r.Space == plan.Slot:
				peer := p.Edges[r.Edge].Peer
				switch {
				case peer == p.Rank || !c.cliques.Same(p.Rank, peer):
					s.own++
				case side == 0:
					s.user++
				default:
					s.slots = append(s.slots, int32(r.Edge))
				}
			case side == 0:
				s.user += n
			case r.Space != plan.Send && r.Space != plan.Recv:
				s.scratch += n
			case own || !c.staged:
				s.user += n
			default: // all others' by one piece in scratch
				s.user, s.scratch = s.user+1, s.scratch+1
			}
		}
	}
}

// intern gives equal programs one number.
func (c *compiler) intern(p *program) int32 {
	b := binary.AppendVarint(c.key[:0], int64(p.nsteps))
	for _, s := range p.steps {
		b = append(b, byte(s.kind), byte(s.sync))
		for _, v := range [...]int32{s.edge, s.n, s.user, s.scratch, s.own, int32(len(s.slots))} {
			b = binary.AppendVarint(b, int64(v))
		}
		for _, e := range s.slots {
			b = binary.AppendVarint(b, int64(e))
		}
	}
	c.key = b
	if id, ok := c.known[string(b)]; ok {
		return id
	}
	id := int32(len(c.progs))
	c.known[string(b)] = id
	c.progs = append(c.progs, p)
	return id
}

// Short names of what the clock looks at for every op.
const (
	kindData   = plan.KindReduce
	kindSignal = plan.KindSignal
	kindWait   = plan.KindWait
	kindLoop   = plan.KindLoop
	kindEnd    = plan.KindEnd
	syncStep   = plan.SyncStep
	syncData   = plan.SyncData
	syncCredit = plan.SyncCredit
)
