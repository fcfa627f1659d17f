package comm

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/device/host/arena"
)

// counts is what a process holds.
type counts struct{ files, goroutines, mappings, threads int }

func take(t *testing.T) counts {
	t.Helper()
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	c := counts{files: len(fds), goroutines: runtime.NumGoroutine(), mappings: bytes.Count(read("/proc/self/maps"), []byte("\n"))}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	c.threads = len(tasks)
	return c
}

// settle waits until the goroutines that end by themselves have ended.
func settle(t *testing.T, want counts) counts {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		now := take(t)
		if now.goroutines <= want.goroutines && now.files <= want.files || time.Now().After(deadline) {
			return now
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestCyclesLeaveNothing(t *testing.T) {
	e := testEngine(t)
	cycle := func() {
		cs := initAll(t, e, 3)
		kids := []*Comm{newComm(t, e), newComm(t, e), nil}
		noErrors(t, "split", each(3, func(r int) error {
			color := 0
			if kids[r] == nil {
				color = -1
			}
			return cs[r].Split(kids[r], color, 0, cs[r].Config())
		}))
		destroyAll(t, cs)
		destroyAll(t, kids)
	}
	for range 5 {
		cycle()
	}
	before := take(t)
	for range 100 {
		cycle()
	}
	after := settle(t, before)
	if after.files > before.files || after.goroutines > before.goroutines || after.mappings > before.mappings+20 || after.threads > before.threads+4 {
		buf := make([]byte, 1<<20)
		t.Errorf("before %+v, after %+v\n%s", before, after, strings.TrimSpace(string(buf[:runtime.Stack(buf, true)])))
	}
	if a := arena.Existing(); a.Used() != 0 {
		t.Errorf("%d bytes of the arena are in use", a.Used())
	}
}
