package comm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/discover"
)

// meshFile writes a topology file of n GPUs, each with two NVLinks to each other, with the ranks 0 … n-1.
func meshFile(t *testing.T, n int) string {
	t.Helper()
	m := &topo.Machine{Version: 1}
	cpu := topo.NewCPU(0)
	cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = "x86_64", "GenuineIntel", 6, 85
	m.CPUs = []*topo.CPU{cpu}
	bus := func(i int) string { return fmt.Sprintf("0000:%02x:00.0", i+1) }
	for i := range n {
		p := topo.NewPCI(bus(i))
		p.Class, p.LinkSpeed, p.LinkWidth, p.HasSpeed, p.HasWidth = "0x030200", "8.0 GT/s PCIe", 16, true, true
		g := topo.NewGPU()
		g.Dev, g.SM, g.GDR, g.Rank = i, 70, 1, i
		for j := range n {
			if j != i {
				g.NVLinks = append(g.NVLinks, topo.NVLink{Target: bus(j), Count: 2, Class: "0x030200"})
			}
		}
		p.GPUs = []*topo.GPU{g}
		cpu.PCI = append(cpu.PCI, p)
	}
	return writeMachine(t, m)
}

func machineText(t *testing.T, m *topo.Machine) string {
	t.Helper()
	var b strings.Builder
	if err := m.WriteXML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writeMachine(t *testing.T, m *topo.Machine) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "machine.xml")
	if err := os.WriteFile(name, []byte(machineText(t, m)), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// logged collects the lines of an engine.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func logInto(e *Engine, subsys xlog.Subsys) *logged {
	l := &logged{}
	e.SetLog(xlog.New(xlog.Config{Level: xlog.Info, LevelSet: true, Subsys: subsys, Sink: func(r xlog.Record) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, r.Text)
	}}))
	return l
}

// sameChannels fails unless all ranks have one decision, and returns it.
func sameChannels(t *testing.T, cs []*Comm) *machine {
	t.Helper()
	for r, c := range cs {
		if c.machine == nil {
			t.Fatalf("rank %d has no topology", r)
		}
		if c.machine.channels != cs[0].machine.channels {
			t.Fatalf("rank %d has\n%s\nrank 0\n%s", r, c.machine.channels, cs[0].machine.channels)
		}
	}
	return cs[0].machine
}

// Where nobody has a use for the topology, nothing is looked at.
func TestNothingIsDiscoveredWithoutNeed(t *testing.T) {
	e := testEngine(t)
	var asked atomic.Int32
	e.local.Sources = discover.Sources{CPU: func() discover.CPUKind { asked.Add(1); return discover.CPUKind{} }}
	cs := initAll(t, e, 3)
	if cs[0].machine != nil || asked.Load() != 0 {
		t.Errorf("topology %v, asked %d times", cs[0].machine, asked.Load())
	}
	if changed, err := cs[0].Reweigh(context.Background()); changed || err != nil {
		t.Errorf("reweigh without a topology: %v, %v", changed, err)
	}
	destroyAll(t, cs)
}

