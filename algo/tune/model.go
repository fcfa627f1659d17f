package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

// Machine is what costs are computed for.
type Machine = cost.Machine

// Candidate is one way to do a collective of one size, with its predicted time or with what is against it.
type Candidate struct {
	Method, Proto string
	Channels      int
	NS            float64
	Against       string
}

// Model predicts times from what all ranks know alike. Few ranks are simulated; of many, the loads of some stand for all.
type Model struct {
	machine *Machine
	nranks  int
	cliques *plan.Cliques
	ways    []way
	loads   map[planner.Job][]*sim.Load
	worlds  map[planner.Job]*sim.World
}

// maxSimulated is the largest number of ranks that are simulated for a table: it takes some tens of milliseconds.
const maxSimulated = 8

// way is a protocol and a number of channels, with the machine as it is under them.
type way struct {
	proto    string
	channels int
	machine  *Machine
}

// NewModel makes a model of a world on a machine. Protocols are those allowed; nil allows all.
func NewModel(m *Machine, nranks int, cliques *plan.Cliques, protos []string) *Model {
	md := &Model{machine: m, nranks: nranks, cliques: cliques, loads: map[planner.Job][]*sim.Load{}, worlds: map[planner.Job]*sim.World{}}
	for _, p := range m.Protos {
		if protos != nil && !slices.Contains(protos, p.Name) {
			continue
		}
		for ch := 1; ; ch *= 2 {
			md.ways = append(md.ways, way{p.Name, ch, under(m, p, ch)})
			if 2*ch > m.Channels {
				break
			}
		}
	}
	return md
}

// under is a machine whose links carry a protocol over some channels. Each channel after the first costs an op.
func under(m *Machine, p cost.Proto, channels int) *Machine {
	u := *m
	u.Call += float64(channels-1) * m.Op
	slower := 1 / p.Rate
	if m.ChannelRate > 0 {
		carried := float64(channels) * m.ChannelRate
		if m.Between.Rate > 0 {
			u.Between.Rate = min(m.Between.Rate, carried)
		}
		if fastest := m.User.At(math.Inf(1)); fastest > 0 {
			slower *= max(1, 1/(fastest*carried))
		}
	}
	u.Between.Rate *= p.Rate
	u.User, u.Scratch = scaled(m.User, slower), scaled(m.Scratch, slower)
	u.Inside.Latency *= p.Latency
	u.Between.Latency *= p.Latency
	return &u
}

func scaled(c cost.Curve, by float64) cost.Curve {
	out := slices.Clone(c)
	for k := range out {
		out[k].Value *= by
	}
	return out
}

// job is a method of this world.
func (md *Model) job(c plan.Coll, method string) planner.Job {
	j := planner.Job{Coll: c, Method: method, Ranks: md.nranks, Cliques: md.cliques}
	if c == plan.SendRecv {
		j.Ranks, j.Cliques = 2, nil
		if md.cliques.Count() > 1 {
			j.Cliques = plan.EqualCliques(2, 1)
		}
	}
	return j
}

// loadsOf plans a few ranks: ends and middle, where methods differ most.
func (md *Model) loadsOf(j planner.Job) ([]*sim.Load, string) {
	if reason := j.Against(); reason != "" {
		return nil, reason
	}
	if l, ok := md.loads[j]; ok {
		return l, ""
	}
	var loads []*sim.Load
	ranks := []int{0, 1, j.Ranks / 2, j.Ranks - 1}
	slices.Sort(ranks)
	for _, r := range slices.Compact(ranks) {
		if r >= j.Ranks {
			continue
		}
		p, err := j.Plan(r)
		if err != nil {
			return nil, err.Error()
		}
		l, err := sim.LoadOf(p, sim.Setting{Cliques: j.Cliques, Fabric: md.machine.Fabric})
		if err != nil {
			return nil, err.Error()
		}
		loads = append(loads, l)
	}
	md.loads[j] = loads
	if j.Ranks <= maxSimulated && len(md.ways) == 1 {
		world, err := sim.Build(j.Ranks, j.Plan, sim.Setting{Cliques: j.Cliques, Fabric: md.machine.Fabric})
		if err != nil {
			return nil, err.Error()
		}
		md.worlds[j] = world
	}
	return loads, ""
}

