package planner_test

import (
	"fmt"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// sizes of worlds that every method is verified for.
func sizes() []int {
	var ns []int
	for n := 1; n <= 16; n++ {
		ns = append(ns, n)
	}
	return append(ns, 32, 64)
}

// roots worth trying: all of them in small worlds.
func roots(c plan.Coll, n int) []int {
	if c == plan.SendRecv {
		return []int{0, n - 1}
	}
	if !c.Rooted() || n == 1 {
		return []int{0}
	}
	if n > 6 {
		return []int{0, n / 2, n - 1}
	}
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	return all
}

func TestVerifyEveryMethod(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				t.Parallel()
				for _, n := range sizes() {
					if !planner.Fits(c, name, n) {
						break
					}
					for _, root := range roots(c, n) {
						if err := plan.VerifyAll(n, nil, planner.Source(c, name, n, root)); err != nil {
							t.Fatalf("root %d: %v", root, err)
						}
					}
				}
			})
		}
	}
}
