package comm

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/bootstrap"
	"github.com/gccl/gccl/net/faulty"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/topo/discover"
)

// twoNICs is the root of a machine with two network devices of 100 Gbit/s.
func twoNICs(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"proc/sys/kernel/hostname": name, "sys/devices/system/node/node0/cpumap": "ff"}
	for _, nic := range []string{"mlx5_0", "mlx5_1"} {
		files["sys/class/infiniband/"+nic+"/ports/1/rate"] = "100 Gb/sec (4X EDR)"
		files["sys/class/infiniband/"+nic+"/ports/1/state"] = "4: ACTIVE"
	}
	for at, text := range files {
		p := filepath.Join(dir, at)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A NIC of both hosts is slow. Nobody says so: the ranks put bytes to each other, and the next decision moves the channels on both.
func TestSlowNICMovesChannels(t *testing.T) {
	const slow, fast = "mlx5_0", "mlx5_1"
	engines := make([]*Engine, 2)
	for h, name := range []string{"a", "b"} {
		engines[h] = testEngine(t, "NCCL_HOSTID", name, "NCCL_NET_MERGE_LEVEL", "LOC") // their place is unknown: as one they would show nothing
		engines[h].local.Sources = discover.Sources{Root: twoNICs(t, name), CPU: func() discover.CPUKind {
			return discover.CPUKind{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 175, Model: 1}
		}}
		engines[h].wrapNet = func(inner transport.Transport) transport.Transport {
			return faulty.Wrap(inner, faulty.Config{Links: []faulty.Link{{Device: fast, Port: 1, BytesPerSecond: 4e9}, {Device: slow, Port: 1, BytesPerSecond: 1e9}}})
		}
	}
	lines := logInto(engines[0], xlog.Graph)
	id, err := engines[0].UniqueID()
	if err != nil {
		t.Fatal(err)
	}
	cs := make([]*Comm, 2)
	for r := range cs {
		cs[r] = newComm(t, engines[r])
	}
	noErrors(t, "init", each(2, func(r int) error {
		return cs[r].Init(2, r, [][bootstrap.IDBytes]byte{id}, defaultConfig(t, engines[r]))
	}))
	uses := func(c *Comm) (n int) {
		for _, k := range c.machine.found.Ring.Channels {
			if k.In != nil && k.In.Net.Name == slow || k.Out != nil && k.Out.Net.Name == slow {
				n++
			}
		}
		return n
	}
	before := []*machine{cs[0].machine, cs[1].machine}
	for r, c := range cs {
		if uses(c) == 0 {
			t.Fatalf("rank %d: no ring uses %s, the test shows nothing:\n%s", r, slow, c.machine.channels)
		}
	}
	reweigh := func(want bool) {
		t.Helper()
		noErrors(t, "reweigh", each(2, func(r int) error {
			changed, err := cs[r].Reweigh(context.Background())
			if changed != want {
				t.Errorf("rank %d: changed is %v", r, changed)
			}
			return err
		}))
	}
	reweigh(false) // the creation was no load
	putBytes(t, cs, 64, 1<<20)
	for r, c := range cs {
		if c.machine != before[r] {
			t.Error("the load alone has changed the decision")
		}
	}
	reweigh(true)
	for r, c := range cs {
		if got, all := uses(c), len(c.machine.found.Ring.Channels); got*2 >= all {
			t.Errorf("rank %d: %d of %d rings use %s:\n%s", r, got, all, slow, c.machine.channels)
		}
	}
	if !strings.Contains(lines.text(), "channels have moved") || !strings.Contains(lines.text(), "NET/") {
		t.Errorf("log\n%s", lines.text())
	}
	putBytes(t, cs, 64, 1<<20)
	reweigh(false) // the same rates are no news
	destroyAll(t, cs)
}

// putBytes has both ranks put n times size bytes to each other.
func putBytes(t *testing.T, cs []*Comm, n, size int) {
	t.Helper()
	const window = 1000 // a number that no window of the communicator has
	blobs := make([][][]byte, len(cs))
	contexts := make([]*gin.Context, len(cs))
	for r, c := range cs {
		mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(mem) }()
		if blobs[r], err = c.net.AddWindow(window, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uint64(size)); err != nil {
			t.Fatal(err)
		}
		defer c.net.DropWindow(window)
		if contexts[r], err = c.net.OpenContext(gin.Format128, 1, 1, 64); err != nil {
			t.Fatal(err)
		}
	}
	noErrors(t, "puts", each(len(cs), func(r int) error {
		if err := cs[r].net.ImportWindow(window, 1-r, blobs[1-r]); err != nil {
			return err
		}
		var mark uint32
		for range n {
			mark, _ = contexts[r].Post(1-r, gin.Descriptor{Op: gin.Put, Bytes: uint64(size), SrcWindow: window, DstWindow: window})
		}
		for !contexts[r].Done(1-r, mark) {
			if err := cs[r].net.Err(); err != nil {
				return err
			}
			cs[r].net.Help()
			runtime.Gosched()
		}
		return nil
	}))
}
