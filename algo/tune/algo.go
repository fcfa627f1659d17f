package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// foreign are NCCL's algorithms that need hardware or methods we do not have (NCCL 2.30 user guide, NCCL_ALGO).
// Asking for them is legal and has no effect.
var foreign = []string{"collnetdirect", "collnetchain", "nvls", "nvlstree"}

// wish is what a list asks for: these methods, or all others.
type wish struct {
	not     bool
	methods []string
}

// wishes are by collective; any is for those that are not named.
type wishes struct {
	any    *wish
	byColl map[plan.Coll]*wish
}

// parseAlgo reads a list as NCCL_ALGO has it: names separated by commas, a leading ^ to exclude them; or several
// lists separated by semicolons, each with a collective and a colon before it. Case does not matter.
func parseAlgo(text string) (*wishes, []string, error) {
	w := &wishes{byColl: map[plan.Coll]*wish{}}
	var notes []string
	err := clauses(text, "algorithm", func(c plan.Coll, named bool, list string) error {
		one, more, err := parseList(text, list)
		if err != nil {
			return err
		}
		notes = append(notes, more...)
		if named {
			w.byColl[c] = one
		} else {
			w.any = one
		}
		return nil
	})
	return w, notes, err
}

func parseList(text, list string) (*wish, []string, error) {
	one := &wish{}
	var notes []string
	if rest, ok := strings.CutPrefix(list, "^"); ok {
		one.not, list = true, rest
	}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case slices.Contains(known(), name):
			one.methods = append(one.methods, name)
		case slices.Contains(foreign, name):
			if !one.not {
				notes = append(notes, fmt.Sprintf("algorithm list %q: %s is not available and is ignored", text, name))
			}
		default:
			return nil, nil, fmt.Errorf("algorithm list %q: no algorithm %q; there are %v", text, name, known())
		}
	}
	return one, notes, nil
}

// known lists the names of all methods.
func known() []string {
	var names []string
	for c := range plan.NumColls {
		for _, m := range planner.Methods(c) {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	return names
}

// fits says whether a method can do a collective of this world.
func (s *Settings) fits(c plan.Coll, method string, nranks int) bool {
	j := planner.Job{Coll: c, Method: method, Ranks: nranks, Cliques: s.Cliques}
	if c == plan.SendRecv { // a message is between two ranks, of one clique or of two
		j.Ranks, j.Cliques = min(2, nranks), nil
		if s.Cliques.Count() > 1 {
			j.Cliques = plan.EqualCliques(2, 1)
		}
	}
	return j.Against() == ""
}

// usual lists the methods that are used without a wish, eager first: the fixed pair where it holds, otherwise all that fit.
func (s *Settings) usual(c plan.Coll, nranks int) []string {
	if s.Cliques.Count() <= 1 && (s.Machine == nil || s.RankOrder && c.Reduces()) {
		if nranks == 1 {
			return []string{planner.Direct}
		}
		return []string{planner.Eager, planner.Direct}
	}
	var all []string
	for _, m := range planner.Methods(c) {
		if s.fits(c, m, nranks) {
			all = append(all, m)
		}
	}
	return all
}

// choose lists the methods to use for a collective.
func (w *wishes) choose(c plan.Coll, nranks int, s *Settings) (methods []string, note string) {
	usual := s.usual(c, nranks)
	one := w.byColl[c]
	if one == nil {
		one = w.any
	}
	if one == nil || c == plan.SendRecv {
		return usual, ""
	}
	var allowed []string
	for _, m := range planner.Methods(c) {
		if slices.Contains(one.methods, m) != one.not && s.fits(c, m, nranks) {
			allowed = append(allowed, m)
		}
	}
	// Excluding what is not used anyway changes nothing.
	if one.not && !slices.ContainsFunc(usual, func(m string) bool { return slices.Contains(one.methods, m) }) {
		allowed = usual
	}
	switch {
	case len(allowed) == 0:
		return usual, fmt.Sprintf("%s with %d ranks: none of the algorithms asked for; using %v", c, nranks, usual)
	case len(allowed) == 1 && allowed[0] == planner.Eager:
		return allowed, fmt.Sprintf("%s: eager is for small messages only; using direct above its limit", c)
	}
	return allowed, ""
}
