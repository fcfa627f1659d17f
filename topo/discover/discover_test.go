package discover

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/topo"
)

// epyc is the processor of the recorded machines.
func epyc() CPUKind { return CPUKind{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 175, Model: 1} }

// listed names the devices of a recording, as package bus does.
func listed(dir string) ([]string, error) { return root(dir).names("sys/bus/pci/devices"), nil }

func oneCPU() CPUSet { return CPUSet{1 << 3} }

// dgxGPUs are what the driver of the recorded DGX tells.
func dgxGPUs() ([]GPU, error) {
	var out []GPU
	for i := range 8 {
		g := GPU{Index: i, UUID: fmt.Sprintf("GPU-%d", i), BusID: fmt.Sprintf("0000:%02x:00.0", 0x40*(i/2)+3+i%2), SM: 80}
		for s := range 6 {
			g.Links = append(g.Links, NVLink{Target: fmt.Sprintf("0000:d%d:00.0", s), Switch: true, Count: 2})
		}
		out = append(out, g)
	}
	return out, nil
}

func TestDGX(t *testing.T) {
	f := Discover(Sources{Root: recording(t, "dgx"), CPU: epyc, Affinity: oneCPU, Devices: listed, GPUs: dgxGPUs})
	if len(f.Notes) != 0 {
		t.Errorf("notes: %q", f.Notes)
	}
	if got, want := f.PCI["0000:84:00.0"], (&PCI{BusID: "0000:84:00.0", Up: "0000:81:00.0", Class: 0x030200, Vendor: 0x10de, Device: 0x20b0, SubVendor: 0x10de,
		SubDevice: 1, Speed: "16.0 GT/s PCIe", Width: 16, Node: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("GPU 5 is %+v, want %+v", got, want)
	}
	if up := f.PCI["0000:81:00.0"]; up == nil || up.Up != "" || f.PCI["0000:80:01.1"] != nil || f.PCI["0000:82:04.0"] != nil {
		t.Errorf("the tree has ports, or the switch %+v does not end at the CPU", up)
	}
	if f.NodeOf(f.Here) != 0 || f.NodeOf(CPUSet{0, 1}) != 1 || f.NodeOf(nil) != Unknown {
		t.Error("the node of a set of CPUs is wrong")
	}

	m := f.Machine()
	if len(m.CPUs) != 2 || m.CPUs[1].Affinity != "ffffffff,00000000" || m.CPUs[0].Vendor != "AuthenticAMD" || m.CPUs[0].HostHash == "" {
		t.Fatalf("CPUs: %+v", m.CPUs)
	}
	if n := len(m.GPUs()); n != 8 {
		t.Fatalf("%d GPUs", n)
	}
	p := m.FindPCI("0000:44:00.0")
	if p == nil || p.Class != "0x030200" || p.LinkSpeed != "16.0 GT/s PCIe" || p.LinkWidth != 16 || p.SubDevice != "0x0001" {
		t.Fatalf("GPU 3: %+v", p)
	}
	if g := p.GPUs[0]; g.Dev != 3 || g.SM != 80 || g.GDR != 1 || g.Rank != topo.NoRank || len(g.NVLinks) != 6 || g.NVLinks[0].Class != "0x068000" {
		t.Errorf("GPU 3: %+v", g)
	}
	// Seven of eight ports are up; the interface is not used beside them.
	var names []string
	m.Walk(func(_ *topo.CPU, parent, p *topo.PCI) {
		for _, nic := range p.NICs {
			for _, n := range nic.Nets {
				names = append(names, n.Dev+" "+n.Name)
				if n.Speed != 200000 || n.GDR != 1 || n.Port != 1 || !strings.HasPrefix(n.GUID, "0x506b4b0300c1") || parent == nil {
					t.Errorf("net %+v", n)
				}
			}
		}
	})
	if got := strings.Join(names, ", "); got != "0 mlx5_0, 1 mlx5_1, 2 mlx5_2, 3 mlx5_3, 4 mlx5_4, 5 mlx5_6, 6 mlx5_7" {
		t.Errorf("nets %s", got)
	}
}

func TestVirtualMachine(t *testing.T) {
	f := Discover(Sources{Root: recording(t, "vm"), CPU: epyc, Affinity: oneCPU, Devices: listed, GPUs: func() ([]GPU, error) { return nil, errors.New("no driver") }})
	if len(f.Notes) != 1 || f.Notes[0] != "GPUs: no driver" {
		t.Errorf("notes: %q", f.Notes)
	}
	m := f.Machine()
	if len(m.CPUs) != 1 || m.CPUs[0].NUMA != 0 || m.CPUs[0].Affinity != "00000003" || len(m.CPUs[0].PCI) != 1 {
		t.Fatalf("CPUs: %+v", m.CPUs)
	}
	p := m.CPUs[0].PCI[0]
	if p.BusID != "0000:00:03.0" || p.LinkSpeed != "" || p.LinkWidth != 0 || len(p.NICs) != 1 || p.NICs[0].Nets[0].Name != "eth0" || p.NICs[0].Nets[0].Speed != 0 {
		t.Errorf("the network device is %+v", p)
	}
}

// A virtual machine whose PCI tree is hidden, with GPUs that the driver shows: they hang on the only node.
func TestGPUsWithoutPCI(t *testing.T) {
	root := unpack(t, "sys/devices/system/node/node0/cpumap: ff\n")
	f := Discover(Sources{Root: root, CPU: epyc, Affinity: oneCPU, Devices: listed, GPUs: func() ([]GPU, error) {
		return []GPU{{Index: 0, BusID: "0000:05:00.0", SM: 90, Links: []NVLink{{Target: "0000:06:00.0", Count: 2}, {Target: "0000:99:00.0", Count: 16}}},
			{Index: 1, BusID: "0000:06:00.0", SM: 90}, {Index: 2, UUID: "GPU-lost"}}, nil
	}})
	m := f.Machine()
	if len(m.CPUs) != 1 || len(m.CPUs[0].PCI) != 2 {
		t.Fatalf("machine %+v", m.CPUs)
	}
	p := m.CPUs[0].PCI[0]
	if p.Class != "0x030200" || !p.HasWidth || p.LinkWidth != 0 {
		t.Errorf("GPU 0 hangs at %+v", p)
	}
	if l := p.GPUs[0].NVLinks; l[0].Class != "0x030200" || l[1].Class != "0x068000" {
		t.Errorf("far ends of the links: %+v", l)
	}
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, "PCI does not show GPU 0 at 0000:05:00.0") || !strings.Contains(notes, "no PCI devices") {
		t.Errorf("notes:\n%s", notes)
	}
	if f.GPUByUUID("GPU-lost") == nil || f.GPUByUUID("x") != nil {
		t.Error("GPUs are not found by UUID")
	}
}

