package tune

import (
	"fmt"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// Settings is what a choice depends on besides the world. They must be equal on all ranks.
type Settings struct {
	EagerBytes int64         // capacity of an eager slot: the largest send buffer that may go through it; 0 for none
	Algo       string        // list of methods as in NCCL_ALGO; "" for no wish
	Cliques    *plan.Cliques // who loads and stores whom; nil: all ranks
}

// Default is the table of a communicator. notes are wishes that could not be met, a line each; a wish that means
// nothing is an error.
func Default(nranks int, s Settings) (t Table, notes []string, err error) {
	wishes, notes, err := parseAlgo(s.Algo)
	if err != nil {
		return nil, nil, err
	}
	for c := range plan.NumColls {
		if c == plan.SendRecv {
			// A message is between two ranks, of one clique or of two.
			far, pair := s.Cliques.Count() > 1, s
			if far {
				pair.Cliques = plan.EqualCliques(2, 1)
			}
			methods := pair.usual(c, 2)
			t = append(t, rows(c, s.EagerBytes, methods)...)
			continue
		}
		methods, note := wishes.choose(c, nranks, &s)
		if note != "" {
			notes = append(notes, note)
		}
		if len(methods) == 0 {
			notes = append(notes, fmt.Sprintf("%s of %d ranks in %d cliques: no method; calls of it will fail", c, nranks, s.Cliques.Count()))
			continue
		}
		t = append(t, rows(c, s.EagerBytes, methods)...)
	}
	return t, notes, nil
}

// rows makes the rows of a collective: eager where allowed and small, else the first other method.
func rows(c plan.Coll, eagerBytes int64, methods []string) []Row {
	var out []Row
	for _, m := range methods {
		if m != planner.Eager {
			return append(out, Row{Coll: c, MaxBytes: NoLimit, Method: m})
		}
		if eagerBytes > 0 {
			out = append(out, Row{Coll: c, MaxBytes: eagerBytes, Method: m})
		}
	}
	return append(out, Row{Coll: c, MaxBytes: NoLimit, Method: planner.Direct})
}
