package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the text form. It checks the words, not the plan: see Check.
func Parse(text string) (*Plan, error) { return parseAt(text, nil) }

// parseAt is Parse for lines that have other numbers in their file.
func parseAt(text string, numbers []int) (*Plan, error) {
	p := &Plan{}
	seen := false
	for k, line := range strings.Split(text, "\n") {
		w := &words{left: strings.Fields(line)}
		if len(w.left) == 0 {
			continue
		}
		switch {
		case !seen:
			w.plan(p)
			seen = true
		case w.left[0] == "edge":
			w.edge(p)
		default:
			p.Ops = append(p.Ops, w.op())
		}
		if len(w.left) > 0 {
			w.fail("%q is too much", strings.Join(w.left, " "))
		}
		if w.err != nil {
			at := k + 1
			if k < len(numbers) {
				at = numbers[k]
			}
			return nil, fmt.Errorf("plan text line %d %q: %w", at, line, w.err)
		}
	}
	if !seen {
		return nil, fmt.Errorf("plan text is empty")
	}
	return p, nil
}

// words takes a line apart. After the first error it gives zero values.
type words struct {
	left []string
	err  error
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
	w.left = nil
}

func (w *words) next() string {
	if len(w.left) == 0 {
		w.fail("the line is too short")
		return ""
	}
	s := w.left[0]
	w.left = w.left[1:]
	return s
}

// skip goes past a word if it comes next.
func (w *words) skip(word string) bool {
	if len(w.left) > 0 && w.left[0] == word {
		w.left = w.left[1:]
		return true
	}
	return false
}

func (w *words) need(word string) {
	if s := w.next(); w.err == nil && s != word {
		w.fail("%q, want %q", s, word)
	}
}

func (w *words) num() int { return w.number(w.next()) }

func (w *words) number(s string) int {
	if w.err != nil {
		return 0
	}
	// 32 bits, as in the lowered format; also so that expressions never overflow here.
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		w.fail("%q is no 32-bit number", s)
	}
	return int(n)
}

func (w *words) named(name string) int { w.need(name); return w.num() }

func (w *words) oneOf(names []string) int {
	s := w.next()
	k := slices.Index(names, s)
	if k < 0 {
		w.fail("%q is not one of %v", s, names)
		return 0
	}
	return k
}

func (w *words) plan(p *Plan) {
	w.need("plan")
	p.Coll = Coll(w.oneOf(collNames))
	p.Method = w.next()
	p.NRanks, p.Rank, p.Root = w.named("ranks"), w.named("rank"), w.named("root")
	p.SendParts, p.RecvParts = w.named("send_parts"), w.named("recv_parts")
	p.Split = w.skip("split")
	p.Steps = w.named("steps")
	p.Places = w.named("places")
}

func (w *words) edge(p *Plan) {
	if k := w.named("edge"); w.err == nil && k != len(p.Edges) {
		w.fail("edge %d comes as edge %d", k, len(p.Edges))
	}
	e := Edge{Out: w.oneOf([]string{"in", "out"}) == 1}
	e.Peer, e.Slots, e.Index, e.Place = w.named("peer"), w.named("slots"), w.named("index"), w.named("place")
	p.Edges = append(p.Edges, e)
}

func (w *words) op() Op {
	op := Op{}
	word := w.next()
	if name, ok := strings.CutSuffix(word, ":"); ok {
		k := slices.Index(whenNames, name)
		if k <= 0 {
			w.fail("no condition %q", name)
			return op
		}
		op.When = When(k)
		word = w.next()
	}
	if word == "copy" {
		w.move(&op)
		return op
	}
	k := slices.Index(kindNames, word)
	if k < 0 {
		w.fail("no op %q", word)
		return op
	}
	op.Kind = Kind(k)
	switch op.Kind {
	case KindReduce:
		op.Fold = true
		w.move(&op)
	case KindPut, KindGet:
		w.move(&op)
	case KindSignal, KindWait:
		op.Sync = Sync(w.oneOf(syncNames))
		if op.Sync != SyncStep {
			op.Edge = w.num()
			return op
		}
		op.Step = w.num()
		if op.Kind == KindWait && w.skip("all") {
			op.Peers.All = true
		} else if op.Kind == KindWait {
			w.need("rank")
			op.Peers.Rank = w.affine(w.next())
		}
	case KindLoop:
		op.N = w.num()
	}
	return op
}

func (w *words) move(op *Op) {
	op.Final = w.skip("final")
	for len(w.left) > 0 && w.left[0] != "->" {
		op.Src = append(op.Src, w.ref(w.next()))
	}
	w.need("->")
	for len(w.left) > 0 {
		op.Dst = append(op.Dst, w.ref(w.next()))
	}
}

func (w *words) ref(s string) Ref {
	r := Ref{Count: 1}
	s, r.Partial = strings.CutSuffix(s, "~")
	if place, count, ok := strings.Cut(s, "*"); ok {
		s, r.Count = place, w.number(count)
	}
	place, chunk, ok := strings.Cut(s, "[")
	chunk, ok2 := strings.CutSuffix(chunk, "]")
	if !ok || !ok2 {
		w.fail("%q is no reference", s)
		return r
	}
	r.Chunk = w.affine(chunk)
	if edge, ok := strings.CutPrefix(place, "slot#"); ok {
		r.Space, r.Edge = Slot, w.number(edge)
		return r
	}
	space, rank, ok := strings.Cut(place, "@")
	k := slices.Index(spaceNames, space)
	if !ok || k < 0 || Space(k) == Slot {
		w.fail("%q is no reference", s)
		return r
	}
	r.Space, r.Rank = Space(k), w.affine(rank)
	return r
}

// affine reads base, multiples of i and of j, and a modulus, in this order.
func (w *words) affine(s string) Affine {
	a := Affine{}
	if head, m, ok := strings.Cut(s, "%"); ok {
		s, a.Mod = head, w.number(m)
	}
	a.J, s = w.multiple(s, "j")
	a.I, s = w.multiple(s, "i")
	a.Base = w.number(s)
	return a
}

// multiple splits a signed multiple of a variable off the end.
func (w *words) multiple(s, name string) (factor int, rest string) {
	body, ok := strings.CutSuffix(s, name)
	if !ok {
		return 0, s
	}
	k := strings.LastIndexAny(body, "+-")
	if k < 0 {
		w.fail("%q is no expression", s)
		return 0, s
	}
	if sign := body[k:]; sign == "+" || sign == "-" {
		return w.number(sign + "1"), body[:k]
	}
	return w.number(body[k:]), body[:k]
}
