package tune

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

func machine(t *testing.T, name string) *cost.Machine {
	t.Helper()
	m, err := cost.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Of many ranks the model adds up a few; the simulator runs all of them. What the model chooses must be near the best by the simulator
// at most sizes.
func TestChoicesAgainstTheSimulator(t *testing.T) {
	const near, share = 1.5, 0.75
	for _, w := range []struct {
		machine string
		cliques *plan.Cliques
	}{
		{"host", plan.EqualCliques(2, 2)}, {"host", plan.EqualCliques(8, 8)}, {"host", plan.EqualCliques(4, 1)}, {"host", plan.EqualCliques(16, 4)},
		{"dgx", plan.EqualCliques(8, 8)}, {"dgx", plan.EqualCliques(64, 8)}, {"dgx", plan.EqualCliques(24, 1)},
	} {
		m := machine(t, w.machine)
		m.Protos, m.Channels, m.ChannelRate = m.Protos[:1], 1, 0 // the simulator runs one of each
		n := w.cliques.Ranks()
		md := NewModel(m, n, w.cliques, nil)
		md.ways = append(md.ways, md.ways[0]) // so that nothing is simulated
		good, total := 0, 0
		for c := range plan.SendRecv {
			worlds := map[string]*sim.World{}
			for bytes := int64(8); bytes <= 1<<28; bytes *= 8 {
				best, picked, pick := math.Inf(1), 0.0, ""
				for k, can := range md.Candidates(c, bytes) {
					if can.Against != "" {
						continue
					}
					if worlds[can.Method] == nil {
						j := planner.Job{Coll: c, Method: can.Method, Ranks: n, Cliques: w.cliques}
						world, err := sim.Build(n, j.Plan, sim.Setting{Cliques: w.cliques, Fabric: m.Fabric})
						if err != nil {
							t.Fatal(err)
						}
						worlds[can.Method] = world
					}
					got, err := worlds[can.Method].Time(m, float64(bytes), sim.Weather{})
					if err != nil {
						t.Fatal(err)
					}
					if k == 0 {
						picked, pick = got.NS, can.Method
					}
					best = min(best, got.NS)
				}
				total++
				if picked <= near*best {
					good++
				} else {
					t.Logf("%s, %d ranks in %d cliques, %s of %d bytes: %s takes %.1f us, the best %.1f", w.machine, n, w.cliques.Count(), c, bytes, pick, picked/1e3, best/1e3)
				}
			}
		}
		if float64(good) < share*float64(total) {
			t.Errorf("%s, %d ranks in %d cliques: %d of %d choices are near the best", w.machine, n, w.cliques.Count(), good, total)
		}
	}
}

// Making a table of a few hosts takes no time that creation would feel.
func BenchmarkTable(b *testing.B) {
	w := plan.EqualCliques(maxSimulated, 4)
	for b.Loop() {
		if _, _, err := Default(maxSimulated, Settings{EagerBytes: 4096, Cliques: w}); err != nil {
			b.Fatal(err)
		}
	}
}

// A measured machine decides within what a launch table holds, and every size has a method.
func TestMachineTable(t *testing.T) {
	for _, name := range cost.BuiltinNames {
		for _, w := range []*plan.Cliques{nil, plan.EqualCliques(16, 4)} {
			for _, proto := range []string{"", "ll128", "^ll,ll128", "allreduce:ll"} {
				table, notes, err := Default(16, Settings{EagerBytes: 4096, Cliques: w, Machine: machine(t, name), Proto: proto})
				if err != nil {
					t.Fatal(err)
				}
				if err := table.check(); err != nil {
					t.Error(err)
				}
				used := map[plan.Coll]int{}
				for _, r := range table {
					if used[r.Coll]++; used[r.Coll] > MaxRows {
						t.Errorf("%s: %s has more than %d rows\n%s", name, r.Coll, MaxRows, table)
					}
					if r.Method == planner.Eager && r.MaxBytes > 4096 {
						t.Errorf("%s: eager up to %d bytes", name, r.MaxBytes)
					}
					if name == "dgx" && (proto == "ll128" || proto == "allreduce:ll" && r.Coll == plan.AllReduce) && !strings.HasPrefix(r.Proto, "ll") {
						t.Errorf("%s, %q: %+v", name, proto, r)
					}
				}
				again, err := Parse(table.String())
				if err != nil || again.Hash() != table.Hash() {
					t.Errorf("error %v, %s\n%s", err, again, table)
				}
				if name == "host" && proto == "ll128" && len(notes) == 0 {
					t.Error("no note about a protocol that is not there")
				}
			}
		}
	}
}

// Protocols and channels trade latency for rate: few and light for small sizes, many and whole for large ones.
func TestProtocolsAndChannels(t *testing.T) {
	md := NewModel(machine(t, "dgx"), 64, plan.EqualCliques(64, 8), nil)
	best := func(bytes int64) Candidate { // of the methods that have channels
		all := md.Candidates(plan.AllReduce, bytes)
		return all[slices.IndexFunc(all, func(c Candidate) bool { return c.Method != planner.Eager })]
	}
	small, large := best(64), best(1<<30)
	if small.Proto != "ll" || small.Channels != 1 {
		t.Errorf("64 bytes: %+v", small)
	}
	if large.Proto != "simple" || large.Channels < 4 {
		t.Errorf("1 GiB: %+v", large)
	}
}

// A table in a file decides the collectives that it names; rank order beats a machine.
func TestFiles(t *testing.T) {
	m, table, err := ParseFile("all_reduce 1024 rd\nall_reduce * ring\n")
	if err != nil || m != nil {
		t.Fatal(m, err)
	}
	got, _, err := Default(8, Settings{EagerBytes: 100, Table: table})
	if err != nil || got.Pick(plan.AllReduce, 8) != "rd" || got.Pick(plan.AllReduce, 1<<20) != "ring" || got.Pick(plan.Reduce, 8) != "eager" {
		t.Errorf("error %v\n%s", err, got)
	}
	m, table, err = ParseFile(machine(t, "host").String())
	if err != nil || m == nil || table != nil {
		t.Fatal(m, table, err)
	}
	got, _, err = Default(8, Settings{EagerBytes: 100, Machine: m, RankOrder: true})
	if err != nil || got.Pick(plan.AllReduce, 1<<20) != "direct" {
		t.Errorf("error %v\n%s", err, got)
	}
	if _, _, err := ParseFile("all_reduce * magic"); err == nil {
		t.Error("no error")
	}
}

func TestProtoSyntax(t *testing.T) {
	w, err := parseProto("LL,Simple;AllGather:^ll128")
	if err != nil || strings.Join(w.of(plan.AllReduce), " ") != "ll simple" || strings.Join(w.of(plan.AllGather), " ") != "simple ll" {
		t.Errorf("error %v, %v and %v", err, w.of(plan.AllReduce), w.of(plan.AllGather))
	}
	for text, want := range map[string]string{"LL256": `no protocol "ll256"`, "fly:ll": "no collective", "ll,": `no protocol ""`} {
		if _, _, err := Default(4, Settings{Proto: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
