package planner

import "github.com/gccl/gccl/algo/plan"

// Relay is a ring on which chunks are passed on until they are where they belong.
const Relay = "relay"

// maxRelayRanks keeps the plan, which has a loop for every rank, at a few megabytes.
const maxRelayRanks = 1024

// relayAllToAll: for each distance in turn, all ranks send the chunk for the rank that far ahead and pass on what comes, so
// that no chunk waits anywhere. A chunk travels half the ring on average: for worlds where nothing better fits.
func relayAllToAll(e ends) *plan.Plan {
	p := e.start(plan.AllToAll, Relay, e.n, e.n)
	own := plan.Const(e.rank)
	p.Ops = join(e.open(p), do(move(e.mine(plan.Send, own), e.mine(plan.Recv, own))))
	if e.n == 1 {
		return p
	}
	in, out := e.ringLinks(p)
	for d := 1; d < e.n; d++ {
		// After i hops a chunk here comes from the rank i behind, and so is for the rank d-i ahead.
		first, pass, last := plan.Const(mod(e.rank+d, e.n)), e.down(e.rank+d-1), plan.Const(mod(e.rank-d, e.n))
		p.Ops = join(p.Ops,
			through(first, spread(e.mine(plan.Send, first), out(false))),
			loop(d-1, through(pass, spread(in(false), out(false)))...),
			through(last, spread(in(false), e.mine(plan.Recv, last))))
	}
	return p
}
