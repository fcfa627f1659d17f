package netplugin

import (
	stdctx "context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
	"github.com/gccl/gccl/plugin"
)

// The switches of testdata/rough.c.
const (
	busy = iota
	slow
	short
	fail
	after
	flushes
	block
	device
	switches
)

const (
	atInit = iota + 1
	atDevices
	atListen
	atConnect
	atAccept
	atReg
	atIsend
	atIrecv
	atTest
)

func roughPlugin(t testing.TB) string {
	return build(t, "rough", []string{example + "net.c", "testdata/rough.c"}, "EXAMPLE_P2P=50000", "EXAMPLE_RECVS=3")
}

// switchOf gives the switches of a rough plugin, all off, and forgets what it did wrong before.
func switchesOf(t testing.TB, so string) *[switches]int32 {
	t.Helper()
	libs, err := plugin.Open(plugin.Net, so, true)
	if err != nil {
		t.Fatal(err)
	}
	rough := (*[switches]int32)(libs[0].Symbol("rough"))
	*rough = [switches]int32{}
	t.Cleanup(func() { *rough = [switches]int32{} })
	table, _ := libs[0].Table(plugin.Net)
	modulesMu.Lock()
	delete(modules, table.Addr)
	modulesMu.Unlock()
	return rough
}

// A plugin that is busy, slow, and takes 50000 bytes and three receives at a time carries all the same.
func TestRough(t *testing.T) {
	rough := switchesOf(t, roughPlugin(t))
	rough[busy], rough[slow] = 2, 3
	m := makerOf(roughPlugin)
	m.Scale = 8
	conformance.Run(t, m)
}

// Every call that fails is named, at the end where it failed, and nothing hangs.
func TestFailures(t *testing.T) {
	so := roughPlugin(t)
	for _, c := range []struct {
		call  int32
		after int32
		want  string
	}{
		{atInit, 0, "Example: init: ncclSystemError"},
		{atDevices, 0, "Example: devices: ncclSystemError"},
		{atListen, 0, "listen: ncclSystemError"},
		{atListen, 2, "listen: ncclSystemError"}, // that of bulk
		{atConnect, 0, "connect: ncclSystemError"},
		{atAccept, 0, "accept: ncclSystemError"},
		{atReg, 0, "regMr of 526336 bytes: ncclSystemError"},
		{atIsend, 0, "isend: ncclSystemError"},
		{atIrecv, 0, "irecv: ncclSystemError"},
		{atTest, 0, "ncclSystemError"},
	} {
		t.Run(fmt.Sprintf("%d after %d", c.call, c.after), func(t *testing.T) {
			rough := switchesOf(t, so)
			rough[fail], rough[after] = c.call, c.after
			a, errA := tryOpen(t, so, 0)
			b, errB := tryOpen(t, so, 1)
			errs := []error{errA, errB}
			if errA == nil && errB == nil {
				errs = connectErrors(a, b, 20*time.Second)
			}
			if text := fmt.Sprint(errs); !strings.Contains(text, c.want) {
				t.Errorf("%v, want %q", text, c.want)
			}
			for _, e := range []transport.Endpoint{a, b} {
				if e != nil {
					_ = e.Close()
				}
			}
		})
	}
}

func tryOpen(t *testing.T, so string, rank int) (transport.Endpoint, error) {
	t.Helper()
	s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{"NCCL_NET_PLUGIN": so}})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := FromSettings(s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr.Open(transport.Options{Rank: rank})
}

// connectErrors connects two endpoints and returns what went wrong.
func connectErrors(a, b transport.Endpoint, limit time.Duration) []error {
	ctx, cancel := stdctx.WithTimeout(stdctx.Background(), limit)
	defer cancel()
	ca, errA := a.NewConn(1)
	cb, errB := b.NewConn(0)
	if errA != nil || errB != nil {
		gone, cancel := stdctx.WithCancel(stdctx.Background())
		cancel()
		for _, c := range []transport.Conn{ca, cb} {
			if c != nil {
				_ = c.Connect(gone, nil)
			}
		}
		return []error{errA, errB}
	}
	ended := make(chan error)
	blob := ca.Blob()
	go func() { ended <- cb.Connect(ctx, blob) }()
	errA = ca.Connect(ctx, cb.Blob())
	return []error{errA, <-ended}
}

