package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// Settings is what a choice depends on besides the world. They must be equal on all ranks.
type Settings struct {
	EagerBytes int64         // capacity of an eager slot: the largest send buffer that may go through it; 0 for none
	EagerParts int64         // the same for collectives of whose send buffer a peer needs one part alone, and gets all; 0: EagerBytes
	StageBytes int64         // scratch of a rank; 0: the machine's
	Algo       string        // list of methods as in NCCL_ALGO; "" for no wish
	Proto      string        // list of protocols as in NCCL_PROTO
	Cliques    *plan.Cliques // who loads and stores whom; nil: all ranks
	RankOrder  bool          // reductions fold in the order of ranks only
	Machine    *Machine      // what to compute with; nil: what is known of hosts
	Table      Table         // rows of collectives that are decided already
}

// RankOrder lists the methods that fold in the order of the ranks, whatever the size.
var RankOrder = []string{planner.Eager, planner.Direct}

// Default is the table of a communicator. notes are wishes that could not be met, a line each; a wish that means
// nothing is an error.
//
// In one clique without a measured machine the table is fixed: eager up to its limit, then direct. That is what measurements of
// hosts gave (docs/tuning.md). Otherwise predictions decide.
func Default(nranks int, s Settings) (t Table, notes []string, err error) {
	wishes, notes, err := parseAlgo(s.Algo)
	if err != nil {
		return nil, nil, err
	}
	protos, err := parseProto(s.Proto)
	if err != nil {
		return nil, nil, err
	}
	models := map[string]*Model{}
	for c := range plan.NumColls {
		if rows := s.Table.of(c); rows != nil {
			t = append(t, rows...)
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
		rows, note := s.rows(c, nranks, methods, protos.of(c), models)
		if note != "" {
			notes = append(notes, note)
		}
		t = append(t, rows...)
	}
	return t, notes, nil
}

// of is the rows of a collective.
func (t Table) of(c plan.Coll) (rows Table) {
	for _, r := range t {
		if r.Coll == c {
			rows = append(rows, r)
		}
	}
	return rows
}

// rows decides between methods. Where the fixed table holds, eager comes first where it is allowed.
func (s *Settings) rows(c plan.Coll, nranks int, methods, protos []string, models map[string]*Model) (rows []Row, note string) {
	var others []string
	for _, m := range methods {
		if m != planner.Eager {
			others = append(others, m)
		}
	}
	if s.Machine == nil {
		if len(others) < len(methods) && s.EagerBytes > 0 {
			most := s.EagerBytes
			if s.EagerParts > 0 && (c == plan.ReduceScatter || c == plan.AllToAll || c == plan.Scatter) {
				most = min(most, s.EagerParts)
			}
			rows = append(rows, Row{Coll: c, MaxBytes: most, Method: planner.Eager})
		}
		methods = others
	}
	if len(methods) > 1 || s.Machine != nil {
		key := strings.Join(protos, ",")
		if models[key] == nil {
			md := s.model(nranks, protos)
			if len(md.ways) == 0 {
				note = fmt.Sprintf("%s: none of the protocols asked for, %v, is available; using %s", c, protos, md.machine.Protos[0].Name)
				md = s.model(nranks, nil)
			}
			models[key] = md
		}
		for _, r := range models[key].rows(c, methods) {
			if len(rows) > 0 && r.MaxBytes <= rows[len(rows)-1].MaxBytes {
				continue
			}
			rows = append(rows, r)
		}
	} else if len(methods) == 1 && methods[0] != planner.Eager {
		rows = append(rows, Row{Coll: c, MaxBytes: NoLimit, Method: methods[0]})
	}
	if n := len(rows); n == 0 || rows[n-1].MaxBytes != NoLimit {
		last := planner.Direct
		for _, m := range append(others, s.usual(c, nranks)...) {
			if m != planner.Eager {
				last = m
				break
			}
		}
		rows = append(rows, Row{Coll: c, MaxBytes: NoLimit, Method: last})
	}
	for len(rows) > MaxRows {
		rows = slices.Delete(rows, len(rows)-2, len(rows)-1)
	}
	return rows, note
}

// model is what decides.
func (s *Settings) model(nranks int, protos []string) *Model {
	return NewModel(s.OnMachine(), nranks, s.Cliques, protos)
}

// OnMachine is the machine with what the settings say of it.
func (s *Settings) OnMachine() *Machine {
	m := s.Machine
	if m == nil {
		m, _ = cost.Builtin("host") // there is one
	}
	own := *m
	own.Eager = s.EagerBytes
	if s.StageBytes > 0 {
		own.Stage = s.StageBytes
	}
	return &own
}

// ParseFile reads a file with a machine, as gccl-perf --calibrate writes it, or with a table.
func ParseFile(text string) (*Machine, Table, error) {
	if strings.Contains(text, "gccl_machine") {
		m, err := cost.Parse(text)
		return m, nil, err
	}
	t, err := Parse(text)
	return nil, t, err
}
