package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// The text form has one line for the plan, one for each edge and one for each op:
//
//	plan all_reduce ring ranks 4 rank 1 root 0 send_parts 4 recv_parts 4 split steps 1
//	edge 0 in peer 0 slots 2 index 0 ins 1
//	edge 1 out peer 2 slots 2 index 0 ins 1
//	signal step 1
//	wait step 1 all
//	reduce send@1[0] -> slot#1[0]~
//	loop 2
//	  reduce slot#0[3-i%4]~ send@1[3-i%4] -> slot#1[3-i%4]~
//	end
//	send_staged: copy send@1[0] -> stage@1[0]
//
// A reference is space@rank[part], slot#edge[part] for slots; *n makes it a set of n places, ~ says partial sums. An
// expression is base, then multiples of i and j, then %mod. "reduce" folds, "copy" does not; "final" follows.

// String is the text form. Parse undoes it.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s %s ranks %d rank %d root %d send_parts %d recv_parts %d", p.Coll, p.Method, p.NRanks, p.Rank, p.Root, p.SendParts, p.RecvParts)
	if p.Split {
		b.WriteString(" split")
	}
	fmt.Fprintf(&b, " steps %d\n", p.Steps)
	for k, e := range p.Edges {
		way := "in"
		if e.Out {
			way = "out"
		}
		fmt.Fprintf(&b, "edge %d %s peer %d slots %d index %d ins %d\n", k, way, e.Peer, e.Slots, e.Index, e.Ins)
	}
	indent := ""
	for k := range p.Ops {
		op := &p.Ops[k]
		if op.Kind == KindEnd {
			indent = ""
		}
		b.WriteString(indent + op.String() + "\n")
		if op.Kind == KindLoop {
			indent = "  "
		}
	}
	return b.String()
}

// String is one line of the text form.
func (op *Op) String() string {
	text := ""
	if op.When != Always {
		text = op.When.String() + ": "
	}
	switch op.Kind {
	case KindReduce, KindPut, KindGet:
		name := op.Kind.String()
		if op.Kind == KindReduce && !op.Fold {
			name = "copy"
		}
		text += name
		if op.Final {
			text += " final"
		}
		for _, r := range op.Src {
			text += " " + r.String()
		}
		text += " ->"
		for _, r := range op.Dst {
			text += " " + r.String()
		}
	case KindSignal, KindWait:
		text += op.Kind.String() + " " + op.Sync.String()
		if op.Sync != SyncStep {
			return text + " " + strconv.Itoa(op.Edge)
		}
		text += " " + strconv.Itoa(op.Step)
		if op.Kind == KindWait && op.Peers.All {
			text += " all"
		} else if op.Kind == KindWait {
			text += " rank " + op.Peers.Rank.String()
		}
	case KindLoop:
		text += "loop " + strconv.Itoa(op.N)
	default:
		text += op.Kind.String()
	}
	return text
}

func (r Ref) String() string {
	text := r.Space.String()
	if r.Space == Slot {
		text += "#" + strconv.Itoa(r.Edge)
	} else {
		text += "@" + r.Rank.String()
	}
	text += "[" + r.Chunk.String() + "]"
	if r.Count != 1 {
		text += "*" + strconv.Itoa(r.Count)
	}
	if r.Partial {
		text += "~"
	}
	return text
}

func (a Affine) String() string {
	text := strconv.Itoa(a.Base)
	for k, c := range [2]int{a.I, a.J} {
		name := string("ij"[k])
		switch {
		case c == 1:
			text += "+" + name
		case c == -1:
			text += "-" + name
		case c > 0:
			text += "+" + strconv.Itoa(c) + name
		case c < 0:
			text += strconv.Itoa(c) + name
		}
	}
	if a.Mod != 0 {
		text += "%" + strconv.Itoa(a.Mod)
	}
	return text
}
