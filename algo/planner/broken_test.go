package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// find is the index of the k-th line of the ops that contains text.
func find(t *testing.T, p *plan.Plan, text string, k int) int {
	t.Helper()
	for n := range p.Ops {
		if strings.Contains(p.Ops[n].String(), text) {
			if k == 0 {
				return n
			}
			k--
		}
	}
	t.Fatalf("no op %q in\n%s", text, p)
	return 0
}

// drop removes the k-th op that contains text.
func drop(text string, k int) func(*testing.T, *plan.Plan) {
	return func(t *testing.T, p *plan.Plan) {
		n := find(t, p, text, k)
		p.Ops = append(p.Ops[:n:n], p.Ops[n+1:]...)
	}
}

// dropLoop removes a loop with its body.
func dropLoop(text string) func(*testing.T, *plan.Plan) {
	return func(t *testing.T, p *plan.Plan) {
		n := find(t, p, text, 0)
		end := n
		for p.Ops[end].Kind != plan.KindEnd {
			end++
		}
		p.Ops = append(p.Ops[:n:n], p.Ops[end+1:]...)
	}
}

// alter changes the k-th op that contains text.
func alter(text string, k int, f func(*plan.Op)) func(*testing.T, *plan.Plan) {
	return func(t *testing.T, p *plan.Plan) { f(&p.Ops[find(t, p, text, k)]) }
}

// swap exchanges an op with the next one.
func swap(text string) func(*testing.T, *plan.Plan) {
	return func(t *testing.T, p *plan.Plan) {
		n := find(t, p, text, 0)
		p.Ops[n], p.Ops[n+1] = p.Ops[n+1], p.Ops[n]
	}
}

