package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// text is a file of all ranks' plans.
func text(t *testing.T, c plan.Coll, method string, n int) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n\n", c, method)
	for r := range n {
		p, err := planner.Make(c, method, n, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s # of rank %d\n%s\n", strings.SplitN(p.String(), "\n", 2)[0], r, strings.SplitN(p.String(), "\n", 2)[1])
	}
	return b.String()
}

func verify(file string) error {
	f, err := plan.ParseFile(file)
	if err != nil {
		return err
	}
	groups, err := f.Groups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := g.Verify(nil); err != nil {
			return err
		}
	}
	return nil
}

func TestFiles(t *testing.T) {
	for c := range plan.SendRecv {
		for _, m := range planner.Methods(c) {
			if err := verify(text(t, c, m, 3) + text(t, plan.AllReduce, planner.RD, 4)); err != nil {
				t.Errorf("%s %s: %v", c, m, err)
			}
		}
	}
}

// What is wrong is said with the line where it is.
func TestFileErrors(t *testing.T) {
	ring := text(t, plan.AllReduce, planner.Ring, 3)
	lines := strings.Split(ring, "\n")
	lineOf := func(what string, k int) int {
		for n, l := range lines {
			if strings.Contains(l, what) {
				if k == 0 {
					return n + 1
				}
				k--
			}
		}
		t.Fatalf("no %q in\n%s", what, ring)
		return 0
	}
	without := func(n int) string {
		return strings.Join(append(append([]string(nil), lines[:n-1]...), lines[n:]...), "\n")
	}
	last := lineOf("plan all_reduce", 2)
	for name, c := range map[string]struct{ file, want string }{
		"empty":         {"# nothing\n", "has no plan"},
		"word":          {strings.Replace(ring, "signal data", "shout data", 1), fmt.Sprintf("line %d ", lineOf("signal data", 0))},
		"form":          {strings.Replace(ring, "signal data 1", "signal data 7", 1), fmt.Sprintf("line %d: ", lineOf("signal data 1", 0))},
		"missing wait":  {without(lineOf("wait data", 0)), fmt.Sprintf("line %d: ", lineOf("wait data", 0)+1)},
		"missing rank":  {strings.Join(lines[:last-1], "\n"), "no plan of rank 2"},
		"rank twice":    {ring + ring, "a second plan of this rank; the first is in line 3"},
		"too many":      {"plan all_reduce x ranks 1000000 rank 999999 root 0 send_parts 1 recv_parts 1 steps 1 places 0\n", "fewer plans"},
		"too long":      {"plan all_reduce x ranks 1 rank 0 root 0 send_parts 1 recv_parts 1 steps 1 places 0\nloop 2000000000\nend\n", "to verify it takes"},
		"ahead of head": {"signal step 1\n" + ring, "line 1 "},
	} {
		if err := verify(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, m := range []string{planner.Ring, planner.Direct, planner.Eager} {
		all := ""
		for r := range 2 {
			p, err := planner.Make(plan.AllReduce, m, 2, r, 0)
			if err != nil {
				f.Fatal(err)
			}
			all += p.String()
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := plan.ParseFile(text)
		if err != nil {
			return
		}
		groups, err := file.Groups()
		if err != nil {
			return
		}
		for _, g := range groups {
			for _, p := range g.Plans {
				if p == nil {
					continue
				}
				if again, err := plan.Parse(p.String()); err != nil || again.String() != p.String() {
					t.Fatalf("error %v\n%s\n%s", err, p, again)
				}
			}
			if g.NRanks <= 8 {
				_ = g.Verify(nil) // must end and not panic
			}
		}
	})
}
