package planner_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

var update = flag.Bool("update", false, "rewrite golden files")

// each calls f for every method in a few worlds.
func each(f func(c plan.Coll, name string, n, root int)) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			for _, n := range []int{1, 2, 3, 6, 8, 11} {
				if c == plan.SendRecv && n > 2 {
					break
				}
				f(c, name, n, n-1)
			}
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	each(func(c plan.Coll, name string, n, root int) {
		for r := range n {
			p, err := planner.Make(c, name, n, r, root)
			if err != nil {
				t.Fatal(err)
			}
			q, err := plan.Parse(p.String())
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(p, q) {
				t.Fatalf("text form does not keep the plan:\n%s\n%s", p, q)
			}
		}
	})
}

func TestGolden(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			n := 6
			if c == plan.SendRecv {
				n = 2
			}
			text := ""
			for _, r := range []int{0, n - 1} {
				p, err := planner.Make(c, name, n, r, 0)
				if err != nil {
					t.Fatal(err)
				}
				text += p.String() + "\n"
			}
			path := filepath.Join("testdata", fmt.Sprintf("%s_%s.txt", c, name))
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("%s differs (rewrite with -update if meant):\n%s", path, text)
			}
		}
	}
}