// A plan that is broken on one rank in one way must be refused for the right reason.
func TestVerifyRefusesBrokenPlans(t *testing.T) {
	const n, all = 4, -1
	none := plan.View{Send: make([]bool, n), Recv: make([]bool, n)}
	for _, c := range []struct {
		name   string
		coll   plan.Coll
		method string
		rank   int
		view   plan.View
		breaks func(*testing.T, *plan.Plan)
		where  string // rank and op as the error names them
		reason string
	}{
		{"missing wait before reading", plan.AllReduce, planner.Eager, 2, plan.View{}, drop("wait step 1", 0), "rank 2 op 2", "wait is missing"},
		{"no agreement on rounds", plan.AllReduce, planner.Direct, 2, plan.View{}, drop("wait step 1", 0), "rank 2 op 6", "agree on the number of rounds"},
		{"missing end wait", plan.AllReduce, planner.Direct, 2, plan.View{}, drop("wait step 2", 0), "op 5", "owner does not wait"},
		{"read after end", plan.Gather, planner.Direct, 3, plan.View{}, drop("wait step 2", 0), "rank 0 op 3", "owner does not wait"},
		{"stage overwritten while read", plan.Gather, planner.Direct, 3, none, drop("wait step 2", 0), "rank 3 op 0", "wait is missing"},
		{"missing step signal", plan.AllReduce, planner.Direct, 1, plan.View{}, drop("signal step 2", 0), "op 7", "deadlock"},
		{"missing last signal", plan.Broadcast, planner.Direct, 1, plan.View{}, drop("signal step 2", 0), "rank 0 op 5", "deadlock"},
		{"signal that nobody needs", plan.Reduce, planner.Eager, 0, plan.View{}, drop("signal step 1", 0), "rank 0", "signal is missing"},
		{"missing data signal", plan.AllReduce, planner.Ring, 1, plan.View{}, drop("signal data", 0), "rank 2 op", "wrong chunk"},
		{"missing data wait", plan.AllReduce, planner.Ring, 1, plan.View{}, drop("wait data", 0), "rank 1 op", "wait is missing"},
		{"missing credit signal", plan.AllReduce, planner.Ring, 1, plan.View{}, drop("signal credit", 0), "rank 1 op", "wrong chunk"},
		{"slot reused too early", plan.Broadcast, planner.Ring, 1, plan.View{}, drop("wait credit", 0), "rank 1 op", "reused too early"},
		{"credit before the read", plan.Broadcast, planner.Ring, 3, plan.View{}, func(t *testing.T, p *plan.Plan) {
			a, b := find(t, p, "copy", 0), find(t, p, "signal credit", 0)
			p.Ops[a], p.Ops[b] = p.Ops[b], p.Ops[a]
		}, "rank 3 op", "wait is missing"},
		{"last data signal missing", plan.Broadcast, planner.Ring, 0, plan.View{}, alter("loop", 0, func(op *plan.Op) { op.N-- }), "rank 1 op", "with the length of part"},
		{"data signalled before the write", plan.Reduce, planner.Ring, 1, plan.View{}, func(t *testing.T, p *plan.Plan) {
			a, b := find(t, p, "reduce", 0), find(t, p, "signal data", 0)
			p.Ops[a], p.Ops[b] = p.Ops[b], p.Ops[a]
		}, "rank 2 op", "wait is missing"},
		{"wrong chunk", plan.AllReduce, planner.Direct, 2, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Src[0].Chunk.Base = 1 }), "rank 2 op 5", "part 2"},
		{"wrong chunk of one source", plan.AllReduce, planner.Direct, 2, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Src[0].Chunk.J = 1; op.Src[0].Chunk.Mod = n }), "rank 2 op 5", "wrong chunk"},
		{"wrong place", plan.AllGather, planner.Ring, 2, plan.View{}, alter("copy slot", 0, func(op *plan.Op) { op.Dst[0].Chunk.Base++ }), "rank 2", "part"},
		{"chunk out of range", plan.AllGather, planner.Direct, 2, plan.View{}, alter("-> recv", 0, func(op *plan.Op) { op.Dst[0].Chunk.Mod = 0 }), "rank 2 op 4", "is not in 0 … 3"},
		{"rank out of range", plan.AllGather, planner.Direct, 2, plan.View{}, alter("-> recv", 0, func(op *plan.Op) { op.Src[0].Rank.Mod = 0 }), "rank 2 op", "no such rank"},
		{"duplicated contribution", plan.AllReduce, planner.Direct, 2, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Src[0].Rank.Mod = n - 1 }), "rank 2 op 5", "duplicated contribution"},
		{"missing contribution", plan.AllReduce, planner.Direct, 2, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Src[0].Count = n - 1 }), "rank 2 op 5", "contributions of ranks {3} are missing"},
		{"unscaled contribution", plan.AllReduce, planner.Ring, 1, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Fold = false; op.Dst[0].Partial = false }), "rank 2 op", "raw input"},
		{"unscaled in a slot", plan.Reduce, planner.Ring, 1, plan.View{}, func(t *testing.T, p *plan.Plan) {
			alter("reduce", 0, func(op *plan.Op) { op.Fold = false; op.Dst[0].Partial = false })(t, p)
		}, "rank 2 op", "read as partial true"},
		{"scaled twice", plan.AllReduce, planner.Eager, 1, plan.View{}, alter("copy", 0, func(op *plan.Op) { op.Fold, op.Final = true, true }), "rank 1 op 0", "missing"},
		{"partial sums taken for results", plan.AllReduce, planner.RD, 1, plan.View{}, alter("reduce final", 0, func(op *plan.Op) { op.Final = false }), "rank 1 op", "as partial false"},
		{"partial sums rounded on the way", plan.Reduce, planner.Tree, 1, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Dst[0].Partial = false }), "rank 1 op", "as partial false"},
		{"results taken for partial sums", plan.AllReduce, planner.Ring, 1, plan.View{}, alter("copy slot", 0, func(op *plan.Op) { op.Src[0].Partial = true }), "rank 1 op", "read as partial true"},
		{"final too early", plan.Reduce, planner.Ring, 2, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Final = true; op.Dst[0].Partial = false }), "rank 2 op", "are missing"},
		{"staged copy missing", plan.AllReduce, planner.Direct, 3, none, dropLoop("send_staged: loop"), "op 5", "nobody has written"},
		{"staged copy of the first part only", plan.AllToAll, planner.Direct, 3, none, alter("send_staged: copy", 0, func(op *plan.Op) { op.Src[0].Chunk.I, op.Dst[0].Chunk.I = 0, 0 }), "op", "nobody has written"},
		{"collect missing", plan.AllReduce, planner.Direct, 3, none, dropLoop("recv_staged: loop"), "rank 3", "never written"},
		{"collect of another part", plan.Reduce, planner.Direct, 0, none, alter("recv_staged: copy", 0, func(op *plan.Op) { op.Src[0].Rank.Base++ }), "rank 0 op", "part"},
		{"collect too early", plan.AllReduce, planner.Direct, 3, none, func(t *testing.T, p *plan.Plan) {
			n := find(t, p, "wait step 2", 0)
			w := p.Ops[n]
			copy(p.Ops[n:], p.Ops[n+1:])
			p.Ops[len(p.Ops)-1] = w
		}, "rank 3 op 8", "nobody has written"},
		{"cyclic wait", plan.AllReduce, planner.Direct, all, plan.View{}, swap("signal step 1"), "rank 0 op 3", "deadlock: rank 0 op 3 waits for step 1 of rank 1, which signalled 0 of its steps; rank 1 op 3 waits for step 1 of rank 0"},
		{"cyclic wait for credit", plan.AllReduce, planner.RHD, all, plan.View{}, func(_ *testing.T, p *plan.Plan) {
			for k := range p.Edges {
				p.Edges[k].Slots = 1
			}
		}, "op", "deadlock"},
		{"peer's buffer before its record", plan.Scatter, planner.Direct, 2, plan.View{}, func(t *testing.T, p *plan.Plan) {
			n := find(t, p, "copy", 0)
			p.Ops = append([]plan.Op{p.Ops[n]}, append(p.Ops[:n:n], p.Ops[n+1:]...)...)
		}, "rank 2 op 0", "before its record is known"},
		{"eager plan touches a peer", plan.AllGather, planner.Eager, 2, plan.View{}, alter("eager@2+i%4[0]", 0, func(op *plan.Op) { op.Src[0].Space = plan.Send }), "rank 2 op", "an eager plan touches"},
		{"eager slot written late", plan.AllReduce, planner.Eager, 2, plan.View{}, swap("copy"), "rank 2 op 1", "after its first signal"},
		{"steps go back", plan.Broadcast, planner.Direct, 1, plan.View{}, alter("signal step 2", 0, func(op *plan.Op) { op.Step = 1 }), "rank 1 op 3", "signals step 1 after step 1"},
		{"other fold order", plan.AllReduce, planner.RD, 1, plan.View{}, alter("reduce final", 0, func(op *plan.Op) { op.Src[0], op.Src[1] = op.Src[1], op.Src[0] }), "rank 1 op", "another order"},
		{"ends of an edge disagree", plan.AllReduce, planner.Ring, 1, plan.View{}, func(_ *testing.T, p *plan.Plan) { p.Edges[0].Slots = 1 }, "rank 1", "differs from edge"},
		{"edge without other end", plan.AllReduce, planner.Ring, 1, plan.View{}, func(_ *testing.T, p *plan.Plan) { p.Edges[1].Peer = 3 }, "rank", "edge"},
		{"writes a peer's slot unasked", plan.Gather, planner.Direct, 0, plan.View{}, alter("copy", 0, func(op *plan.Op) {
			op.Dst[0].Space = plan.Stage
			op.Dst[0].Rank = plan.Const(1)
			op.Dst[0].Chunk = plan.Const(0)
		}), "rank 0 op", "only its owner"},
		{"writes a send buffer", plan.AllGather, planner.Direct, 0, plan.View{}, alter("-> recv", 0, func(op *plan.Op) { op.Dst[0].Space = plan.Send }), "rank 0 op", "a send buffer"},
		{"receive buffer that does not exist", plan.Reduce, planner.Direct, 1, plan.View{}, alter("reduce", 0, func(op *plan.Op) { op.Dst[0].Rank = plan.Const(1) }), "rank 1 op", "no receive buffer"},
		{"loop not closed", plan.AllGather, planner.Ring, 1, plan.View{}, func(_ *testing.T, p *plan.Plan) { p.Ops = append(p.Ops, plan.Op{Kind: plan.KindLoop, N: 1}) }, "rank 1 op", "loop"},
		{"plan of another rank", plan.AllGather, planner.Ring, 1, plan.View{}, func(_ *testing.T, p *plan.Plan) { p.Rank = 2 }, "rank 2", "plan of rank 2"},
		{"plan of another method", plan.AllGather, planner.Ring, 1, plan.View{}, func(_ *testing.T, p *plan.Plan) { p.Method = "other" }, "rank 1", "another operation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			verify := func(breaks bool) error {
				return plan.Verify(n, func(r int) (*plan.Plan, error) {
					p, err := planner.Make(c.coll, c.method, n, r, 0)
					if err == nil && breaks && (r == c.rank || c.rank == all) {
						c.breaks(t, p)
					}
					return p, err
				}, plan.Config{View: c.view, Rounds: 2})
			}
			if err := verify(false); err != nil {
				t.Fatalf("refused before it was broken: %v", err)
			}
			err := verify(true)
			var f *plan.Fault
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a fault", err)
			}
			if !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), c.where) {
				t.Errorf("error %q, want %q at %q", err, c.reason, c.where)
			}
		})
	}
}
