package comm

import (
	"hash/fnv"
	"os"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/tune"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// readFile reads the file that a setting names; "" where it names none.
func (c *Comm) readFile(id param.ID) (string, error) {
	name := c.set.Str(id)
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", xerr.Wrap(xerr.InvalidUsage, "tuning", err, "%s cannot be read", c.set.Describe(id)).
			WithHint("the file must be there on every host")
	}
	return string(text), nil
}

// tuneFile puts what GCCL_TUNE_FILE says into the tuner's settings.
func (c *Comm) tuneFile(s *tune.Settings) error {
	text, err := c.readFile(param.GCCLTuneFile)
	if err != nil || text == "" {
		return err
	}
	if s.Machine, s.Table, err = tune.ParseFile(text); err != nil {
		return xerr.Wrap(xerr.InvalidUsage, "tuning", err, "%s", c.set.Describe(param.GCCLTuneFile)).
			WithHint("gccl-perf --calibrate writes such a file")
	}
	if s.Machine != nil {
		s.EagerBytes, s.StageBytes = int64(c.eager), int64(c.stage)
	}
	return nil
}

// userPlans are the plans of GCCL_PLAN_FILE for as many ranks as there are.
type userPlans struct {
	groups []*plan.Group
	hash   uint64
}

// planFile reads and verifies GCCL_PLAN_FILE. Plans for other numbers of ranks are left alone: a child of this communicator may have them.
func (c *Comm) planFile() (*userPlans, error) {
	text, err := c.readFile(param.GCCLPlanFile)
	if err != nil || text == "" {
		return nil, err
	}
	fail := func(err error) (*userPlans, error) {
		return nil, xerr.Wrap(xerr.InvalidUsage, "tuning", err, "%s", c.set.Describe(param.GCCLPlanFile)).
			WithHint("gccl-plan verify says the same without running ranks")
	}
	f, err := plan.ParseFile(text)
	if err != nil {
		return fail(err)
	}
	groups, err := f.Groups()
	if err != nil {
		return fail(err)
	}
	u := &userPlans{}
	for _, g := range groups {
		if g.NRanks != c.nranks {
			continue
		}
		if err := g.Verify(c.cliques); err != nil {
			return fail(err)
		}
		u.groups = append(u.groups, g)
	}
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails, says package hash
	u.hash = h.Sum64()
	return u, nil
}

// find is a user's plan for a collective and root, if there is one.
func (u *userPlans) find(coll plan.Coll, root int) *plan.Group {
	if u == nil {
		return nil
	}
	for _, g := range u.groups {
		if g.Coll == coll && (g.Root == root || !coll.Rooted()) {
			return g
		}
	}
	return nil
}

// rows are those of the table, but one row first for each collective that the user has plans of. Plans that go through eager slots
// serve what fits one.
func (u *userPlans) rows(t tune.Table, eager int64) tune.Table {
	if u == nil {
		return t
	}
	limit := map[plan.Coll]int64{}
	for _, g := range u.groups {
		if _, seen := limit[g.Coll]; !seen {
			limit[g.Coll] = tune.NoLimit
		}
		if g.Plans[0].Eager() {
			limit[g.Coll] = eager
		}
	}
	var out tune.Table
	for c := range plan.NumColls {
		var rows tune.Table
		most, has := limit[c]
		if has {
			rows = append(rows, tune.Row{Coll: c, MaxBytes: most, Method: userMethod})
		}
		for _, r := range t {
			if r.Coll == c && (!has || r.MaxBytes > most) {
				rows = append(rows, r)
			}
		}
		if n := len(rows); n > control.Classes {
			rows = append(rows[:control.Classes-1], rows[n-1])
		}
		out = append(out, rows...)
	}
	return out
}

// userMethod stands in the table for the plans of GCCL_PLAN_FILE.
const userMethod = "GCCL_PLAN_FILE"

// obeys says which plan contradicts GCCL_DETERMINISTIC: nothing is known of the order in which it folds.
func (u *userPlans) obeys(c *Comm) error {
	if u == nil || !c.set.Bool(param.GCCLDeterministic) {
		return nil
	}
	for _, g := range u.groups {
		if g.Coll.Reduces() {
			return xerr.New(xerr.InvalidUsage, "tuning", "%s has plans of %s, and %s pins the order of folding", c.set.Describe(param.GCCLPlanFile), g.Coll,
				c.set.Describe(param.GCCLDeterministic)).WithHint("unset one of the two")
		}
	}
	return nil
}

// planFor plans this rank's part of a collective of a count class.
func (c *Comm) planFor(coll plan.Coll, class uint32, root int) (*plan.Plan, error) {
	method := c.tuned.method[coll][class]
	if method == userMethod {
		if g := c.tuned.user.find(coll, root); g != nil {
			return g.Source(c.rank)
		}
		method = c.tuned.last[coll] // the user has plans for other roots
	}
	return planner.Job{Coll: coll, Method: method, Ranks: c.nranks, Root: root, Cliques: c.cliques}.Plan(c.rank)
}
