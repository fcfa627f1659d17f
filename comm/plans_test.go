package comm

import (
	"sync"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/device/host/control"
)

// With many ranks and every root the launch table outgrows its first block: all plans are found, also by readers that look
// while it grows.
func TestManyPlans(t *testing.T) {
	const n = 64
	cs := initAll(t, testEngine(t), n)
	c := cs[5]
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Add(1)
	go func() {
		defer readers.Done()
		for seen := false; ; {
			has := c.ctl.HasPlan(uint32(plan.Broadcast), 0, 0)
			if seen && !has {
				t.Error("a plan is gone while the table grows")
				return
			}
			seen = has
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	rooted := []plan.Coll{plan.Broadcast, plan.Reduce, plan.Gather, plan.Scatter}
	every := func(f func(coll, class, root uint32)) {
		for _, coll := range rooted {
			for class := range uint32(control.Classes) {
				for root := range uint32(n) {
					f(uint32(coll), class, root)
				}
			}
		}
	}
	every(func(coll, class, root uint32) {
		if err := c.Plan(coll, class, root); err != nil {
			t.Fatalf("coll %d class %d root %d: %v", coll, class, root, err)
		}
	})
	close(stop)
	readers.Wait()
	every(func(coll, class, root uint32) {
		if !c.ctl.HasPlan(coll, class, root) {
			t.Errorf("coll %d class %d root %d: no plan", coll, class, root)
		}
	})
	destroyAll(t, cs)
}
