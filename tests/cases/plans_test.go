package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// A program runs a user's plans and a measured machine's methods, and its data is right.
func TestUserPlansAndMachines(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plans := "# all-reduce of three ranks\n"
	for r := range 3 {
		p, err := planner.Make(plan.AllReduce, planner.Tree, 3, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Method = "mine"
		plans += p.String()
	}
	m, err := cost.Builtin("dgx")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{
		"GCCL_PLAN_FILE=" + file("plans", plans), "GCCL_TUNE_FILE=" + file("machine", m.String()), "GCCL_TUNE_FILE=" + file("table", "all_reduce * rhd\n"),
		"NCCL_ALGO=PAT,Tree", "NCCL_PROTO=LL,Simple",
	} {
		t.Run(set, func(t *testing.T) { check(t, "alive", "procs", 3, set) })
	}
}
