package discover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unknown is a number that nobody could tell.
const Unknown = -1

// Facts are what a process sees of its host.
type Facts struct {
	Host   string // host name; empty if unknown
	BootID string // of the kernel; empty if unknown
	CPU    CPUKind
	Nodes  []Node          // NUMA nodes, by number; none if the kernel shows none
	Here   CPUSet          // where this process may run; empty if unknown
	PCI    map[string]*PCI // by bus id: GPUs, network devices, and the bridges above them
	GPUs   []GPU
	NICs   []NIC
	Peers  bool     // a network device can reach GPU memory by PCI (the driver's peer memory module is loaded)
	Notes  []string // what is unknown, and why
}

// CPUKind is the processor's make.
type CPUKind struct {
	Arch   string // x86_64, arm64, ppc64
	Vendor string // as CPUID tells: GenuineIntel, AuthenticAMD …; empty if unknown or not x86
	Family int    // base + 16 x extended, as NCCL 2.30.7 counts; Unknown
	Model  int
}

// Node is a NUMA node.
type Node struct {
	ID   int
	CPUs CPUSet
}

// PCI is a device or bridge of the PCI tree.
type PCI struct {
	BusID string // 0000:3b:00.0
	Up    string // bus id of the device at the other end of the link upwards; empty at a root port
	Class uint32 // with subclass and interface: 0x030200
	// Vendor … SubDevice are 0 where unknown.
	Vendor, Device, SubVendor, SubDevice uint16
	Speed                                string // of a lane, as sysfs writes it: "16.0 GT/s PCIe"; empty if unknown
	Width                                int    // lanes; 0 if unknown
	Node                                 int    // NUMA node, or Unknown
}

// GPU is a GPU, or a MIG instance of one.
type GPU struct {
	Index  int // as the driver counts; of the whole GPU for an instance
	UUID   string
	Name   string
	BusID  string
	SM     int  // compute capability x 10; 0 if unknown
	MIG    *MIG // nil for a whole GPU
	Links  []NVLink
	C2C    []C2C
	P2P    map[string]P2P // by bus id of the other GPU; absent: unknown
	Fabric *Fabric        // nil without one
}

// MIG says which part of a GPU an instance is.
type MIG struct{ GPUInstance, ComputeInstance int }

// NVLink is all links of a GPU to one far end.
type NVLink struct {
	Target string // bus id; may be one that PCI does not show
	Switch bool   // as the driver says; the class of Target says more where it is known
	Count  int
}

// C2C is all chip-to-chip links of a GPU to its CPU of one speed.
type C2C struct {
	MBs   int // of one link
	Count int
}

// P2P is what the driver says of access from one GPU to another.
type P2P struct{ Read, Write, NVLink bool }

// Fabric is a GPU's place in a multi-node NVLink domain.
type Fabric struct {
	Cluster [16]byte
	Clique  uint32
	Ready   bool // registration is complete
}

// NIC is a port of an RDMA device, or a network interface.
type NIC struct {
	Name    string
	RDMA    bool
	BusID   string // empty for a virtual one
	Port    int    // of an RDMA device; 0 otherwise
	Mbps    int    // 0 if unknown
	Up      bool
	GUID    string // of an RDMA device, as sysfs writes it
	Layer   string // of an RDMA device: InfiniBand, Ethernet
	Address string // hardware address of an interface
}

// GPUByUUID finds a GPU or instance.
func (f *Facts) GPUByUUID(uuid string) *GPU {
	for i := range f.GPUs {
		if f.GPUs[i].UUID == uuid {
			return &f.GPUs[i]
		}
	}
	return nil
}

// Refused lists pairs of bus ids, from and to, between which the driver refuses direct access.
func (f *Facts) Refused() [][2]string {
	var out [][2]string
	for _, g := range f.GPUs {
		for _, far := range slices.Sorted(maps.Keys(g.P2P)) {
			if p := g.P2P[far]; !p.Read || !p.Write {
				out = append(out, [2]string{g.BusID, far})
			}
		}
	}
	return out
}

// GPUWith finds a GPU or instance by the bytes of its UUID, as the CUDA driver gives them (cuDeviceGetUuid_v2 of cuda.h).
func (f *Facts) GPUWith(uuid [16]byte) *GPU {
	text := fmt.Sprintf("-%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	for i := range f.GPUs {
		if strings.HasSuffix(strings.ToLower(f.GPUs[i].UUID), text) { // GPU-… or MIG-…
			return &f.GPUs[i]
		}
	}
	return nil
}
