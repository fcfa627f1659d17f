package topo

import (
	"slices"
	"testing"
)

// The channels that NCCL chose on the machine of its own dump pass the checker, and ours are no worse: the same graphs, the same paths,
// and the same number of channels at the same speed, under the same order.
func TestOwnDumpOfNCCL(t *testing.T) {
	s, o, err := loadSystem(t, ownDump, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Search(s, o)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := d.graphs(), dumpedGraphs(t, s)
	if kinds := sortedKeys(theirs); !slices.Equal(kinds, []string{"ring", "tree"}) || !slices.Equal(sortedKeys(ours), kinds) {
		t.Fatalf("ours %v, NCCL %v", sortedKeys(ours), kinds)
	}
	for kind, b := range theirs {
		a := ours[kind]
		va, vb := checkGraph(s, 1, a), checkGraph(s, 1, b)
		t.Logf("%s: ours %s, NCCL %s", kind, summary(a, va, 1), summary(b, vb, 1))
		if len(va.problems)+len(vb.problems) > 0 {
			t.Errorf("%s: ours %v, NCCL %v", kind, va.problems, vb.problems)
		}
		if va.total(1) < vb.total(1) || a.TypeIntra != b.TypeIntra {
			t.Errorf("%s: ours %s, NCCL %s", kind, summary(a, va, 1), summary(b, vb, 1))
		}
	}
}

// Who has NVLS heads: at least two GPUs of compute capability 9.0 on a switch, unless the user says no.
func TestWhoHasNVLS(t *testing.T) {
	machine := func(gpus, sm, links int, target string) *Machine {
		m := &Machine{Version: 1}
		cpu := NewCPU(0)
		cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = "x86_64", "GenuineIntel", 6, 143
		m.CPUs = []*CPU{cpu}
		for i := range gpus {
			p := NewPCI([]string{"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}[i])
			p.Class, p.LinkSpeed, p.LinkWidth, p.HasSpeed, p.HasWidth = "0x030200", "32.0 GT/s PCIe", 16, true, true
			g := NewGPU()
			g.Dev, g.SM, g.GDR, g.Rank = i, sm, 1, i
			g.NVLinks = []NVLink{{Target: target, Count: links, Class: "0x068000"}}
			p.GPUs = []*GPU{g}
			cpu.PCI = append(cpu.PCI, p)
		}
		return m
	}
	twoRanks := machine(1, 90, 18, "0000:0a:00.0")
	second := *twoRanks.GPUs()[0]
	second.Rank = 1
	twoRanks.CPUs[0].PCI[0].GPUs = append(twoRanks.CPUs[0].PCI[0].GPUs, &second)
	for _, c := range []struct {
		name  string
		m     *Machine
		off   bool
		heads int
	}{
		{"three GPUs", machine(3, 90, 18, "0000:0a:00.0"), false, 3},
		{"two GPUs", machine(2, 90, 18, "0000:0a:00.0"), false, 2},
		{"two GPUs, off", machine(2, 90, 18, "0000:0a:00.0"), true, 0},
		{"one GPU", machine(1, 90, 18, "0000:0a:00.0"), false, 0},
		{"two ranks on one GPU", twoRanks, false, 0},
		{"two GPUs of sm80", machine(2, 80, 12, "0000:0a:00.0"), false, 0},
		{"two GPUs without links", machine(2, 90, 0, "0000:0a:00.0"), false, 0},
	} {
		for _, strict := range []bool{false, true} {
			o := DefaultOptions()
			o.NVLSDisable, o.Strict = c.off, strict
			s, err := Build(c.m, o)
			if err != nil {
				t.Fatal(c.name, err)
			}
			d, err := Search(s, o)
			if err != nil {
				t.Fatal(c.name, err)
			}
			heads := 0
			if d.NVLS != nil {
				heads = d.NVLS.N()
			}
			if heads != c.heads || (c.heads == 0) != (d.Counts().NVLS == 0) {
				t.Errorf("%s, strict %v: %d heads, want %d; %d channels", c.name, strict, heads, c.heads, d.Counts().NVLS)
			}
		}
	}
}
