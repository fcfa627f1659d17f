package lower

import (
	"encoding/binary"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/device/layout"
)

// Raise makes the plan of a block again, for tools and tests. The block may be anything: what is not a well-formed
// plan is an error.
func Raise(block []byte) (*plan.Plan, error) {
	var head layout.Lowered
	p := &plan.Plan{}
	l := &lowerer{p: p, op: -1}
	n, err := binary.Decode(block, binary.NativeEndian, &head)
	if err != nil {
		return nil, l.fail(-1, "%d bytes are too short for a block", len(block))
	}
	if head.Magic != layout.LoweredMagic || head.Version != layout.LoweredVersion {
		return nil, l.fail(-1, "magic %#x version %d, want %#x and %d", head.Magic, head.Version, layout.LoweredMagic, layout.LoweredVersion)
	}
	want := uint64(layout.LoweredSize) + uint64(head.NOps)*layout.OpSize + uint64(head.NEdges)*layout.EdgeSize
	if want != uint64(len(block)) || uint64(head.Size) != want {
		return nil, l.fail(-1, "%d ops and %d edges need %d bytes, the block says %d and has %d", head.NOps, head.NEdges, want, head.Size, len(block))
	}
	*p = plan.Plan{
		Coll: plan.Coll(head.Coll), Method: method(head.Method),
		NRanks: int(head.NRanks), Rank: int(head.Rank), Root: int(head.Root),
		SendParts: int(head.SendParts), RecvParts: int(head.RecvParts), Split: head.Split != 0, Steps: int(head.Steps),
	}
	block = block[n:]
	for k := range int(head.NOps) {
		var op layout.Op
		if n, err = binary.Decode(block, binary.NativeEndian, &op); err != nil {
			return nil, l.fail(k, "%v", err)
		}
		block = block[n:]
		if op.NSrc > layout.MaxRefs || op.NDst > layout.MaxRefs {
			return nil, l.fail(k, "%d sources and %d destinations, at most %d fit", op.NSrc, op.NDst, layout.MaxRefs)
		}
		p.Ops = append(p.Ops, raiseOp(&op))
		if (op.Kind == uint8(plan.KindLoop) || op.Kind == uint8(plan.KindEnd)) && op.Jump >= head.NOps {
			return nil, l.fail(k, "jumps to op %d of %d", op.Jump, head.NOps)
		}
	}
	for range int(head.NEdges) {
		var e layout.Edge
		if n, err = binary.Decode(block, binary.NativeEndian, &e); err != nil {
			return nil, l.fail(-1, "%v", err)
		}
		block = block[n:]
		p.Edges = append(p.Edges, plan.Edge{Peer: int(e.Peer), Out: e.Out != 0, Slots: int(e.Slots), Index: int(e.Index), Ins: int(e.Ins)})
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if flag(p.Eager()) != head.Eager {
		return nil, l.fail(-1, "the eager flag is %d", head.Eager)
	}
	return p, nil
}

func raiseOp(op *layout.Op) plan.Op {
	return plan.Op{
		Kind: plan.Kind(op.Kind), When: plan.When(op.When),
		Src: raiseRefs(op.Src[:op.NSrc]), Dst: raiseRefs(op.Dst[:op.NDst]),
		Fold: op.Flags&layout.FlagFold != 0, Final: op.Flags&layout.FlagFinal != 0,
		Sync: plan.Sync(op.Sync), Step: int(op.Step), Edge: int(op.Edge), N: int(op.N),
		Peers: plan.Peers{All: op.Flags&layout.FlagAllPeers != 0, Rank: raiseAffine(op.Peer)},
	}
}

func raiseRefs(refs []layout.Ref) []plan.Ref {
	var out []plan.Ref
	for _, r := range refs {
		out = append(out, plan.Ref{
			Space: plan.Space(r.Space), Count: int(r.Count), Rank: raiseAffine(r.Rank), Chunk: raiseAffine(r.Chunk),
			Edge: int(r.Edge), Partial: r.Partial != 0,
		})
	}
	return out
}

func raiseAffine(a layout.Affine) plan.Affine {
	return plan.Affine{Base: int(a.Base), I: int(a.I), J: int(a.J), Mod: int(a.Mod)}
}
