// Package lower owns the way from a plan to the lowered format, and back. It must not know who runs it.
package lower

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/device/layout"
)

// Error says why a plan has no lowered form, or a block is none. Op is -1 where it is not about one op.
type Error struct {
	Coll         plan.Coll
	Method       string
	NRanks, Rank int
	Op           int
	Reason       string
}

func (e *Error) Error() string {
	at := ""
	if e.Op >= 0 {
		at = fmt.Sprintf(" op %d", e.Op)
	}
	return fmt.Sprintf("lower plan %s method %q of %d ranks: rank %d%s: %s", e.Coll, e.Method, e.NRanks, e.Rank, at, e.Reason)
}

// Size is the size in bytes of a plan's block.
func Size(p *plan.Plan) int {
	return layout.LoweredSize + len(p.Ops)*layout.OpSize + len(p.Edges)*layout.EdgeSize
}

// Lower makes the block of a plan.
func Lower(p *plan.Plan) ([]byte, error) { return appendPlan(make([]byte, 0, Size(p)), p) }

// Into writes the block of a plan to memory of the caller, of at least Size bytes, and returns its size. On error
// nothing is written.
func Into(dst []byte, p *plan.Plan) (int, error) {
	block, err := Lower(p)
	if err != nil {
		return 0, err
	}
	if len(dst) < len(block) {
		l := lowerer{p: p}
		return 0, l.fail(-1, "the block has %d bytes, the place for it %d", len(block), len(dst))
	}
	return copy(dst, block), nil
}

// lowerer keeps the first thing that does not fit.
type lowerer struct {
	p   *plan.Plan
	op  int
	err error
}

func (l *lowerer) fail(op int, format string, args ...any) error {
	if l.err == nil {
		l.err = &Error{Coll: l.p.Coll, Method: l.p.Method, NRanks: l.p.NRanks, Rank: l.p.Rank, Op: op, Reason: fmt.Sprintf(format, args...)}
	}
	return l.err
}

func (l *lowerer) i32(what string, v int) int32 {
	if v < math.MinInt32 || v > math.MaxInt32 {
		_ = l.fail(l.op, "%s %d does not fit in 32 bits", what, v)
	}
	return int32(v)
}

func (l *lowerer) u32(what string, v int) uint32 {
	if v < 0 || v > math.MaxInt32 {
		_ = l.fail(l.op, "%s %d is not in 0 … 2^31-1", what, v)
	}
	return uint32(v)
}

func (l *lowerer) u16(what string, v int) uint16 {
	if v < 0 || v > math.MaxUint16 {
		_ = l.fail(l.op, "%s %d is not in 0 … 65535", what, v)
	}
	return uint16(v)
}

func flag(on bool) uint8 {
	if on {
		return 1
	}
	return 0
}

func appendPlan(b []byte, p *plan.Plan) ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	l := &lowerer{p: p, op: -1}
	if len(p.Method) >= layout.MethodBytes {
		return nil, l.fail(-1, "the name of the method is longer than %d bytes", layout.MethodBytes-1)
	}
	head := layout.Lowered{
		Magic: layout.LoweredMagic, Version: layout.LoweredVersion, Size: l.u32("size", Size(p)),
		Coll: uint8(p.Coll), Split: flag(p.Split), Eager: flag(p.Eager()), Needs: needs(p),
		NRanks: l.i32("number of ranks", p.NRanks), Rank: l.i32("rank", p.Rank), Root: l.i32("root", p.Root),
		SendParts: l.u32("send parts", p.SendParts), RecvParts: l.u32("receive parts", p.RecvParts), Steps: l.u32("steps", p.Steps),
		Places: l.u32("slot places", p.Places),
		NOps:   l.u32("number of ops", len(p.Ops)), NEdges: uint32(l.u16("number of edges", len(p.Edges))),
	}
	copy(head.Method[:], p.Method)
	b = l.put(b, &head)
	jumps := jumps(p)
	for k := range p.Ops {
		l.op = k
		op := l.lowerOp(&p.Ops[k])
		op.Jump = jumps[k]
		b = l.put(b, &op)
	}
	l.op = -1
	if len(p.Edges) > 2*layout.MaxEdges {
		_ = l.fail(-1, "%d edges, an executor holds %d", len(p.Edges), 2*layout.MaxEdges)
	}
	for _, e := range p.Edges {
		if e.Index >= layout.MaxEdges {
			_ = l.fail(-1, "edge number %d at rank %d, an executor holds %d", e.Index, e.Peer, layout.MaxEdges)
		}
		b = l.put(b, &layout.Edge{
			Peer: l.i32("peer", e.Peer), Slots: l.u16("number of slots", e.Slots), Out: flag(e.Out),
			Index: l.u32("edge index", e.Index), Place: l.u32("slot place", e.Place),
		})
	}
	if l.err != nil {
		return nil, l.err
	}
	return b, nil
}

