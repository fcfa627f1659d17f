package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

type options struct {
	ranks               int
	cliques             string
	methods, sizes      []string
	machine             string
	fabric              string
	leaf, pod           int
	over                float64
	stragglers, slow    float64
	loss                float64
	timeout             time.Duration
	seed                uint64
	staged, apart, json bool
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "gccl-sim collective",
		Short: "Time collectives of any number of ranks in virtual time",
		Example: `  gccl-sim allreduce --ranks 100000
  gccl-sim allgather --ranks 4096 --cliques 8 --methods ring,pat --sizes 1K,1M
  gccl-sim allreduce --ranks 1024 --fabric fat --leaf 16 --pod 8 --over 2 --stragglers 0.001 --slow 3`,
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, args []string) error { return o.run(cmd.OutOrStdout(), args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.ranks, "ranks", 1024, "number of ranks")
	f.StringVar(&o.cliques, "cliques", "", "ranks that load and store each other: 8 for runs of 8, or all sizes, 4,4,8; default 8 of a dgx, all of a host")
	f.StringSliceVar(&o.methods, "methods", nil, "methods; default all-reduce tree and hier, otherwise those that fit and end in time")
	f.StringSliceVar(&o.sizes, "sizes", []string{"8", "64K", "1M", "64M", "1G"}, "sizes of the largest send buffer")
	f.StringVar(&o.machine, "machine", "dgx", "what the ranks run on: "+strings.Join(cost.BuiltinNames, ", ")+", or a file of gccl-perf --calibrate")
	f.StringVar(&o.fabric, "fabric", "", "flat, rail or fat instead of the machine's")
	f.IntVar(&o.leaf, "leaf", 0, "cliques that share a leaf switch (0: the machine's)")
	f.IntVar(&o.pod, "pod", 0, "leaves that share a pod of a fat tree")
	f.Float64Var(&o.over, "over", 0, "oversubscription above a leaf, and above a pod")
	f.Float64Var(&o.stragglers, "stragglers", 0, "share of ranks that are slow")
	f.Float64Var(&o.slow, "slow", 2, "how much slower those are")
	f.Float64Var(&o.loss, "loss", 0, "share of messages between cliques that are lost and sent again")
	f.DurationVar(&o.timeout, "timeout", 10*time.Millisecond, "until a lost message is sent again; doubles")
	f.Uint64Var(&o.seed, "seed", 1, "of stragglers and losses")
	f.BoolVar(&o.staged, "staged", false, "user buffers that peers cannot reach")
	f.BoolVar(&o.apart, "apart", false, "simulate every rank, without merging equal ones")
	f.BoolVar(&o.json, "json", false, "JSON lines")
	return cmd
}

// line is a row of the table.
type line struct {
	Coll     string  `json:"coll"`
	Method   string  `json:"method"`
	Ranks    int     `json:"ranks"`
	Cliques  int     `json:"cliques"`
	Bytes    int64   `json:"bytes"`
	US       float64 `json:"predicted_us"`
	Rounds   int     `json:"rounds"`
	Programs int     `json:"programs"`
	Kinds    int     `json:"kinds"`
	PlanS    float64 `json:"plan_s"`
	MergeS   float64 `json:"merge_s"`
	SimS     float64 `json:"sim_s"`
	Events   int     `json:"events"`
}

func (o *options) run(w io.Writer, name string) error {
	coll, err := plan.ParseColl(name)
	if err != nil {
		return err
	}
	if o.ranks < 1 || o.ranks > planner.MaxRanks {
		return fmt.Errorf("--ranks %d is not in 1 … %d", o.ranks, planner.MaxRanks)
	}
	m, err := o.load()
	if err != nil {
		return err
	}
	set, err := o.setting(m)
	if err != nil {
		return err
	}
	var sizes []int64
	for _, s := range o.sizes {
		b, err := cost.ParseBytes(s)
		if err != nil {
			return fmt.Errorf("--sizes: %w", err)
		}
		sizes = append(sizes, b)
	}
	methods, err := o.choose(coll, set.Cliques)
	if err != nil {
		return err
	}
	if !o.json {
		fmt.Fprintf(w, "# %s of %d ranks in %d cliques on %s\n", coll, o.ranks, set.Cliques.Count(), m.Name)
		fmt.Fprintf(w, "# %-9s %12s %14s %8s %8s %8s %8s %8s %9s\n", "method", "bytes", "predicted us", "rounds", "kinds", "plan s", "merge s", "sim s", "events")
	}
	for _, method := range methods {
		if err := o.time(w, m, set, sizes, planner.Job{Coll: coll, Method: method, Ranks: o.ranks, Cliques: set.Cliques}); err != nil {
			return err
		}
	}
	if !o.json {
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		fmt.Fprintf(w, "# memory taken from the system: %d MiB\n", mem.Sys>>20)
	}
	return nil
}

