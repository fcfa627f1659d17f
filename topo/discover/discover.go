package discover

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Sources are where facts come from. The zero value asks this machine, except for GPUs.
type Sources struct {
	Root     string // file system to read; "/" if empty
	CPU      func() CPUKind
	Affinity func() CPUSet
	// GPUs asks the driver. An error says why it cannot be asked; what comes with it is used.
	GPUs func() ([]GPU, error)
	// Devices lists the bus ids of all PCI devices under a root, for GPUs that the driver does not show. Nil: nobody looks.
	Devices func(root string) ([]string, error)
}

// classDisplay is a base class of the PCI Code and ID Assignment Specification, vendorNVIDIA the vendor's number.
const (
	classDisplay = 0x03
	vendorNVIDIA = 0x10de
)

// Discover learns what the sources tell.
func Discover(s Sources) *Facts {
	r := root(s.Root)
	if r == "" {
		r = "/"
	}
	if s.CPU == nil {
		s.CPU = ThisCPU
	}
	if s.Affinity == nil {
		s.Affinity = ThisAffinity
	}
	f := &Facts{CPU: s.CPU(), Here: s.Affinity(), PCI: map[string]*PCI{}}
	f.Host = r.text("proc/sys/kernel/hostname")
	f.BootID = r.text("proc/sys/kernel/random/boot_id")
	if f.Nodes = readNodes(r); len(f.Nodes) == 0 {
		f.note("no NUMA nodes are shown in /sys/devices/system/node")
	}
	if f.Here.Count() == 0 {
		f.note("the affinity of this process is unknown")
	}
	f.NICs = readNICs(r)
	for _, n := range f.NICs {
		if n.BusID != "" && !f.addPCI(r, n.BusID) {
			f.note("PCI does not show %s at %s", n.Name, n.BusID)
		}
	}
	f.addGPUs(r, s.GPUs)
	f.addSilent(r, s.Devices)
	f.Peers = hasPeerMemory(r)
	return f
}

// addGPUs adds what the driver tells.
func (f *Facts) addGPUs(r root, ask func() ([]GPU, error)) {
	if ask == nil {
		return
	}
	gpus, err := inTime(ask, patience)
	if err != nil {
		f.note("GPUs: %v", err)
	}
	f.GPUs = gpus
	for i := range f.GPUs {
		g := &f.GPUs[i]
		if g.BusID != "" && !f.addPCI(r, g.BusID) {
			f.note("PCI does not show GPU %d at %s", g.Index, g.BusID)
		}
		for _, l := range g.Links {
			f.addPCI(r, l.Target) // a switch; not shown to a virtual machine
		}
	}
}

// addSilent adds GPUs that PCI shows and the driver does not.
func (f *Facts) addSilent(r root, devices func(root string) ([]string, error)) {
	if devices == nil {
		return
	}
	seen := map[string]bool{}
	for _, g := range f.GPUs {
		seen[g.BusID] = true
	}
	list, err := devices(string(r))
	if err != nil {
		f.note("PCI devices cannot be listed: %v", err)
	} else if len(list) == 0 {
		f.note("no PCI devices are shown in /sys/bus/pci")
	}
	for _, id := range list {
		p := readPCI(r, r.real("sys/bus/pci/devices", id))
		if p.Class>>16 == classDisplay && p.Vendor == vendorNVIDIA && !seen[id] {
			f.addPCI(r, id)
			f.note("there is a GPU at %s that the driver does not show", id)
		}
	}
}

// hasPeerMemory: one of the kernel modules with which an RDMA device reaches GPU memory is loaded. The names are those that NCCL 2.30.7
// looks for (src/transport/net_ib); reach by dma-buf is a question to the CUDA driver, which is not asked here.
func hasPeerMemory(r root) bool {
	for _, p := range []string{"sys/module/nvidia_peermem/version", "sys/kernel/mm/memory_peers/nv_mem/version", "sys/kernel/mm/memory_peers/nv_mem_nc/version"} {
		if r.text(p) != "" {
			return true
		}
	}
	return false
}

func (f *Facts) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// patience bounds how long the driver may think: one in trouble may not answer at all. A guess.
const patience = 10 * time.Second

// inTime asks with a deadline. A panic of the asked is an error too: it calls foreign code on foreign data.
func inTime(ask func() ([]GPU, error), limit time.Duration) ([]GPU, error) {
	type answer struct {
		gpus []GPU
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- answer{err: fmt.Errorf("asking the driver failed: %v", p)}
			}
		}()
		gpus, err := ask()
		done <- answer{gpus, err}
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case a := <-done:
		return a.gpus, a.err
	case <-t.C:
		return nil, fmt.Errorf("the driver did not answer within %v", limit)
	}
}

// Local remembers the facts for a process.
type Local struct {
	Sources Sources
	once    sync.Once
	facts   *Facts
}

// Facts discovers at the first call; further calls give the same. It does not fail: what cannot be learnt is unknown.
func (l *Local) Facts() *Facts {
	l.once.Do(func() {
		defer func() {
			if p := recover(); p != nil {
				l.facts = nothing("discovery failed: %v", p)
			}
		}()
		l.facts = Discover(l.Sources)
	})
	return l.facts
}

// nothing is a machine of which nothing is known.
func nothing(format string, args ...any) *Facts {
	f := &Facts{CPU: CPUKind{Arch: archName(runtime.GOARCH), Family: Unknown, Model: Unknown}, PCI: map[string]*PCI{}}
	f.note(format, args...)
	return f
}
