package sim

import (
	"fmt"

	"github.com/gccl/gccl/algo/plan"
)

// region is a piece of memory with the number of elements in it. Elements are of the accumulator's type where
// partial, else of the user's.
type region struct {
	bytes   []byte
	n       int
	partial bool
}

// geometry cuts buffers into parts and parts into pieces, as the doc of package plan says.
type geometry struct {
	count, piece int // elements of the call, and of a piece
	split        bool
	elem         int // bytes of an element
}

// part is where a part begins and how long it is, in elements.
func (g geometry) part(k, parts int) (first, n int) {
	if !g.split {
		return k * g.count, g.count
	}
	per := (g.count + parts - 1) / parts
	first = min(k*per, g.count)
	return first, min(first+per, g.count) - first
}

// cut is a round's piece of a part.
func (g geometry) cut(k, parts, round int) (first, n int) {
	first, n = g.part(k, parts)
	skip := min(round*g.piece, n)
	return first + skip, min(g.piece, n-skip)
}

// rounds is how often the ops run.
func (g geometry) rounds(parts int) int {
	_, n := g.part(0, parts)
	return max(1, (n+g.piece-1)/g.piece)
}

// memory is what one rank has.
type memory struct {
	send, recv []byte
	stage      map[int]region // by part; the eager slot has whole parts
	eager      map[int]region
	out        region
	slots      map[[2]int]region // by place of the edge at this rank, and number
}

// user is this round's piece of a part of a user buffer.
func (g geometry) user(buf []byte, chunk, parts, round int) (region, error) {
	if chunk < 0 || chunk >= parts {
		return region{}, fmt.Errorf("part %d is not in 0 … %d", chunk, parts-1)
	}
	first, n := g.cut(chunk, parts, round)
	lo, hi := first*g.elem, (first+n)*g.elem
	if n == 0 {
		return region{}, nil
	}
	if hi > len(buf) {
		return region{}, fmt.Errorf("part %d ends at byte %d of a buffer of %d", chunk, hi, len(buf))
	}
	return region{bytes: buf[lo:hi:hi], n: n}, nil
}

// edgeAt is the number of the slot that a rank uses next on an edge, and where it is.
func (r *rank) edgeAt(edge int) (owner, place, slot int) {
	e, ch := r.p.Edges[edge], r.edges[edge]
	if e.Out {
		return e.Peer, e.Index, ch.data % e.Slots
	}
	return r.p.Rank, e.Index, ch.credit % e.Slots
}

// source finds the memory of a source; scaled says whose factor it gets in a fold, -1 for nobody's.
func (w *world) source(r *rank, ref *plan.Ref, i, j int) (at region, scaled int, err error) {
	if ref.Space == plan.Slot {
		owner, place, slot := r.edgeAt(ref.Edge)
		at = w.ranks[owner].mem.slots[[2]int{place, slot}]
		scaled = -1
	} else {
		space, q, chunk := w.view.ReadAt(ref, r.p.Rank, i, j)
		if q < 0 || q >= len(w.ranks) {
			return at, -1, fmt.Errorf("source at rank %d", q)
		}
		scaled = q
		m := &w.ranks[q].mem
		switch space {
		case plan.Send:
			at, err = w.geo.user(m.send, chunk, r.p.SendParts, r.cur.Round())
		case plan.Stage:
			at = m.stage[chunk]
		case plan.Eager:
			at = m.eager[chunk]
		case plan.Out:
			at, scaled = m.out, -1
		case plan.Recv:
			at, err = w.geo.user(m.recv, chunk, r.p.RecvParts, r.cur.Round())
			scaled = -1
		}
	}
	if err == nil && at.partial != ref.Partial && at.n > 0 {
		err = fmt.Errorf("source %s holds partial sums: %t", ref, at.partial)
	}
	return at, scaled, err
}

// target finds or makes the memory of a destination of n elements.
func (w *world) target(r *rank, ref *plan.Ref, i, j, n int) (region, error) {
	t := w.arith.t
	if ref.Partial {
		t = t.acc()
	}
	fresh := region{bytes: make([]byte, n*t.Bytes()), n: n, partial: ref.Partial}
	if ref.Space == plan.Slot {
		owner, place, slot := r.edgeAt(ref.Edge)
		w.ranks[owner].mem.slots[[2]int{place, slot}] = fresh
		return fresh, nil
	}
	space, q, chunk := w.view.WriteAt(ref, r.p.Rank, i, j)
	if q < 0 || q >= len(w.ranks) {
		return fresh, fmt.Errorf("destination at rank %d", q)
	}
	m := &w.ranks[q].mem
	switch space {
	case plan.Recv:
		at, err := w.geo.user(m.recv, chunk, r.p.RecvParts, r.cur.Round())
		if err == nil && at.n != n {
			err = fmt.Errorf("%d elements for %s, which has %d", n, ref, at.n)
		}
		return at, err
	case plan.Stage:
		m.stage[chunk] = fresh
	case plan.Eager:
		m.eager[chunk] = fresh
	case plan.Out:
		m.out = fresh
	default:
		return fresh, fmt.Errorf("destination %s", ref)
	}
	return fresh, nil
}
