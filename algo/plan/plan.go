// Package plan owns the plan: what one rank does in one collective, as data.
//
// A plan is a pure function of (collective, method, nranks, rank, root). It speaks of ranks, chunks and
// scratch, never of pointers, byte counts, streams or devices: those arrive at launch, so that one plan
// serves every call of its kind. It must not know a device, a network or cgo.
//
// # Geometry
//
// A buffer has parts: SendParts and RecvParts of them, one or NRanks (or a method's own number). With Split
// the count of the call is divided over the parts (all-reduce, broadcast, reduce: part p holds elements
// [p·ceil(count/parts), …), the last ones may be short or empty); without it each part holds count elements
// (all-gather, reduce-scatter, all-to-all, gather, scatter). A chunk expression names a part.
//
// Where memory must pass through scratch, the executor cuts each part into pieces and runs Ops once per
// piece: a round. Everything in Ops is about the present round's piece of a part.
//
// # Synchronisation
//
// Steps are one monotonic word per rank that all ranks of the communicator may read: Signal{Step: k} says
// "I have reached step k of this round", Wait{Step: k} on a rank waits for it. Edges are point-to-point: an edge
// has slots at its receiver, a count of data signals and a count of credits; a sender waits for a credit
// before it reuses a slot.
package plan

// Coll is a collective operation. Values are part of the lowered format (device/layout/lowered.h).
type Coll uint8

const (
	AllReduce Coll = iota
	ReduceScatter
	AllGather
	Broadcast
	Reduce
	AllToAll
	Gather
	Scatter
	// SendRecv is one message, planned between its two ends alone: rank Root of two sends, the other
	// receives. With one rank it is a message to oneself.
	SendRecv
	NumColls
)

// Reduces says whether the collective applies a reduction operator.
func (c Coll) Reduces() bool { return c == AllReduce || c == ReduceScatter || c == Reduce }

// Rooted says whether the collective has a root.
func (c Coll) Rooted() bool {
	return c == Broadcast || c == Reduce || c == Gather || c == Scatter
}

// Affine is Base + I·i + J·j, reduced into [0, Mod) when Mod > 0. i is the variable of the enclosing Loop (0
// outside one), j the index inside a Ref's set.
type Affine struct{ Base, I, J, Mod int }

// Const is the expression that is always v.
func Const(v int) Affine { return Affine{Base: v} }

// At evaluates the expression.
func (a Affine) At(i, j int) int {
	v := a.Base + a.I*i + a.J*j
	if a.Mod > 0 {
		v %= a.Mod
		if v < 0 {
			v += a.Mod
		}
	}
	return v
}

// Space says which memory a Ref names.
type Space uint8

const (
	// Send is the user's send buffer of a rank. Read by a peer it resolves to the buffer itself where that
	// is reachable, and to the owner's Stage otherwise (the operation record says which).
	Send Space = iota
	// Recv is the user's receive buffer of a rank. As a destination at a peer it resolves to the buffer
	// where that is reachable, and to the writer's own Out otherwise; the receiver then collects it.
	Recv
	// Stage is a rank's scratch for pieces of its send buffer, one per part.
	Stage
	// Out is a rank's scratch for the one piece it has computed for others in this round.
	Out
	// Eager is a rank's small-message slot of this operation; it holds a whole send buffer and is not cut
	// into rounds. It may be written once per operation, before step 1.
	Eager
	// Slot is a slot of an edge: on an out-edge the next slot to fill at the receiver, on an in-edge the
	// oldest unread slot here. The slot advances with the edge's Signal (out) or credit Signal (in).
	Slot
	NumSpaces
)

// Ref names one place, or a set of Count places (j = 0 … Count-1).
type Ref struct {
	Space   Space
	Count   int    // size of the set, at least 1
	Rank    Affine // not of Slot
	Chunk   Affine // of Slot: the part that moves through it; of Out: 0
	Edge    int    // index into Plan.Edges, for Slot
	Partial bool   // elements are of the accumulator type (fp32 for 16- and 8-bit floats): partial sums
}

// Kind is the operation of an Op. The list is the whole instruction set.
type Kind uint8

const (
	// KindReduce loads one element from every source, folds them left to right (Fold) and stores the result
	// to every destination. One source without Fold is a copy. A copy onto its own source (in place) stores nothing:
	// peers may be reading it.
	KindReduce Kind = iota
	// KindPut and KindGet move one chunk to or from a peer that cannot be loaded and stored.
	KindPut
	KindGet
	// KindSignal releases; KindWait acquires.
	KindSignal
	KindWait
	// KindLoop repeats the ops up to its KindEnd, i = 0 … N-1. Loops do not nest.
	KindLoop
	KindEnd
	NumKinds
)

// When limits an op to ranks whose buffers are out of their peers' reach. It never depends on the call, only
// on this rank's record, and so is not part of the plan's key.
type When uint8

const (
	Always     When = iota
	SendStaged      // this rank's send buffer cannot be read by its peers
	RecvStaged      // this rank's receive buffer cannot be written by its peers
)

// Sync is what a Signal or Wait is about.
type Sync uint8

const (
	// SyncStep: the rank's step word. A Wait names ranks by Peers.
	SyncStep Sync = iota
	// SyncData: the data count of an edge (signalled by its sender).
	SyncData
	// SyncCredit: the credit count of an edge (signalled by its receiver).
	SyncCredit
)

// Peers is the set of ranks a step Wait is about: all others, or one.
type Peers struct {
	All  bool
	Rank Affine
}

// Op is one operation of a plan.
type Op struct {
	Kind Kind
	When When

	// KindReduce, KindPut, KindGet. The length is that of this round's piece of part Dst[0].Chunk.
	Src, Dst []Ref
	Fold     bool // apply the reduction operator; Send, Stage and Eager refs are scaled by their rank's factor first
	Final    bool // the result is complete: round to the user's type, divide for an integer average

	// KindSignal, KindWait.
	Sync  Sync
	Step  int
	Peers Peers
	Edge  int

	// KindLoop.
	N int
}

// Edge is a directed connection as one of its two ends sees it.
type Edge struct {
	Peer  int
	Out   bool // this rank sends
	Slots int
	// Index is the number of this edge among the receiver's in-edges: it fixes where the slots are, so
	// both ends of an edge carry the same Index.
	Index int
	// Ins is the number of in-edges that the receiver has: its scratch is divided by it.
	Ins int
}

// Plan is what one rank does.
type Plan struct {
	Coll                 Coll
	Method               string
	NRanks, Rank, Root   int
	SendParts, RecvParts int
	Split                bool
	Steps                int // step numbers used in one round: 1 … Steps
	Edges                []Edge
	Ops                  []Op
}

// Eager says whether the plan sends through the Eager space, its own or a peer's, and so has exactly one
// round.
func (p *Plan) Eager() bool {
	for _, op := range p.Ops {
		for _, refs := range [2][]Ref{op.Src, op.Dst} {
			for _, r := range refs {
				if r.Space == Eager {
					return true
				}
			}
		}
	}
	return false
}