// load reads the machine and what the command line changes of it.
func (o *options) load() (*cost.Machine, error) {
	m, err := cost.Find(o.machine)
	if err != nil {
		return nil, err
	}
	switch o.fabric {
	case "":
	case "flat", "rail", "fat":
		m.Fabric.Kind = o.fabric
	default:
		return nil, fmt.Errorf("--fabric %q is none of flat, rail, fat", o.fabric)
	}
	if o.leaf > 0 {
		m.Fabric.Leaf = o.leaf
	}
	if o.pod > 0 {
		m.Fabric.Pod = o.pod
	}
	if o.over > 0 {
		m.Fabric.Over = o.over
	}
	return m, nil
}

// setting makes the world of the options.
func (o *options) setting(m *cost.Machine) (sim.Setting, error) {
	set := sim.Setting{Fabric: m.Fabric, Staged: o.staged, Apart: o.apart || o.loss > 0}
	var err error
	switch {
	case o.cliques != "":
		set.Cliques, err = plan.ParseCliques(o.cliques, o.ranks)
	case m.Name == "dgx":
		set.Cliques = plan.EqualCliques(o.ranks, 8)
	default:
		set.Cliques = plan.EqualCliques(o.ranks, o.ranks)
	}
	for _, share := range []struct {
		flag  string
		value float64
	}{{"--stragglers", o.stragglers}, {"--loss", o.loss}} {
		if share.value < 0 || share.value > 1 {
			return set, fmt.Errorf("%s %g is not in 0 … 1", share.flag, share.value)
		}
	}
	if o.stragglers > 0 {
		rng := rand.New(rand.NewPCG(o.seed, 0))
		slow := map[int]bool{}
		for range max(1, int(o.stragglers*float64(o.ranks))) {
			slow[rng.IntN(o.ranks)] = true
		}
		set.Slow = func(rank int) float64 {
			if slow[rank] {
				return o.slow
			}
			return 1
		}
	}
	return set, err
}

// linear are methods whose number of ops grows with the ranks.
var linear = map[string]bool{planner.Ring: true, planner.Direct: true, planner.Eager: true, planner.Relay: true}

// choose lists the methods to be timed.
func (o *options) choose(c plan.Coll, cliques *plan.Cliques) ([]string, error) {
	against := func(m string) string {
		return planner.Job{Coll: c, Method: m, Ranks: o.ranks, Cliques: cliques}.Against()
	}
	for _, m := range o.methods {
		if reason := against(m); reason != "" {
			return nil, fmt.Errorf("--methods %s: %s", m, reason)
		}
	}
	if len(o.methods) > 0 {
		return o.methods, nil
	}
	var list []string
	for _, m := range planner.Methods(c) {
		if against(m) != "" || o.ranks > 4096 && (linear[m] || m == planner.RHD || m == planner.RD) {
			continue
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s of %d ranks in %d cliques: no method; name one with --methods to see why", c, o.ranks, cliques.Count())
	}
	return list, nil
}

func (o *options) time(w io.Writer, m *cost.Machine, set sim.Setting, sizes []int64, j planner.Job) error {
	world, err := sim.Build(j.Ranks, j.Plan, set)
	if err != nil {
		return err
	}
	for _, bytes := range sizes {
		began := time.Now()
		t, err := world.Time(m, float64(bytes), sim.Weather{Loss: o.loss, Timeout: float64(o.timeout), Seed: o.seed})
		if err != nil {
			return err
		}
		l := line{Coll: j.Coll.String(), Method: j.Method, Ranks: j.Ranks, Cliques: set.Cliques.Count(), Bytes: bytes, US: t.NS / 1e3, Rounds: t.Rounds,
			Programs: world.Programs(), Kinds: world.Kinds(), PlanS: world.Planning.Seconds(), MergeS: world.Merging.Seconds(), SimS: time.Since(began).Seconds(), Events: t.Events}
		if o.json {
			err = json.NewEncoder(w).Encode(l)
		} else {
			_, err = fmt.Fprintf(w, "  %-9s %12d %14.1f %8d %8d %8.2f %8.2f %8.2f %9d\n", l.Method, l.Bytes, l.US, l.Rounds, l.Kinds, l.PlanS, l.MergeS, l.SimS, l.Events)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