func TestMIGInstancesAreApart(t *testing.T) {
	f := Discover(Sources{Root: recording(t, "dgx"), CPU: epyc, Affinity: oneCPU, Devices: listed, GPUs: func() ([]GPU, error) {
		return []GPU{{Index: 0, UUID: "MIG-a", BusID: "0000:03:00.0", SM: 80, MIG: &MIG{1, 0}}, {Index: 0, UUID: "MIG-b", BusID: "0000:03:00.0", SM: 80, MIG: &MIG{2, 0}}}, nil
	}})
	if g := f.GPUByUUID("MIG-b"); g == nil || g.MIG.GPUInstance != 2 {
		t.Errorf("instance b is %+v", g)
	}
	p := f.Machine().FindPCI("0000:03:00.0")
	if len(p.GPUs) != 2 || p.GPUs[0].Dev != 0 || p.GPUs[1].Dev != 0 {
		t.Errorf("the GPU's places: %+v", p.GPUs)
	}
	if n := len(f.Notes); n != 7 { // the other seven GPUs are in PCI only
		t.Errorf("%d notes: %q", n, f.Notes)
	}
}

func TestGPUByTheBytesOfItsUUID(t *testing.T) {
	f := &Facts{GPUs: []GPU{{Index: 0, UUID: "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"}, {Index: 1, UUID: "MIG-10010203-0405-0607-0809-0a0b0c0d0e0f"}}}
	uuid := [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	if g := f.GPUWith(uuid); g == nil || g.Index != 0 {
		t.Errorf("found %+v", g)
	}
	uuid[0] = 0x10
	if g := f.GPUWith(uuid); g == nil || g.Index != 1 {
		t.Errorf("found %+v", g)
	}
	uuid[0] = 1
	if g := f.GPUWith(uuid); g != nil {
		t.Errorf("found %+v", g)
	}
}

// Nothing of these is a failure: what is missing is unknown.
func TestLittleIsKnown(t *testing.T) {
	late := func() ([]GPU, error) { panic("broken driver") }
	for _, c := range []struct {
		name, recording string
		gpus            func() ([]GPU, error)
		node            int
	}{
		{"empty", "", nil, Unknown},
		{"driver panics", "", late, Unknown},
		{"no NUMA", "pci pci0000:00/0000:00:02.0 030200 10de 2330 -1 32.0 16\n", dgxGPUs, Unknown},
		{"cpumap is rubbish", "sys/devices/system/node/node0/cpumap: zz,\nsys/devices/system/node/nodeX/cpumap: 1\n", nil, 0},
		{"many nodes", "sys/devices/system/node/node2/cpumap: 1\nsys/devices/system/node/node10/cpumap: 2\nsys/devices/system/node/node0/cpumap: 4\n", nil, 0},
		{"files are folders", "sys/class/net/eth0/type/x: 1\nsys/class/infiniband/a/ports/1/rate/x: 1\nsys/bus/pci/devices/0000:00:01.0/class/x: 1\n", nil, Unknown},
		{"links lead nowhere", "sys/bus/pci/devices/0000:00:01.0 -> ../nowhere\nsys/class/net/eth0 -> ../../../../../../etc\nsys/class/infiniband/a -> a\n", dgxGPUs, Unknown},
		{"odd values", "sys/class/net/e/type: 1\nsys/class/net/e/speed: 4294967295\nsys/class/net/e/operstate: up\nsys/class/infiniband/m/ports/1/rate: x Gb/sec\n", nil, Unknown},
		{"a device without modalias", "sys/bus/pci/devices/0000:00:01.0/class: 0x030200\n", nil, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Local{Sources: Sources{Root: unpack(t, c.recording), CPU: func() CPUKind { return CPUKind{Arch: "x86_64", Family: Unknown, Model: Unknown} },
				Affinity: func() CPUSet { return nil }, GPUs: c.gpus, Devices: listed}}
			f := l.Facts()
			if len(f.Notes) == 0 {
				t.Error("nothing is said to be unknown")
			}
			m := f.Machine()
			if len(m.CPUs) == 0 || m.CPUs[0].NUMA != c.node {
				t.Errorf("the first CPU is %+v, want node %d", m.CPUs, c.node)
			}
			if again := l.Facts(); again != f {
				t.Error("the machine was discovered twice")
			}
		})
	}
}

