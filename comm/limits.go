package comm

import (
	"fmt"
	"math"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/tune"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/device/lower"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// spinningEagerBytes is up to which size one-shot is cheaper than two rounds where ranks spin: a rank reads so many bytes of others. Measured
// with two ranks on an Intel Xeon, one-shot against two rounds: ordinary memory 1 KiB 0.78 and 1.45 µs, 4 KiB 1.50 and 2.45, 8 KiB 2.4
// and 3.0; windows 1 KiB 0.33 and 0.74, 2 KiB 0.92 and 0.83, 4 KiB 1.45 and 0.92. Plans do not know which memory it will be; ordinary
// memory is what most programs have. That more ranks read as many bytes, but no less than 512 of each, is a guess.
func spinningEagerBytes(nranks int) int64 { return int64(max(512, 4096/max(1, nranks-1))) }

// autoEager is the capacity of an eager slot. Between two ranks on two hosts one-shot moves as many bytes as any other method and needs
// no news of the receiver first: over TCP of the loopback interface 32 KiB in 29 µs against 36, 64 KiB in 51 against 62, equal at 128 KiB (two
// cores of an AMD EPYC).
func autoEager(nranks int) int64 {
	if nranks == 2 {
		return pairEagerBytes
	}
	return autoEagerBytes
}

// tuning is the tuner's table as count classes of the launch table.
type tuning struct {
	method [plan.NumColls][control.Classes]string
	limit  [plan.NumColls][control.Classes]uint64
	last   [plan.NumColls]string // of the largest sizes, besides the user's plans
	user   *userPlans            // nil: none
	hash   uint64
}

// chooseMethods asks the tuner. All ranks get the same from the same settings; the hash is compared at creation.
func (c *Comm) chooseMethods(crowded bool) error {
	const op = "tuning"
	eager, parts := int64(c.eager), int64(c.eager)
	if !c.set.IsSet(param.GCCLEagerBytes) {
		parts = min(parts, autoEagerBytes)
		if c.net == nil {
			eager = parts
		}
		if c.net == nil && !crowded {
			eager = min(eager, spinningEagerBytes(c.nranks))
			parts = eager
		}
	}
	c.tuned = tuning{}
	s := tune.Settings{EagerBytes: eager, EagerParts: parts, Algo: c.set.Str(param.NCCLAlgo), Proto: c.set.Str(param.NCCLProto), Cliques: c.cliques,
		RankOrder: c.set.Bool(param.GCCLDeterministic)}
	if err := c.tuneFile(&s); err != nil {
		return err
	}
	t, notes, err := tune.Default(c.nranks, s)
	if err != nil {
		return xerr.Wrap(xerr.InvalidUsage, op, err, "%s and %s cannot be obeyed", c.set.Describe(param.NCCLAlgo), c.set.Describe(param.NCCLProto)).
			WithHint("unset them, or name methods that gccl-plan --list knows")
	}
	if err := c.pinned(t); err != nil {
		return err
	}
	if c.tuned.user, err = c.planFile(); err != nil {
		return err
	}
	if err := c.tuned.user.obeys(c); err != nil {
		return err
	}
	c.base, c.tuneSettings = t, s
	if c.rank == 0 {
		for _, n := range notes {
			c.log.Info(xlog.Tuning, "%s", n)
		}
	}
	return c.adopt(t)
}

// adopt makes a table the communicator's.
func (c *Comm) adopt(t tune.Table) error {
	c.tuned = tuning{user: c.tuned.user}
	for _, r := range t {
		c.tuned.last[r.Coll] = r.Method
	}
	t = c.tuned.user.rows(t, int64(c.eager))
	c.tuned.hash = t.Hash()
	if c.tuned.user != nil {
		c.tuned.hash ^= c.tuned.user.hash
	}
	var used [plan.NumColls]int
	for _, r := range t {
		k := used[r.Coll]
		if k == control.Classes {
			return xerr.New(xerr.Internal, "tuning", "the tuning table has more than %d methods for %s", control.Classes, r.Coll)
		}
		used[r.Coll]++
		c.tuned.method[r.Coll][k] = r.Method
		c.tuned.limit[r.Coll][k] = c.classLimit(r)
	}
	for coll, n := range used {
		for k := n; k < control.Classes && n > 0; k++ {
			c.tuned.method[coll][k], c.tuned.limit[coll][k] = c.tuned.method[coll][n-1], math.MaxUint64
		}
	}
	return nil
}

// classLimit turns the size of the largest send buffer of a rank, which a row speaks of, into what a call counts: one
// part where a rank sends a part to every rank.
func (c *Comm) classLimit(r tune.Row) uint64 {
	if r.MaxBytes == tune.NoLimit {
		return math.MaxUint64
	}
	switch r.Coll {
	case plan.ReduceScatter, plan.AllToAll, plan.Scatter:
		return uint64(r.MaxBytes) / uint64(c.nranks)
	}
	return uint64(r.MaxBytes)
}

// setLimits publishes the classes.
func (c *Comm) setLimits() {
	for coll := range c.tuned.limit {
		for k, limit := range c.tuned.limit[coll] {
			c.ctl.SetLimit(coll, k, limit)
		}
	}
}

// Plan answers a miss of the launch table: plans, lowers and publishes. Local: what it makes depends only on what all
// ranks know alike.
func (c *Comm) Plan(coll, class, root uint32) error {
	const op = "plan"
	if class >= uint32(control.Classes) || coll >= uint32(plan.NumColls) || root >= uint32(c.nranks) {
		return xerr.New(xerr.Internal, op, "collective %d, class %d, root %d: no such plan", coll, class, root)
	}
	c.planMu.Lock()
	defer c.planMu.Unlock()
	if c.ctl.HasPlan(coll, class, root) {
		return nil
	}
	p, err := c.planFor(plan.Coll(coll), class, int(root))
	if err != nil {
		return xerr.Wrap(xerr.Internal, op, err, "no plan")
	}
	block, err := lower.Lower(p)
	if err != nil {
		return xerr.Wrap(xerr.Internal, op, err, "the plan cannot be lowered")
	}
	kept, err := c.ctl.AddPlan(coll, class, root, block)
	if err != nil {
		return err
	}
	c.planBytes += kept
	c.log.Debug(xlog.Tuning, "%s root %d class %d: %s, %d bytes", plan.Coll(coll), root, class, p.Method, kept)
	return nil
}

// tuningPair is the tuner's decision as one of the values that ranks must share.
func (c *Comm) tuningPair() pair { return pair{"the tuning table", fmt.Sprintf("%016x", c.tuned.hash)} }
