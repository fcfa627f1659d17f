package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// A foreign tuner knows NCCL's algorithms and protocols, and answers for one size at a time. Its answers become rows.

// Costs are predicted microseconds of NCCL's algorithms and protocols; -1 where a way cannot be taken. Indexes: algorithm
// tree, ring, collnet direct, collnet chain, NVLS, NVLS tree, PAT; protocol LL, LL128, simple (NCCL 2.30.7,
// src/include/nccl_common.h).
type Costs [7][3]float32

// Ask asks a foreign tuner about a collective by NCCL's number (ncclFunc_t) and the bytes of the operation. It may change the
// costs; channels is 0 if it has no wish.
type Ask func(coll int, bytes int64, costs *Costs) (channels int, err error)

// foreignColls are the collectives that NCCL asks its tuners about, with their numbers.
var foreignColls = map[plan.Coll]int{plan.Broadcast: 0, plan.Reduce: 1, plan.AllGather: 2, plan.ReduceScatter: 3, plan.AllReduce: 4}

var foreignAlgos = map[string]int{planner.Tree: 0, planner.Ring: 1, planner.PAT: 6}

const simple = 2

// largestAsked is the largest send buffer that the tuner is asked about: its answer holds for all above.
const largestAsked = 1 << 40

// Foreign asks a foreign tuner and returns the table that follows: a collective has at most maxRows rows. base is the
// library's own decision, which holds where the tuner leaves the costs as they are. Where it changes them, the cheapest of
// its table is taken, unless our own method is predicted to be cheaper still.
func Foreign(base Table, nranks int, s Settings, maxRows int, ask Ask) (t Table, notes []string, err error) {
	wishes, _, err := parseAlgo(s.Algo)
	if err != nil {
		return nil, nil, err
	}
	md := NewModel(s.OnMachine(), nranks, s.Cliques, nil)
	for c := range plan.NumColls {
		rows := base.of(c)
		number, asked := foreignColls[c]
		if !asked || len(rows) == 0 || s.Table.of(c) != nil || s.RankOrder && c.Reduces() {
			t = append(t, rows...) // decided by somebody who comes before a tuner, or none of its concern
			continue
		}
		f := foreign1{coll: c, number: number, nranks: nranks, base: rows, ask: ask, curves: map[string][]float64{}}
		var allowed []string
		for m := range foreignAlgos {
			if s.fits(c, m, nranks) && wishes.allows(c, m) {
				allowed = append(allowed, m)
			}
		}
		for _, m := range allowed {
			f.curves[m] = md.curve(c, m)
		}
		for _, r := range rows {
			if f.curves[r.Method] == nil {
				f.curves[r.Method] = md.curve(c, r.Method)
			}
		}
		f.allowed = allowed
		mine, err := f.rows()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c, err)
		}
		if f.unusable {
			notes = append(notes, fmt.Sprintf("%s: the tuner gives a cost to ways that cannot be taken here; that is ignored", c))
		}
		if len(mine) > maxRows {
			notes = append(notes, fmt.Sprintf("%s: the tuner decides in %d ranges of sizes, of which %d can be kept: the narrowest are left out",
				c, len(mine), maxRows))
			mine = widest(mine, maxRows)
		}
		t = append(t, mine...)
	}
	return t, notes, nil
}

// allows says whether a wish of the user's leaves a method.
func (w *wishes) allows(c plan.Coll, method string) bool {
	one := w.byColl[c]
	if one == nil {
		one = w.any
	}
	return one == nil || slices.Contains(one.methods, method) != one.not
}

// curve is the predicted time of a method in ns at each of sizes(), by loads: a tuner is asked for many sizes, and simulations take long.
func (md *Model) curve(c plan.Coll, method string) []float64 {
	j := md.job(c, method)
	out := slices.Repeat([]float64{math.Inf(1)}, len(sizes()))
	loads, against := md.loadsOf(j)
	if against != "" {
		return out
	}
	worlds := md.worlds
	md.worlds = nil
	for k, bytes := range sizes() {
		for i := range md.ways {
			out[k] = min(out[k], md.predict(j, loads, &md.ways[i], bytes))
		}
	}
	md.worlds = worlds
	return out
}

