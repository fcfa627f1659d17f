package planner

import (
	"math/bits"

	"github.com/gccl/gccl/algo/pattern"
	"github.com/gccl/gccl/algo/plan"
)

// Binomial is the family of methods over a binomial tree below the root. Chunks of a subtree stream through its top, so
// that nothing is kept on the way. Only slots and a rank's own buffers are touched.
const Binomial = "binomial"

// binomial is a rank's place in the tree. A link has the level of its lower end as tag.
type binomial struct {
	ends
	self     pattern.Subtree
	children []pattern.Subtree
	w        *wiring
}

func newBinomial(e ends) *binomial {
	b := &binomial{ends: e}
	b.self, b.children = pattern.Binomial(pattern.Distance(e.root, e.rank, e.n), e.n)
	return b
}

// rankOf is the rank of a label.
func (b *binomial) rankOf(label int) int { return (b.root + label) % b.n }

// parent is the rank above and the tag of the link to it.
func (b *binomial) parent() (rank, tag int) {
	return b.rankOf(b.self.Top & (b.self.Top - 1)), bits.TrailingZeros(uint(b.self.Top))
}

// wireUp makes links towards the root.
func (b *binomial) wireUp(p *plan.Plan) {
	var outs []link
	if b.self.Top > 0 {
		to, tag := b.parent()
		outs = []link{{from: b.rank, to: to, tag: tag}}
	}
	b.w = b.wire(p, b.most(ringSlots, farSlots)*bits.Len(uint(b.n-1)), func(r int) []link {
		_, children := pattern.Binomial(pattern.Distance(b.root, r, b.n), b.n)
		var ins []link
		for k, c := range children {
			ins = append(ins, b.ringLink(b.rankOf(c.Top), r, k))
		}
		return ins
	}, outs)
}

// wireDown makes links away from the root.
func (b *binomial) wireDown(p *plan.Plan) {
	var outs []link
	for _, c := range b.children {
		outs = append(outs, link{from: b.rank, to: b.rankOf(c.Top)})
	}
	b.w = b.wire(p, b.most(ringSlots, farSlots), func(r int) []link {
		label := pattern.Distance(b.root, r, b.n)
		if label == 0 {
			return nil
		}
		return []link{b.ringLink(b.rankOf(label&(label-1)), r, 0)}
	}, outs)
}