// Failures on the data path end the connection at both ends, with a text that names call and cause.
func TestFaults(t *testing.T) {
	so := roughPlugin(t)
	for name, c := range map[string]struct {
		set  func(*[switches]int32)
		want string
	}{
		"short":   {func(r *[switches]int32) { r[short] = 1 }, "the plugin lost or added bytes"},
		"long":    {func(r *[switches]int32) { r[short] = -1 }, "the plugin lost or added bytes"},
		"isend":   {func(r *[switches]int32) { r[fail] = atIsend }, "isend: ncclSystemError"},
		"irecv":   {func(r *[switches]int32) { r[fail] = atIrecv }, "irecv: ncclSystemError"},
		"test":    {func(r *[switches]int32) { r[fail] = atTest }, "ncclSystemError"},
		"regMr":   {func(r *[switches]int32) { r[fail] = atReg }, "regMr of 300000 bytes: ncclSystemError"},
		"no more": {func(r *[switches]int32) { r[fail], r[after] = atIrecv, 40 }, "irecv: ncclSystemError"},
	} {
		t.Run(name, func(t *testing.T) {
			rough := switchesOf(t, so)
			p := conformance.NewPair(t, makerOf(roughPlugin), 300_000)
			c.set(rough)
			a, b := p.Faults()
			if text := fmt.Sprint(a, b); !strings.Contains(text, c.want) || !strings.Contains(text, "plugin Example") {
				t.Errorf("%s, want %q", text, c.want)
			}
			for _, err := range []error{a, b} {
				if !errors.Is(err, xerr.Remote) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A plugin that blocks where it must not costs the deadline and what it holds, and is named.
func TestBlocked(t *testing.T) {
	defer func(d time.Duration) { stuck = d }(stuck)
	stuck = 50 * time.Millisecond
	rough := switchesOf(t, roughPlugin(t))
	a, errA := tryOpen(t, roughPlugin(t), 0)
	b, errB := tryOpen(t, roughPlugin(t), 1)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	rough[block] = 1500
	errs := connectErrors(a, b, 100*time.Millisecond)
	if text := fmt.Sprint(errs); !strings.Contains(text, "blocks in a call that must not block") {
		t.Error(text)
	}
	time.Sleep(1600 * time.Millisecond) // until the plugin's calls are over: their code must not go
}

// A device that wants kernels of its own, a limit of connections, a library without a usable table: refused with the reason.
func TestRefused(t *testing.T) {
	so := roughPlugin(t)
	rough := switchesOf(t, so)
	rough[device] = 1
	if _, err := tryOpen(t, so, 0); err == nil || !strings.Contains(err.Error(), "device type 1") {
		t.Errorf("%v", err)
	}
	rough[device] = 0
	if _, err := tryOpen(t, so, 0); err == nil || !strings.Contains(err.Error(), "is off in this process") {
		t.Errorf("a module that failed is tried again: %v", err)
	}
	switchesOf(t, so)
	e, err := tryOpen(t, so, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.(*endpoint).devices[0].comms = 2*connsOf + 1
	gone, cancel := stdctx.WithCancel(stdctx.Background())
	cancel()
	for i := range 3 {
		c, err := e.NewConn(1)
		if full := i == 2; full != (err != nil) || full && !strings.Contains(err.Error(), "at most 9 connections, 8 are in use") {
			t.Errorf("connection %d: %v", i, err)
		}
		if c != nil {
			_ = c.Connect(gone, nil)
		}
	}
	broken := build(t, "broken", []string{"testdata/broken.c"})
	if _, err := tryOpen(t, broken, 0); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("%v", err)
	}
}

// Every version of the table carries, and says the same of its device.
func TestVersions(t *testing.T) {
	for v := 6; v <= 12; v++ {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			so := func(t testing.TB) string {
				return build(t, fmt.Sprint("v", v), []string{example + "net.c", "testdata/versions.c"}, fmt.Sprint("V=", v))
			}
			tr := conformance.NewTraffic(t, makerOf(so), int64(v))
			for range 3 {
				tr.Round()
			}
			tr.Reconnect()
			tr.Round()
			e := open(t, so(t), 0, transport.Secret{1}).(*endpoint)
			defer e.Close()
			p := e.devices[0]
			if e.table.Version != v || p.recvs != 8 || p.comms != 65536 || p.Speed != 10000 || p.most != 1<<30 || p.dmabuf != true {
				t.Errorf("version %d: %+v", e.table.Version, p)
			}
		})
	}
}

// Memory that the CPU does not reach: registered by dma-buf (here of a file in memory), never copied, flushed after each receive.
func TestDevice(t *testing.T) {
	const n, off = 1 << 20, 8192
	so := roughPlugin(t)
	rough := switchesOf(t, so)
	p := conformance.NewPair(t, makerOf(roughPlugin), 4096)
	var sides [2]struct {
		mem    []byte
		reg    transport.Memory
		remote transport.Remote
	}
	for i := range sides {
		fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, off+n); err != nil {
			t.Fatal(err)
		}
		all, err := unix.Mmap(fd, 0, off+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(all) }()
		sides[i].mem = all[off:]
		sides[i].reg, err = transport.RegisterDevice(p.Endpoint(i), uintptr(0x10_0000_0000*(i+1)), n, fd, off)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if sides[i].remote, err = transport.Import(p.Conn(1-i), sides[i].reg.Blob()); err != nil {
			t.Fatal(err)
		}
	}
	a, b := &sides[0], &sides[1]
	for i := range a.mem {
		a.mem[i], b.mem[i] = byte(i*7+i>>9), byte(i*3+i>>8)
	}
	for _, bytes := range []uint64{1, 8, 5000, 300_000} {
		p.Post(0, transport.Work{Op: transport.Put, Local: a.reg, LocalOff: 16, Remote: b.remote, Off: 1000, Bytes: bytes},
			transport.Work{Op: transport.Msg, Data: []byte{1}})
		p.Message(1)
		if string(b.mem[1000:1000+bytes]) != string(a.mem[16:16+bytes]) {
			t.Errorf("a put of %d bytes", bytes)
		}
		p.Post(0, transport.Work{Op: transport.Get, Local: a.reg, LocalOff: 500_000, Remote: b.remote, Off: 600_000, Bytes: bytes,
			Signaled: true})
		p.Done(0)
		if string(a.mem[500_000:500_000+bytes]) != string(b.mem[600_000:600_000+bytes]) {
			t.Errorf("a get of %d bytes", bytes)
		}
	}
	if rough[flushes] < 8 {
		t.Errorf("%d receives were flushed", rough[flushes])
	}
	_, err := transport.Post(p.Conn(0), transport.Work{Op: transport.PutInline, Remote: b.remote, Data: make([]byte, 8)})
	if !errors.Is(err, xerr.InvalidUsage) {
		t.Errorf("put of a work request's own bytes: %v", err)
	}
	p.Check() // the connection still works
}