func TestDriverThatDoesNotAnswer(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	gpus, err := inTime(func() ([]GPU, error) { <-block; return nil, nil }, time.Millisecond)
	if gpus != nil || err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("gave %v, %v", gpus, err)
	}
}

// A list of devices that fails is noted; without one nobody looks.
func TestDeviceListThatFails(t *testing.T) {
	f := Discover(Sources{Root: t.TempDir(), CPU: epyc, Affinity: oneCPU, Devices: func(string) ([]string, error) { return nil, errors.New("broken") }})
	if !strings.Contains(strings.Join(f.Notes, "\n"), "PCI devices cannot be listed: broken") {
		t.Errorf("notes %q", f.Notes)
	}
}

// This machine, whatever it is.
func TestThisMachine(t *testing.T) {
	f := Discover(Sources{})
	for _, n := range f.Notes {
		t.Log(n)
	}
	if f.CPU.Arch == "" || f.Here.Count() == 0 || f.HostHash() == "" {
		t.Errorf("facts: %+v", f)
	}
	if m := f.Machine(); len(m.CPUs) == 0 {
		t.Error("no CPU")
	}
}

func TestBusIDs(t *testing.T) {
	for in, want := range map[string]string{"00000000:C3:00.0": "0000:c3:00.0", "0000:3b:00.1": "0000:3b:00.1", "10000:01:00.0": "10000:01:00.0", "pci0000:00": "", "virtio2": "", "0000:3b:00.8": ""} {
		if got := NormalBusID(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestCPUSets(t *testing.T) {
	s, err := ParseCPUMask("ff,00000000,0000000e")
	if err != nil || s.String() != "000000ff,00000000,0000000e" || s.List() != "1-3,64-71" || s.Count() != 11 {
		t.Errorf("%v %s %s %d", err, s, s.List(), s.Count())
	}
	for _, bad := range []string{"", "xyz", "123456789", "1,,2", strings.Repeat("0,", 3000) + "0"} {
		if _, err := ParseCPUMask(bad); err == nil {
			t.Errorf("%.20q is accepted", bad)
		}
	}
	var a CPUSet
	a.Add(70)
	if !a.Has(70) || a.Has(71) || a.Has(-1) || a.common(s) != 1 {
		t.Errorf("set %s", a)
	}
}

func FuzzCPUMask(f *testing.F) {
	f.Add("ffffffff,00000000")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseCPUMask(in)
		if err != nil {
			return
		}
		again, err := ParseCPUMask(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q is read as %s, again as %s, %v", in, s, again, err)
		}
	})
}