// One rank that wants to see the topology is enough: all take part, and find the same. A process looks once.
func TestRanksOnCPUs(t *testing.T) {
	const n = 64
	e := testEngine(t)
	var asked atomic.Int32
	e.local.Sources = discover.Sources{CPU: func() discover.CPUKind { asked.Add(1); return discover.ThisCPU() }}
	lines := logInto(e, xlog.Graph)
	cs := initAll(t, e, n)
	m := sameChannels(t, cs)
	if !m.onCPUs || len(m.found.System.Ranks) != n || m.found.Ring.N() == 0 {
		t.Errorf("decision:\n%s", m.channels)
	}
	for _, want := range []string{"ranks stand on CPUs", "rank 63 is on NUMA node", "ring 00: ", "pattern 4: 1 x 12 GB/s inside (up to PHB)", "pattern 4 channel 00: 0 1 2 3 "} {
		if !strings.Contains(lines.text(), want) {
			t.Errorf("the log does not say %q:\n%s", want, lines.text())
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the machine was looked at %d times", asked.Load())
	}
	destroyAll(t, cs)

	common, odd := testEngine(t), testEngine(t)
	logInto(odd, xlog.Graph)
	cs, errs := mixed(t, common, odd)
	noErrors(t, "init", errs)
	sameChannels(t, cs)
	destroyAll(t, cs)
}

// Discovery that finds nothing, or a file that is broken, leaves the communicator without a topology and nothing more.
func TestTroubleWithTheTopologyIsNoFailure(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.xml")
	if err := os.WriteFile(broken, []byte("<system version=\"1\">\n  <cpu numaid=\"0\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		env     []string
		sources discover.Sources
		says    string
	}{
		{"broken file", []string{"NCCL_TOPO_FILE", broken}, discover.Sources{}, "no topology: rank 0: NCCL_TOPO_FILE"},
		{"no facts", nil, discover.Sources{Root: t.TempDir(), CPU: func() discover.CPUKind { return discover.CPUKind{Arch: "x86_64", Family: -1, Model: -1} },
			Affinity: func() discover.CPUSet { return nil }}, "no topology: "},
		{"panic", nil, discover.Sources{CPU: func() discover.CPUKind { panic("no CPU") }}, "no topology: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := testEngine(t, c.env...)
			e.local.Sources = c.sources
			lines := logInto(e, xlog.Graph)
			cs := initAll(t, e, 2)
			if cs[0].machine != nil || cs[1].machine != nil || !strings.Contains(lines.text(), c.says) {
				t.Errorf("topology %v and %v, log\n%s", cs[0].machine, cs[1].machine, lines.text())
			}
			destroyAll(t, cs)
		})
	}
}

func TestFileThatIsNotThere(t *testing.T) {
	e := testEngine(t, "NCCL_TOPO_FILE", "/nowhere/machine.xml")
	lines := logInto(e, xlog.Graph)
	cs := initAll(t, e, 2)
	if m := sameChannels(t, cs); !m.onCPUs || !strings.Contains(lines.text(), "NCCL_TOPO_FILE /nowhere/machine.xml (environment) is ignored: ") {
		t.Errorf("log\n%s", lines.text())
	}
	destroyAll(t, cs)
}

// The machine of a file that names the ranks is taken as it is, and written again for NCCL_TOPO_DUMP_FILE.
func TestTopologyFileAndDump(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "dump.xml")
	e := testEngine(t, "NCCL_TOPO_FILE", meshFile(t, 4), "NCCL_TOPO_DUMP_FILE", dump, "NCCL_TOPO_DUMP_FILE_RANK", "2")
	cs := initAll(t, e, 4)
	if m := sameChannels(t, cs); m.onCPUs || m.found.Ring.TypeIntra != topo.NVL {
		t.Errorf("decision:\n%s", m.channels)
	}
	destroyAll(t, cs)
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	m, err := topo.Read(dump, text)
	if err != nil || len(m.GPUs()) != 4 || m.GPUs()[3].Rank != 3 || m.CPUs[0].HostHash == "" {
		t.Errorf("dump: %v\n%s", err, text)
	}
	// Three ranks are not those of the file: they stand on its CPUs.
	cs = initAll(t, e, 3)
	if m := sameChannels(t, cs); !m.onCPUs {
		t.Errorf("decision:\n%s", m.channels)
	}
	destroyAll(t, cs)
}

