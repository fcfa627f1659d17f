package comm

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/device/host/control"
)

func TestTracePath(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"run.json", "run.ho_st.7.json"},
		{"/a/run", "/a/run.ho_st.7"},
		{"r%r.json", "r3.json"},
		{"%h/%p", "ho_st/7"},
		{"100%%.json", "100%.json"},
	} {
		if got := tracePath(c.pattern, "ho/st", 7, 3); got != c.want {
			t.Errorf("%s: %s, want %s", c.pattern, got, c.want)
		}
	}
}

// Whatever the delays of both ends are, the offset lies within what is said.
func TestClocksBetween(t *testing.T) {
	const ahead = 1_000_000
	for _, c := range []struct{ from, to, from0, to0 uint64 }{
		{100, 200, 100, 200}, // true times of sending and receiving; the gather is there at 150
		{149, 151, 10, 900},
		{10, 900, 149, 151},
		{0, 150, 150, 300},
		{150, 150, 150, 150},
	} {
		k := between(c.from+ahead, c.to+ahead, c.from0, c.to0)
		if d := k.offset - ahead; !k.known || d > k.within || -d > k.within || k.within > int64(c.to-c.from+c.to0-c.from0+1) {
			t.Errorf("%+v: offset %d within %d", c, k.offset, k.within)
		}
		k = between(c.from, c.to, c.from0+ahead, c.to0+ahead) // behind
		if d := k.offset + ahead; d > k.within || -d > k.within {
			t.Errorf("%+v: offset %d within %d", c, k.offset, k.within)
		}
	}
}

// A front that offers no tracing is an error, and the communicator is not made.
func TestTraceWithoutAFront(t *testing.T) {
	if (control.Trace{}).OK() {
		t.Fatal("no table is a table")
	}
	e := testEngine(t, "GCCL_TRACE", filepath.Join(t.TempDir(), "t.json"))
	id, err := e.UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	err = newComm(t, e).Init(1, 0, [][128]byte{id}, defaultConfig(t, e))
	if err == nil || !strings.Contains(err.Error(), "GCCL_TRACE") {
		t.Errorf("%v", err)
	}
}