// at is a curve at a size, straight between its points, on both axes logarithmic.
func at(curve []float64, bytes int64) float64 {
	list := sizes()
	b := float64(max(bytes, 1))
	k := 1
	for k < len(list)-1 && float64(list[k]) < b {
		k++
	}
	x0, x1 := math.Log(float64(list[k-1])), math.Log(float64(list[k]))
	y0, y1 := math.Log(curve[k-1]), math.Log(curve[k])
	return math.Exp(y0 + (y1-y0)*max(0, (math.Log(b)-x0)/(x1-x0)))
}

// foreign1 is the questions about one collective.
type foreign1 struct {
	coll           plan.Coll
	number, nranks int
	base           Table
	allowed        []string
	curves         map[string][]float64
	ask            Ask
	unusable       bool
}

// decide is the row for a size of the largest send buffer, without a limit.
func (f *foreign1) decide(bytes int64) (Row, error) {
	own, _ := f.base.Row(f.coll, bytes)
	own.MaxBytes = 0
	total := bytes
	if f.coll == plan.AllGather { // NCCL counts what all ranks get
		total *= int64(f.nranks)
	}
	var costs Costs
	for a := range costs {
		costs[a] = [3]float32{-1, -1, -1}
	}
	for _, m := range f.allowed {
		costs[foreignAlgos[m]][simple] = float32(at(f.curves[m], bytes) / 1000)
	}
	before := costs
	channels, err := f.ask(f.number, total, &costs)
	if err != nil {
		return Row{}, err
	}
	pick := own
	if costs != before {
		best := at(f.curves[own.Method], bytes) / 1000
		if a, ok := foreignAlgos[own.Method]; ok && before[a][simple] >= 0 {
			best = float64(costs[a][simple])
			if best < 0 || math.IsNaN(best) {
				best = math.Inf(1)
			}
		}
		for a := range costs {
			for p, us := range costs[a] {
				if before[a][p] < 0 {
					f.unusable = f.unusable || us != before[a][p]
					continue
				}
				if us >= 0 && float64(us) < best {
					best = float64(us)
					pick = Row{Coll: f.coll, Method: methodOf(a)}
				}
			}
		}
	}
	if channels > 0 {
		pick.Channels = min(channels, maxChannels)
		pick.Proto = cmp.Or(pick.Proto, "simple")
		if pick.plain() {
			pick.Proto, pick.Channels = "", 0
		}
	}
	return pick, nil
}

func methodOf(algo int) string {
	for m, a := range foreignAlgos {
		if a == algo {
			return m
		}
	}
	return ""
}

// rows asks at powers of two, and where two answers differ, finds the bytes where they change.
func (f *foreign1) rows() (out Table, err error) {
	last, err := f.decide(1)
	if err != nil {
		return nil, err
	}
	for low := int64(1); low < largestAsked; low *= 2 {
		for from := low; ; {
			end, next, err := f.change(last, from, 2*low)
			if err != nil {
				return nil, err
			}
			if end == 2*low {
				break
			}
			last.MaxBytes = end
			out = append(out, last)
			last, from = next, end+1
		}
	}
	last.MaxBytes = NoLimit
	return append(out, last), nil
}

// change finds the largest size up to which a row that holds at from holds, if it does not at to, and the row behind it.
func (f *foreign1) change(row Row, from, to int64) (end int64, next Row, err error) {
	if from >= to {
		return to, row, nil
	}
	if next, err = f.decide(to); err != nil || next == row {
		return to, next, err
	}
	for to-from > 1 {
		mid := from + (to-from)/2
		r, err := f.decide(mid)
		if err != nil {
			return 0, row, err
		}
		if r == row {
			from = mid
		} else {
			to, next = mid, r
		}
	}
	return from, next, nil
}

// widest keeps the rows that span the most sizes, counted in powers of two.
func widest(rows Table, n int) Table {
	rows = slices.Clone(rows)
	for len(rows) > n {
		narrow, span := -1, math.Inf(1)
		for k := range rows[:len(rows)-1] {
			from := 1.0
			if k > 0 {
				from = float64(rows[k-1].MaxBytes)
			}
			if w := math.Log(float64(rows[k].MaxBytes)) - math.Log(from); w < span {
				narrow, span = k, w
			}
		}
		rows = slices.Delete(rows, narrow, narrow+1)
	}
	return rows
}