// predict is the time of a method under a way.
func (md *Model) predict(j planner.Job, loads []*sim.Load, w *way, bytes int64) float64 {
	if world := md.worlds[j]; world != nil {
		t, err := world.Time(w.machine, float64(bytes), sim.Weather{})
		if err != nil {
			return math.Inf(1)
		}
		return t.NS
	}
	d := j.Depth()
	t := 0.0
	for _, l := range loads {
		t = max(t, l.Estimate(w.machine, float64(bytes), sim.Chain(d)))
	}
	return t
}

// fitsEager says why a size may not go through an eager slot.
func (md *Model) fitsEager(method string, bytes int64) string {
	if method == planner.Eager && bytes > md.machine.Eager {
		return fmt.Sprintf("%d bytes do not fit an eager slot of %d", bytes, md.machine.Eager)
	}
	return ""
}

// Candidates lists the methods of a collective for a size, each at its best, the fastest first; then those that something is
// against.
func (md *Model) Candidates(c plan.Coll, bytes int64) []Candidate {
	var list []Candidate
	for _, m := range planner.Methods(c) {
		best := Candidate{Method: m, NS: math.Inf(1)}
		j := md.job(c, m)
		loads, against := md.loadsOf(j)
		if against == "" {
			against = md.fitsEager(m, bytes)
		}
		if best.Against = against; against == "" {
			for k := range md.ways {
				w := &md.ways[k]
				if t := md.predict(j, loads, w, bytes); t < best.NS {
					best = Candidate{Method: m, Proto: w.proto, Channels: w.channels, NS: t}
				}
			}
		}
		list = append(list, best)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		switch {
		case a.NS < b.NS:
			return -1
		case a.NS > b.NS:
			return 1
		}
		return 0
	})
	return list
}

// MaxRows is how many rows a collective has at most in our own tables; a launch table has classes for more.
const MaxRows = 4

// sizes are where choices are made, by powers of four: the largest stands for all above it.
func sizes() []int64 {
	var list []int64
	for k := 3; k <= 31; k += 2 {
		list = append(list, 1<<k)
	}
	return list
}

// rows makes the rows of a collective from predictions, of the methods allowed: the fastest at each size, with as few changes as
// lose no more than a tenth.
func (md *Model) rows(c plan.Coll, allowed []string) []Row {
	const tolerance = 1.1
	type option struct {
		method, proto string
		channels      int
	}
	at := sizes()
	times := map[option][]float64{}
	best := make([]float64, len(at))
	for k, bytes := range at {
		best[k] = math.Inf(1)
		for _, m := range allowed {
			j := md.job(c, m)
			loads, against := md.loadsOf(j)
			if against != "" || md.fitsEager(m, bytes) != "" {
				continue
			}
			for i := range md.ways {
				w := &md.ways[i]
				o := option{m, w.proto, w.channels}
				if times[o] == nil {
					times[o] = slices.Repeat([]float64{math.Inf(1)}, len(at))
				}
				times[o][k] = md.predict(j, loads, w, bytes)
				best[k] = min(best[k], times[o][k])
			}
		}
	}
	var options []option // in one order on all ranks
	for _, m := range allowed {
		for i := range md.ways {
			if o := (option{m, md.ways[i].proto, md.ways[i].channels}); times[o] != nil && !slices.Contains(options, o) {
				options = append(options, o)
			}
		}
	}
	if len(options) == 0 {
		return nil
	}
	// From the smallest size on, the option that stays within the tolerance longest; the last row takes what is left.
	var out []Row
	for from := 0; from < len(at); {
		var pick option
		to, loss := from, math.Inf(1)
		for _, o := range options {
			end, worst := from, 0.0
			for end < len(at) && times[o][end] <= tolerance*best[end] {
				worst += times[o][end] / best[end]
				end++
			}
			if len(out) == MaxRows-1 { // the option that loses least over all that is left
				end, worst = len(at), 0
				for k := from; k < len(at); k++ {
					worst += times[o][k] / best[k]
				}
				if math.IsInf(worst, 1) {
					continue
				}
			}
			if n := float64(end - from); end > to || end == to && n > 0 && worst/n < loss {
				to, pick = end, o
				loss = worst / max(n, 1)
			}
		}
		if to == from {
			return out // what is left is too large for all of them
		}
		limit := int64(NoLimit)
		if to < len(at) {
			limit = at[to-1]
		}
		if pick.method == planner.Eager {
			limit = min(limit, md.machine.Eager)
		}
		out = append(out, Row{Coll: c, MaxBytes: limit, Method: pick.method, Proto: pick.proto, Channels: pick.channels})
		from = to
	}
	return out
}
