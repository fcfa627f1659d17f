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
	for _, clause := range strings.Split(text, ";") {
		clause = strings.ToLower(strings.TrimSpace(clause))
		if clause == "" {
			continue
		}
		name, list, named := strings.Cut(clause, ":")
		if !named {
			list = clause
		}
		one, more, err := parseList(text, list)
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, more...)
		if !named {
			w.any = one
			continue
		}
		c, err := plan.ParseColl(strings.TrimSpace(name))
		if err != nil {
			return nil, nil, fmt.Errorf("algorithm list %q: %w", text, err)
		}
		w.byColl[c] = one
	}
	return w, notes, nil
}

func parseList(text, list string) (*wish, []string, error) {
	one := &wish{}
	var notes []string
	list = strings.TrimSpace(list)
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

// far are the methods for ranks in several cliques, the preferred one first.
var far = map[plan.Coll][]string{
	plan.AllReduce:     {planner.Hier, planner.Ring},
	plan.ReduceScatter: {planner.Ring},
	plan.AllGather:     {planner.Ring},
	plan.Broadcast:     {planner.Tree},
	plan.Reduce:        {planner.Tree},
	plan.AllToAll:      {planner.Hier, planner.Pairwise, planner.Relay},
	plan.Gather:        {planner.Binomial},
	plan.Scatter:       {planner.Binomial},
	plan.SendRecv:      {planner.Ring},
}

// fits says whether a method can do a collective of this world.
func (s *Settings) fits(c plan.Coll, method string, nranks int) bool {
	return planner.Job{Coll: c, Method: method, Ranks: nranks, Cliques: s.Cliques}.Against() == ""
}

// usual lists the methods that are used without a wish, eager first.
func (s *Settings) usual(c plan.Coll, nranks int) []string {
	if s.Cliques.Count() > 1 {
		for _, m := range far[c] {
			if s.fits(c, m, nranks) {
				return []string{m}
			}
		}
		return nil
	}
	if nranks == 1 {
		return []string{planner.Direct}
	}
	return []string{planner.Eager, planner.Direct}
}

// choose lists the methods to use for a collective, eager first if allowed.
func (w *wishes) choose(c plan.Coll, nranks int, s *Settings) (methods []string, note string) {
	usual := s.usual(c, nranks)
	one := w.byColl[c]
	if one == nil {
		one = w.any
	}
	if one == nil {
		return usual, ""
	}
	var allowed []string
	if one.not {
		// The usual ones first, then what else there is.
		for _, m := range append(slices.Clone(usual), planner.Methods(c)...) {
			if !slices.Contains(one.methods, m) && !slices.Contains(allowed, m) && s.fits(c, m, nranks) {
				allowed = append(allowed, m)
			}
		}
	} else {
		for _, m := range one.methods {
			if s.fits(c, m, nranks) {
				allowed = append(allowed, m)
			}
		}
	}
	if k := slices.Index(allowed, planner.Eager); k > 0 {
		allowed = slices.Insert(slices.Delete(allowed, k, k+1), 0, planner.Eager)
	}
	switch {
	case len(allowed) == 0:
		return usual, fmt.Sprintf("%s with %d ranks: none of the algorithms asked for; using %v", c, nranks, usual)
	case len(allowed) == 1 && allowed[0] == planner.Eager:
		return allowed, fmt.Sprintf("%s: eager is for small messages only; using direct above its limit", c)
	}
	return allowed, ""
}
