package comm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

func fileWith(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func plansOf(t *testing.T, j planner.Job) string {
	t.Helper()
	text := ""
	for r := range j.Ranks {
		p, err := j.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		p.Method = "mine"
		text += p.String()
	}
	return text
}

// A user's plans are taken for their collective and root, the library's for all others.
func TestPlanFile(t *testing.T) {
	name := fileWith(t, plansOf(t, planner.Job{Coll: plan.AllReduce, Method: planner.Tree, Ranks: 3})+
		plansOf(t, planner.Job{Coll: plan.Broadcast, Method: planner.Ring, Ranks: 3, Root: 2})+
		plansOf(t, planner.Job{Coll: plan.AllGather, Method: planner.Eager, Ranks: 3})+
		plansOf(t, planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 4}))
	cs := initAll(t, testEngine(t, "GCCL_PLAN_FILE", name), 3)
	for _, c := range []struct {
		coll        plan.Coll
		class, root uint32
		want        string
	}{
		{plan.AllReduce, 0, 0, "mine"}, {plan.AllReduce, 3, 0, "mine"},
		{plan.Broadcast, 0, 2, "mine"}, {plan.Broadcast, 0, 1, planner.Direct},
		{plan.AllGather, 0, 0, "mine"}, {plan.AllGather, 1, 0, planner.Direct},
		{plan.Reduce, 0, 0, planner.Eager},
	} {
		p, err := cs[1].planFor(c.coll, c.class, int(c.root))
		if err != nil || p.Method != c.want {
			t.Errorf("%s class %d root %d: %v, error %v, want %s", c.coll, c.class, c.root, p, err, c.want)
		}
		if err := cs[1].Plan(uint32(c.coll), c.class, c.root); err != nil {
			t.Error(err)
		}
	}
	destroyAll(t, cs)
}

// What is wrong with a file is an error of creation on all ranks, with the line.
func TestWrongFiles(t *testing.T) {
	good := plansOf(t, planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 3})
	m, err := cost.Builtin("host")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ setting, text, want string }{
		{"GCCL_PLAN_FILE", strings.Replace(good, "wait data 0\n", "", 1), "line 9: "},
		{"GCCL_PLAN_FILE", "plan nothing", "line 1 "},
		{"GCCL_TUNE_FILE", "all_reduce * magic", "line 1 "},
		{"GCCL_TUNE_FILE", m.String() + "speed 3\n", `no number "speed"`},
	} {
		e := testEngine(t, c.setting, fileWith(t, c.text))
		_, errs := mixed(t, e, e)
		wantAll(t, c.text, errs, c.setting, c.want)
	}
	e := testEngine(t, "GCCL_PLAN_FILE", "/nowhere")
	_, errs := mixed(t, e, e)
	wantAll(t, "no file", errs, "GCCL_PLAN_FILE", "cannot be read")
	e = testEngine(t, "GCCL_PLAN_FILE", fileWith(t, plansOf(t, planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 3})), "GCCL_DETERMINISTIC", "1")
	_, errs = mixed(t, e, e)
	wantAll(t, "deterministic", errs, "pins the order")
}

// Ranks with other files have another table.
func TestDifferentFiles(t *testing.T) {
	with := testEngine(t, "GCCL_TUNE_FILE", fileWith(t, "all_reduce * ring"))
	_, errs := mixed(t, testEngine(t), with)
	wantAll(t, "table", errs, "the tuning table")
	with = testEngine(t, "GCCL_PLAN_FILE", fileWith(t, plansOf(t, planner.Job{Coll: plan.AllReduce, Method: planner.Ring, Ranks: 3})))
	_, errs = mixed(t, testEngine(t), with)
	wantAll(t, "plans", errs, "the tuning table")
}

// A measured machine makes the table.
func TestMachineFile(t *testing.T) {
	m, err := cost.Builtin("dgx")
	if err != nil {
		t.Fatal(err)
	}
	destroyAll(t, initAll(t, testEngine(t, "GCCL_TUNE_FILE", fileWith(t, m.String())), 4))
}
