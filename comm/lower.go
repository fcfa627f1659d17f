package comm

import (
	"encoding/binary"
	"math"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/internal/xerr"
)

// lowerPlan writes a plan in the format of device/layout/lowered.h.
func lowerPlan(p *plan.Plan) ([]byte, error) {
	const maxRefs = 4
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, xerr.New(xerr.Internal, "lower", format, args...)
	}
	needs, eager := byte(0), byte(0)
	ops := []byte{}
	le := binary.LittleEndian
	aff := func(a plan.Affine) {
		for _, v := range []int{a.Base, a.I, a.J, a.Mod} {
			ops = le.AppendUint32(ops, uint32(int32(v)))
		}
	}
	refs := func(rs []plan.Ref) {
		for _, r := range rs {
			part := byte(0)
			if r.Partial {
				part = 1
			}
			ops = append(ops, byte(r.Space), part)
			ops = le.AppendUint16(ops, uint16(r.Edge))
			ops = le.AppendUint32(ops, uint32(r.Count))
			aff(r.Rank)
			aff(r.Chunk)
		}
		ops = append(ops, make([]byte, (maxRefs-len(rs))*40)...)
	}
	var open []int
	jump := make([]int, len(p.Ops))
	for i, op := range p.Ops {
		switch op.Kind {
		case plan.KindLoop:
			open = append(open, i)
		case plan.KindEnd:
			if len(open) == 0 {
				return bad("end without loop")
			}
			l := open[len(open)-1]
			open = open[:len(open)-1]
			jump[l], jump[i] = i, l
		}
	}
	for i, op := range p.Ops {
		if len(op.Src) > maxRefs || len(op.Dst) > maxRefs || op.N > math.MaxInt32 {
			return bad("op %d does not fit", i)
		}
		switch op.When {
		case plan.SendStaged:
			needs |= 1
		case plan.RecvStaged:
			needs |= 2
		}
		flags := byte(0)
		if op.Peers.All {
			flags |= 1
		}
		if op.Fold {
			flags |= 2
		}
		if op.Final {
			flags |= 4
		}
		ops = append(ops, byte(op.Kind), byte(op.When), byte(op.Sync), flags, byte(len(op.Src)), byte(len(op.Dst)))
		ops = le.AppendUint16(ops, uint16(op.Edge))
		ops = le.AppendUint32(ops, uint32(op.Step))
		ops = le.AppendUint32(ops, uint32(op.N))
		ops = le.AppendUint32(ops, uint32(jump[i]))
		ops = le.AppendUint32(ops, 0)
		aff(op.Peers.Rank)
		refs(op.Src)
		refs(op.Dst)
	}
	for _, e := range p.Edges {
		out := byte(0)
		if e.Out {
			out = 1
		}
		ops = le.AppendUint32(ops, uint32(int32(e.Peer)))
		ops = le.AppendUint16(ops, uint16(e.Slots))
		ops = append(ops, out, 0)
		ops = le.AppendUint32(ops, uint32(e.Index))
		ops = le.AppendUint32(ops, uint32(e.Ins))
	}
	if p.Eager() {
		eager = 1
	}
	split := byte(0)
	if p.Split {
		split = 1
	}
	var b []byte
	b = le.AppendUint32(b, 0x4c50434c)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, uint32(80+len(ops)))
	b = append(b, byte(p.Coll), split, eager, needs)
	for _, v := range []int{p.NRanks, p.Rank, p.Root, p.SendParts, p.RecvParts, p.Steps, len(p.Ops), len(p.Edges), 0} {
		b = le.AppendUint32(b, uint32(int32(v)))
	}
	var name [28]byte
	copy(name[:27], p.Method)
	b = append(b, name[:]...)
	return append(b, ops...), nil
}