// needs says what peers do with this rank's buffers: read the one, write the other.
func needs(p *plan.Plan) (bits uint8) {
	for _, op := range p.Ops {
		switch op.When {
		case plan.SendStaged:
			bits |= layout.NeedsSend
		case plan.RecvStaged:
			bits |= layout.NeedsRecv
		}
	}
	return bits
}

// put appends a structure as it is in memory: none of them has padding.
func (l *lowerer) put(b []byte, v any) []byte {
	out, err := binary.Append(b, binary.NativeEndian, v)
	if err != nil {
		_ = l.fail(l.op, "%v", err)
	}
	return out
}

// jumps pairs loops with their ends.
func jumps(p *plan.Plan) []uint32 {
	to := make([]uint32, len(p.Ops))
	loop := 0
	for k := range p.Ops {
		switch p.Ops[k].Kind {
		case plan.KindLoop:
			loop = k
		case plan.KindEnd:
			to[loop], to[k] = uint32(k), uint32(loop)
		}
	}
	return to
}

func (l *lowerer) lowerOp(op *plan.Op) layout.Op {
	out := layout.Op{
		Kind: uint8(op.Kind), When: uint8(op.When), Sync: uint8(op.Sync),
		Edge: l.u16("edge", op.Edge), Step: l.u32("step", op.Step), N: l.u32("trip count", op.N),
		Peer: l.affine(op.Peers.Rank),
	}
	if op.Peers.All {
		out.Flags |= layout.FlagAllPeers
	}
	if op.Fold {
		out.Flags |= layout.FlagFold
	}
	if op.Final {
		out.Flags |= layout.FlagFinal
	}
	out.NSrc = l.refs("sources", &out.Src, op.Src)
	out.NDst = l.refs("destinations", &out.Dst, op.Dst)
	return out
}

func (l *lowerer) refs(what string, to *[layout.MaxRefs]layout.Ref, refs []plan.Ref) uint8 {
	if len(refs) > layout.MaxRefs {
		_ = l.fail(l.op, "%d %s, at most %d fit", len(refs), what, layout.MaxRefs)
		return 0
	}
	for k, r := range refs {
		to[k] = layout.Ref{
			Space: uint8(r.Space), Partial: flag(r.Partial), Edge: l.u16("edge", r.Edge), Count: l.u32("count", r.Count),
			Rank: l.affine(r.Rank), Chunk: l.affine(r.Chunk),
		}
	}
	return uint8(len(refs))
}

func (l *lowerer) affine(a plan.Affine) layout.Affine {
	return layout.Affine{Base: l.i32("base", a.Base), I: l.i32("factor", a.I), J: l.i32("factor", a.J), Mod: l.i32("modulus", a.Mod)}
}

// method cuts the name out of its field.
func method(field [layout.MethodBytes]byte) string {
	name, _, _ := bytes.Cut(field[:], []byte{0})
	return string(name)
}