// Channels of a file are taken instead of those of the search, on all ranks; one that does not fit is an error on all.
func TestGraphFileAndDump(t *testing.T) {
	file, dump := meshFile(t, 4), filepath.Join(t.TempDir(), "graphs.xml")
	e := testEngine(t, "NCCL_TOPO_FILE", file, "NCCL_GRAPH_DUMP_FILE", dump)
	cs := initAll(t, e, 4)
	found := sameChannels(t, cs)
	destroyAll(t, cs)
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.xml")
	write := func(from, to string) {
		t.Helper()
		changed := strings.Replace(string(text), from, to, 1)
		if changed == string(text) {
			t.Fatalf("no %q in\n%s", from, text)
		}
		if err := os.WriteFile(other, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e = testEngine(t, "NCCL_TOPO_FILE", file, "NCCL_GRAPH_FILE", dump)
	cs = initAll(t, e, 4)
	if m := sameChannels(t, cs); m.channels != found.channels {
		t.Errorf("read again\n%s\nwritten\n%s", m.channels, found.channels)
	}
	destroyAll(t, cs)

	write(`speedintra="20"`, `speedintra="7"`)
	e = testEngine(t, "NCCL_TOPO_FILE", file, "NCCL_GRAPH_FILE", other)
	cs = initAll(t, e, 4)
	if m := sameChannels(t, cs); m.found.Ring.BWIntra != 7 {
		t.Errorf("the file's channels are not used:\n%s", m.channels)
	}
	destroyAll(t, cs)

	write(`<gpu dev="0x1"/>`, `<gpu dev="0x9"/>`)
	odd := testEngine(t, "NCCL_TOPO_FILE", file, "NCCL_GRAPH_FILE", other)
	_, errs := mixed(t, testEngine(t), odd)
	wantAll(t, "graph file", errs, "rank 1", "NCCL_GRAPH_FILE "+other, "there is no such GPU")
	_, errs = mixed(t, testEngine(t), testEngine(t, "NCCL_GRAPH_FILE", "/nowhere"))
	wantAll(t, "no graph file", errs, "rank 1", "NCCL_GRAPH_FILE /nowhere", "no such file")
}

// Settings that differ give different searches. That is noticed, and no rank has channels of its own.
func TestDifferentSearchesAreNoticed(t *testing.T) {
	file := meshFile(t, 3)
	common := testEngine(t, "NCCL_TOPO_FILE", file)
	lines := logInto(common, xlog.Graph)
	cs, errs := mixed(t, common, testEngine(t, "NCCL_TOPO_FILE", file, "NCCL_P2P_DISABLE", "1"))
	noErrors(t, "init", errs)
	for r, c := range cs {
		if c.machine != nil {
			t.Errorf("rank %d has a topology", r)
		}
	}
	if !strings.Contains(lines.text(), "rank 0 and rank 1 of one host have found different channels") {
		t.Errorf("log\n%s", lines.text())
	}
	destroyAll(t, cs)
}

// A link that carries less than it should: one rank has measured it, all ranks move the channels away from it, at the next decision and not before.
func TestDegradedLinkMovesChannels(t *testing.T) {
	const n = 4
	file := meshFile(t, n)
	engines := make([]*Engine, n) // as processes: what one measures the others do not know
	for r := range engines {
		engines[r] = testEngine(t, "NCCL_TOPO_FILE", file)
	}
	lines := logInto(engines[0], xlog.Graph)
	cs := initOver(t, engines)
	before := sameChannels(t, cs)
	weak := ringUses(before.found, 0, 1)
	if len(weak) == 0 {
		t.Fatalf("no ring uses the link from 0 to 1, the test shows nothing:\n%s", before.channels)
	}
	a, b := before.found.System.RankByNumber(0).Device, before.found.System.RankByNumber(1).Device
	for _, l := range before.found.System.Links {
		if l.From == a && l.To == b || l.From == b && l.To == a {
			engines[2].Measure(topo.Measured{Link: l.Name(), GBs: 1.5})
		}
	}
	if sameChannels(t, cs) != before {
		t.Error("a measurement alone has changed the decision")
	}
	reweigh := func(want bool) {
		t.Helper()
		noErrors(t, "reweigh", each(n, func(r int) error {
			changed, err := cs[r].Reweigh(context.Background())
			if err == nil && changed != want {
				err = fmt.Errorf("changed is %v", changed)
			}
			return err
		}))
	}
	reweigh(true)
	after := sameChannels(t, cs)
	if len(ringUses(after.found, 0, 1))+len(ringUses(after.found, 1, 0)) > 0 {
		t.Errorf("rings still use the weak link:\n%s", after.channels)
	}
	if !strings.Contains(lines.text(), "channels have moved") {
		t.Errorf("log\n%s", lines.text())
	}
	reweigh(false) // no news
	for _, l := range before.found.System.Links {
		if l.From == a && l.To == b || l.From == b && l.To == a {
			engines[2].Measure(topo.Measured{Link: l.Name(), GBs: 1.55})
		}
	}
	reweigh(false) // hardly news

	// A communicator made now knows of the link at once.
	kids := initOver(t, engines)
	if m := sameChannels(t, kids); m.channels != after.channels {
		t.Errorf("a new communicator has\n%s", m.channels)
	}
	destroyAll(t, kids)

	// It has recovered.
	for _, l := range before.found.System.Links {
		if l.From == a && l.To == b || l.From == b && l.To == a {
			engines[2].Measure(topo.Measured{Link: l.Name(), GBs: 40})
		}
	}
	reweigh(true)
	if m := sameChannels(t, cs); m.channels != before.channels {
		t.Errorf("after recovery\n%s\nbefore\n%s", m.channels, before.channels)
	}
	// Ranks that meet for a window settle news by themselves.
	for _, l := range before.found.System.Links {
		if l.From == a && l.To == b || l.From == b && l.To == a {
			engines[3].Measure(topo.Measured{Link: l.Name(), GBs: 1})
			engines[2].Measure(topo.Measured{Link: l.Name(), GBs: 1})
		}
	}
	var al arena.Allocation
	if proc, err := arena.Process(); err != nil {
		t.Fatal(err)
	} else if al, err = proc.Alloc(n * 4096); err != nil {
		t.Fatal(err)
	}
	ws := make([]control.Window, n)
	noErrors(t, "register", each(n, func(r int) error {
		var err error
		ws[r], err = cs[r].RegisterWindow(arena.Existing().Base()+uintptr(al.Offset)+uintptr(r)*4096, 4096, 0)
		return err
	}))
	if m := sameChannels(t, cs); m.channels != after.channels {
		t.Errorf("after a window\n%s", m.channels)
	}
	noErrors(t, "deregister", each(n, func(r int) error { return cs[r].DeregisterWindow(ws[r]) }))
	if err := arena.Existing().Free(al); err != nil {
		t.Error(err)
	}
	destroyAll(t, cs)
	if _, err := cs[0].Reweigh(context.Background()); xerr.CodeOf(err) == xerr.Success {
		t.Error("a destroyed communicator was reweighed")
	}
}

// ringUses gives the ring channels that go from one rank to another.
func ringUses(d *topo.Decision, from, to int) []int {
	var out []int
	for i, c := range d.Ring.Channels {
		for k, r := range c.Ranks {
			if r.Rank == from && c.Ranks[(k+1)%len(c.Ranks)].Rank == to {
				out = append(out, i)
			}
		}
	}
	return out
}

// Ranks of two hosts have channels of their own host, as many on both.
func TestTwoHosts(t *testing.T) {
	root := func(name string, rates ...string) string {
		dir := t.TempDir()
		files := map[string]string{"proc/sys/kernel/hostname": name, "sys/devices/system/node/node0/cpumap": "ff"}
		for i, rate := range rates {
			port := fmt.Sprintf("sys/class/infiniband/mlx5_%d/ports/1/", i)
			files[port+"rate"], files[port+"state"] = rate, "4: ACTIVE"
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
	fast, slow := root("fast", "100 Gb/sec (4X EDR)", "100 Gb/sec (4X EDR)"), root("slow", "25 Gb/sec (1X EDR)")
	var views []view
	cs := make([]*Comm, 4)
	for r, dir := range []string{fast, slow, fast, slow} {
		e := testEngine(t)
		e.local.Sources = discover.Sources{Root: dir, CPU: func() discover.CPUKind {
			return discover.CPUKind{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 175, Model: 1}
		}}
		cs[r] = newComm(t, e)
		cs[r].rank, cs[r].set = r, param.Defaults()
		views = append(views, cs[r].ownView(r < 2))
	}
	var all []verdict
	var found []*machine
	for _, c := range cs {
		o := c.searchOptions(views)
		if o.Nodes != 2 || o.Self != c.rank%2 {
			t.Fatalf("rank %d searches with %+v", c.rank, o)
		}
		m, err := search(views, o, topo.Fusion{})
		if err != nil {
			t.Fatal(err)
		}
		found, all = append(found, m), append(all, m.verdict())
	}
	if why := disagree(views, all); why != "" {
		t.Fatal(why)
	}
	for r := range cs {
		m := found[r].under(views, all)
		ring := m.found.Ring
		var order []int
		for _, k := range ring.Channels[0].Ranks {
			order = append(order, k.Rank)
		}
		if want := []int{r % 2, r%2 + 2}; !slices.Equal(order, want) || ring.Channels[0].In == nil || ring.BWInter > 25./8 || ring.Terms() != found[0].under(views, all).found.Ring.Terms() {
			t.Errorf("rank %d has\n%s", r, m.channels)
		}
	}
	if fast, slow := found[0].found.Ring.TotalBW(), found[1].found.Ring.TotalBW(); fast <= slow {
		t.Errorf("the fast host has %g GB/s, the slow one %g: the test shows nothing", fast, slow)
	}
	all[3].Hash = "another"
	if why := disagree(views, all); !strings.Contains(why, "rank 1 and rank 3 of one host") {
		t.Errorf("said %q", why)
	}
}

// Ranks of a CUDA communicator stand on their GPUs, which they know by UUID.
func TestRanksOnGPUs(t *testing.T) {
	uuid := func(i int) (b [16]byte) { b[15] = byte(i + 1); return b }
	var gpus []discover.GPU
	for i := range 2 {
		g := discover.GPU{Index: i, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012x", i+1), BusID: fmt.Sprintf("0000:%02x:00.0", i+1), SM: 90}
		far := fmt.Sprintf("0000:%02x:00.0", 2-i)
		g.Links = []discover.NVLink{{Target: far, Count: 4}}
		g.P2P = map[string]discover.P2P{far: {Read: i == 0, Write: i == 0}}
		gpus = append(gpus, g)
	}
	var views []view
	for r := range 3 {
		e := testEngine(t)
		e.local.Sources = discover.Sources{Root: t.TempDir(), CPU: discover.ThisCPU, GPUs: func() ([]discover.GPU, error) { return gpus, nil }}
		e.front.CUDA = &Device{Hello: func(control.Comm) []byte { return []byte{byte((r + 1) % 2)} }, UUID: func(hello []byte) ([16]byte, bool) { return uuid(int(hello[0])), true }}
		c := newComm(t, e)
		c.set, c.rank, c.cfg.DeviceKind = param.Defaults(), r, deviceCuda
		views = append(views, c.ownView(r == 0))
	}
	m, err := search(views, topo.DefaultOptions(), topo.Fusion{})
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range []string{"0000:02:00.0", "0000:01:00.0", "0000:02:00.0"} {
		if got := m.found.System.RankByNumber(r).Device.Dev.BusID; got != want || m.onCPUs {
			t.Errorf("rank %d is on %s, want %s", r, got, want)
		}
	}
	// The driver refuses access from the second GPU to the first.
	s := m.found.System
	if kind, _, _ := s.Path(s.RankByNumber(1).Node, s.RankByNumber(0).Node); kind != topo.NVL {
		t.Errorf("from the first GPU to the second: %s", kind)
	}
	if kind, _, _ := s.Path(s.RankByNumber(0).Node, s.RankByNumber(1).Node); kind == topo.NVL {
		t.Errorf("from the second GPU to the first, which the driver refuses: %s", kind)
	}
	if !strings.Contains(m.text, `rank="2"`) {
		t.Errorf("the dump does not say where ranks are:\n%s", m.text)
	}
}

func TestSearchOptions(t *testing.T) {
	for value, want := range map[string]bool{"0": true, "1": false, "2": false} {
		c := newComm(t, testEngine(t))
		set, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{"NCCL_NVLS_ENABLE": value}})
		if err != nil {
			t.Fatal(err)
		}
		c.set = set
		if o := c.searchOptions([]view{{}}); o.NVLSDisable != want {
			t.Errorf("NCCL_NVLS_ENABLE=%s: %+v", value, o)
		}
	}
}

func TestPathLevels(t *testing.T) {
	for text, want := range map[string]topo.PathType{"SYS": topo.SYS, "phb": topo.PHB, "3": topo.PHB, "0": topo.LOC} {
		if got, ok := pathLevel(text); !ok || got != want {
			t.Errorf("%q is %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "auto", "9", "FAR"} {
		if _, ok := pathLevel(text); ok {
			t.Errorf("%q is a level", text)
		}
	}
}

func TestViews(t *testing.T) {
	v := view{Host: "0x12", Node: -1, Bus: "0000:01:00.0", Refused: [][2]string{{"a", "b"}}, Machine: []byte{1, 2}, Trouble: "t", Measured: []topo.Measured{{Link: "a>b", GBs: 2.5}}}
	got, err := decodeView(v.encode())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(v) {
		t.Errorf("%+v, %v", got, err)
	}
	b := v.encode()
	for n := range b {
		if _, err := decodeView(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(b))
		}
	}
}

func FuzzView(f *testing.F) {
	f.Add(view{Host: "h", Node: 3, Machine: []byte("x"), Measured: []topo.Measured{{Link: "a>b", GBs: 1}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeView(b)
		if err != nil {
			return
		}
		_, _ = mergeViews([]view{v})
		if again, err := decodeView(v.encode()); err != nil || again.Node != v.Node {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// adapterFile writes a topology file of two GPUs and an adapter of two ports, with the ranks 0 and 1.
func adapterFile(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(meshFile(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	m, err := topo.Read("mesh", data)
	if err != nil {
		t.Fatal(err)
	}
	p := topo.NewPCI("0000:21:00.0")
	p.Class, p.LinkSpeed, p.LinkWidth, p.HasSpeed, p.HasWidth = "0x020000", "16.0 GT/s PCIe", 16, true, true
	nic := &topo.NIC{}
	for i := range 2 {
		n := topo.NewNet(fmt.Sprintf("mlx5_%d", i))
		n.Dev, n.Speed, n.Port, n.HasPort = fmt.Sprint(i), 100000, i+1, true
		nic.Nets = append(nic.Nets, n)
	}
	p.NICs = []*topo.NIC{nic}
	m.CPUs[0].PCI = append(m.CPUs[0].PCI, p)
	return writeMachine(t, m)
}

// Ports of one adapter are one device for the search, and two in the dump, as with NCCL. Orders that cannot be obeyed fail the
// creation on all ranks and name the setting.
func TestFusedDevices(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "mlx5_0+mlx5_1"},
		{[]string{"NCCL_NET_MERGE_LEVEL", "LOC"}, "mlx5_0 mlx5_1"},
		{[]string{"NCCL_IB_MERGE_NICS", "0"}, "mlx5_0 mlx5_1"},
		{[]string{"NCCL_NET_FORCE_MERGE", "mlx5_1,mlx5_0"}, "mlx5_1+mlx5_0"},
	} {
		dump := filepath.Join(t.TempDir(), "dump.xml")
		e := testEngine(t, append([]string{"NCCL_TOPO_FILE", adapterFile(t), "NCCL_TOPO_DUMP_FILE", dump}, c.env...)...)
		cs := initAll(t, e, 2)
		var names []string
		for _, n := range sameChannels(t, cs).found.System.Nodes[topo.NETNode] {
			names = append(names, n.Net.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: devices %s, want %s", c.env, got, c.want)
		}
		if text, err := os.ReadFile(dump); err != nil || strings.Contains(string(text), "+") || !strings.Contains(string(text), "mlx5_1") {
			t.Errorf("%v: the dump, %v:\n%s", c.env, err, text)
		}
		destroyAll(t, cs)
	}
	for _, c := range []struct{ set, value, want string }{
		{"NCCL_NET_MERGE_LEVEL", "NEAR", `"NEAR" is no level of merging: LOC, PORT`},
		{"NCCL_NET_FORCE_MERGE", "mlx5_0,mlx5_9", `the group "mlx5_0,mlx5_9": there is no network device mlx5_9; there are mlx5_0 mlx5_1`},
	} {
		file := adapterFile(t)
		_, errs := mixed(t, testEngine(t, "NCCL_TOPO_FILE", file), testEngine(t, "NCCL_TOPO_FILE", file, c.set, c.value))
		wantAll(t, c.set, errs, fmt.Sprintf("%s %s (environment)", c.set, c.value), c.want)
	}
}
