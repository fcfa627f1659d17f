package comm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gccl/gccl/algo/tune"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/plugin/profiler"
	"github.com/gccl/gccl/plugin/tuner"
)

// plugins are the tuner and the profilers that the settings lead to. They are looked for once for each value of the
// variables: libraries stay loaded, and that there are none is the usual case.
type plugins struct {
	mu        sync.Mutex
	known     bool
	key       string
	tuner     *tuner.Plugin
	profilers *profiler.Set
	err       error
}

func (p *plugins) find(s *param.Settings, log *xlog.Logger) (*tuner.Plugin, *profiler.Set, error) {
	var key strings.Builder
	for _, id := range []param.ID{param.NCCLTunerPlugin, param.NCCLProfilerPlugin, param.NCCLNetPlugin} {
		fmt.Fprintf(&key, "%v %q ", s.IsSet(id), s.Str(id))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known || p.key != key.String() {
		p.known, p.key = true, key.String()
		p.tuner, p.err = tuner.Find(s, log)
		if p.err == nil {
			p.profilers, p.err = profiler.Find(s, log)
		}
	}
	return p.tuner, p.profilers, p.err
}

// findPlugins finds this communicator's tuner and profilers. A GPU's leader needs no plan, so no tuner either.
func (c *Comm) findPlugins() (err error) {
	if c.tuner, c.profilers, err = c.e.plugins.find(c.set, c.log); err != nil {
		return err
	}
	if c.tuner != nil && c.device() != nil {
		c.log.Info(xlog.Init, "tuner plugin %v is not asked: collectives on GPUs have one method", c.tuner)
		c.tuner = nil
	}
	return nil
}

// tunerPair is the tuner as one of the values that ranks must share.
func (c *Comm) tunerPair() pair {
	id := "none"
	if c.tuner != nil {
		id = c.tuner.ID()
	}
	return pair{"the tuner plugin", id}
}

// nodes is how many groups of ranks there are that share memory: a tuner's and a profiler's nodes.
func (c *Comm) nodes() int { return max(1, c.cliques.Count()) }

// tunersWord is what a rank's tuner has decided, or why it has not.
type tunersWord struct {
	Trouble string
	Table   string
}

// askTuner lets the tuner plugin decide. All ranks call it, and all have the same plugin or none. A tuner that fails on any
// rank is ignored by all; one that decides differently on two ranks is an error on all.
func (c *Comm) askTuner(ctx context.Context) error {
	if c.tuner == nil || c.group == nil {
		return nil
	}
	t, mine := c.tunersTable()
	b, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := c.group.AllGatherTag(ctx, "tuner", b)
	if err != nil {
		return err
	}
	words := make([]tunersWord, len(all))
	for r, b := range all {
		if json.Unmarshal(b, &words[r]) != nil {
			words[r].Trouble = "its word is not understood"
		}
	}
	for r, w := range words {
		if w.Trouble != "" {
			if c.rank == 0 || c.rank == r {
				c.log.Warn(xlog.Init, "tuner plugin %v is ignored by all ranks: %s: %s", c.tuner, c.who(r), w.Trouble)
			}
			return nil
		}
	}
	for r, w := range words {
		if w.Table != words[0].Table {
			return xerr.New(xerr.InvalidUsage, "tuning", "the tuner plugin %v decides differently on ranks: rank 0 %s, rank %d %s", c.tuner,
				firstDifference(words[0].Table, w.Table), r, firstDifference(w.Table, words[0].Table)).WithRank(r).
				WithHint("a tuner must follow from what all ranks know alike: give all hosts the same files, or set NCCL_TUNER_PLUGIN=none")
		}
	}
	if c.rank == 0 {
		c.log.Info(xlog.Init, "tuner plugin %v has decided", c.tuner)
	}
	return c.adopt(t)
}

// firstDifference is the first row of a table that another lacks.
func firstDifference(table, other string) string {
	has := strings.Split(strings.TrimSpace(other), "\n")
	for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
		if !slices.Contains(has, row) {
			return fmt.Sprintf("%q", row)
		}
	}
	return "nothing more"
}

// tunersTable starts the tuner, asks it and ends it: its answers hold for the life of the communicator.
func (c *Comm) tunersTable() (tune.Table, tunersWord) {
	small, large := c.nranks, c.nranks
	if c.cliques != nil {
		small, large = c.cliques.Size(0), c.cliques.Size(0)
		for k := range c.cliques.Count() {
			small, large = min(small, c.cliques.Size(k)), max(large, c.cliques.Size(k))
		}
	}
	t, err := c.tuner.Open(tuner.Comm{Hash: c.hash(), Ranks: c.nranks, Nodes: c.nodes(),
		Domains: c.nodes(), SmallestDomain: small, LargestDomain: large}, c.log)
	if err != nil {
		return nil, tunersWord{Trouble: err.Error()}
	}
	defer t.Close()
	if t.ConstantsChanged && c.rank == 0 {
		c.log.Info(xlog.Init, "tuner plugin %v has changed constants of NCCL's model, which has no effect", c.tuner)
	}
	ask := func(coll int, bytes int64, costs *tune.Costs) (int, error) {
		return t.Ask(coll, bytes, (*tuner.Costs)(costs))
	}
	table, notes, err := tune.Foreign(c.base, c.nranks, c.tuneSettings, control.Classes, ask)
	if err != nil {
		return nil, tunersWord{Trouble: err.Error()}
	}
	if c.rank == 0 {
		for _, n := range notes {
			c.log.Info(xlog.Tuning, "%s", n)
		}
	}
	return table, tunersWord{Table: table.String()}
}
