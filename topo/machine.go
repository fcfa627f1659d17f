package topo

import (
	"fmt"
	"strings"
)

// Unknown stands for a number that nobody has found out. A text that is unknown is empty.
const Unknown = -1

// NoRank is the rank of a GPU that no rank of the communicator uses. Such a GPU is left out of the graph.
const NoRank = -1

// Machine is what a topology file says, in the file's order: the order of GPUs and NICs decides between equal choices.
// Values that are texts keep the spelling of the file (link speeds, classes, masks), so that a file read and written is the same.
type Machine struct {
	Version int    // 1 is NCCL's format, 2 RCCL's
	Name    string // of the system element; only for people
	CPUs    []*CPU
}

// Pos says where in a file an element stands, for errors. It is empty in a machine that was discovered.
type Pos struct {
	File string
	Line int
}

func (p Pos) String() string {
	if p.File == "" && p.Line == 0 {
		return "discovered"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// CPU is a NUMA node with what hangs on it.
type CPU struct {
	Pos
	NUMA     int    // numaid; -1 is a NUMA node that is not known and a valid name
	HasNUMA  bool   // false: the file does not say it, which the graph refuses
	HostHash string // hexadecimal; tells the hosts of one NVLink domain apart
	Affinity string // CPU mask: comma-separated 32-bit hexadecimal words, highest first
	Arch     string // x86_64, arm64, ppc64
	Vendor   string // GenuineIntel, AuthenticAMD, CentaurHauls, "  Shanghai  "
	Family   int    // base + 16 × extended family, as NCCL computes it; Unknown
	Model    int    // Unknown
	PCI      []*PCI
	NICs     []*NIC // without a PCI device: virtual interfaces
}

// PCI is a PCI device or bridge. It has children if it is a bridge, GPUs if it is a GPU, a NIC if it is an adapter.
type PCI struct {
	Pos
	BusID     string // domain:bus:device.function
	Class     string // 0x0604… bridge, 0x0680… NVSwitch, 0x03… or 0x12… accelerator, 0x02… NIC
	Vendor    string // the four ids are hexadecimal texts
	Device    string
	SubVendor string
	SubDevice string
	LinkSpeed string // "16.0 GT/s PCIe" and its like: per lane
	LinkWidth int    // lanes; 0 or Unknown: not known, taken as 16
	HasSpeed  bool   // the file says a speed, perhaps an empty one
	HasWidth  bool   // the file says a width
	PCI       []*PCI
	GPUs      []*GPU // one for each rank or partition of the device
	NICs      []*NIC
	Peers     []string // bus ids of switches linked sideways (pcilink)
}

// GPU is one rank's view of a GPU, or the GPU itself when no rank is known. Several ranks on one GPU are several of these
// under one PCI with the same Dev; a GPU split in two partitions has the same Dev and different Part.
type GPU struct {
	Pos
	Dev     int // index of the driver; Unknown
	SM      int // compute capability × 10; Unknown
	Rank    int // NoRank
	GDR     int // 1 if NICs may read and write its memory, 0, Unknown
	Part    int // partition 0 or 1 of a split GPU; Unknown: not split
	GCN     string
	Arch    string // RCCL's attributes, kept
	NVLinks []NVLink
	C2Cs    []C2CLink
}

// NVLink is a bundle of links to one far end. RCCL's xgmi elements are the same thing.
type NVLink struct {
	Pos
	Target string // bus id of the far end
	Count  int
	Class  string // PCI class of the far end: 0x0680… is a switch
	XGMI   bool   // written as xgmi
}

// C2CLink is a link between a GPU and its CPU.
type C2CLink struct {
	Pos
	BW    int // MB/s of one link
	Count int
}

// NIC is an adapter with its network devices.
type NIC struct {
	Pos
	Nets []*Net
}

// Net is a network device as a plugin or transport counts them.
type Net struct {
	Pos
	Name    string
	Dev     string  // number, decimal or 0x…; empty: not a usable device
	Speed   int     // Mbit/s; 0 or less: not known, taken as 10000
	Latency float64 // microseconds
	Port    int
	GUID    string // names the physical adapter: devices with equal GUID and port share one budget
	MaxConn int    // Unknown
	GDR     int    // 1, 0, Unknown
	Coll    int    // 1 if the device reduces in the network; Unknown
	IsNet   int    // 0: not usable as a network; Unknown: usable
	GIN     int    // Unknown
	RMA     int    // Unknown
	Rail    int    // Unknown
	Plane   int    // Unknown
	Keep    int    // internal to NCCL's fusing; kept; Unknown

	HasLatency bool // the file says latency
	HasPort    bool // the file says port
}

// NewCPU, NewPCI, NewGPU and NewNet return elements of which nothing is known yet.
func NewCPU(numa int) *CPU {
	return &CPU{NUMA: numa, HasNUMA: true, Family: Unknown, Model: Unknown}
}

// NewPCI returns a PCI device of which only the bus id is known.
func NewPCI(busID string) *PCI { return &PCI{BusID: busID, LinkWidth: Unknown} }

// NewGPU returns a GPU of which nothing is known.
func NewGPU() *GPU { return &GPU{Dev: Unknown, SM: Unknown, Rank: NoRank, GDR: Unknown, Part: Unknown} }

// NewNet returns a network device of which only the name is known.
func NewNet(name string) *Net {
	return &Net{Name: name, MaxConn: Unknown, GDR: Unknown, Coll: Unknown, IsNet: Unknown, GIN: Unknown, RMA: Unknown,
		Rail: Unknown, Plane: Unknown, Keep: Unknown}
}

// Walk calls f for every PCI device, parents first, in order.
func (m *Machine) Walk(f func(cpu *CPU, parent, dev *PCI)) {
	for _, c := range m.CPUs {
		for _, p := range c.PCI {
			walkPCI(c, nil, p, f)
		}
	}
}

func walkPCI(c *CPU, parent, p *PCI, f func(cpu *CPU, parent, dev *PCI)) {
	f(c, parent, p)
	for _, sub := range p.PCI {
		walkPCI(c, p, sub, f)
	}
}

// FindPCI returns the device with the bus id, or nil.
func (m *Machine) FindPCI(busID string) *PCI {
	var found *PCI
	m.Walk(func(_ *CPU, _, p *PCI) {
		if found == nil && strings.EqualFold(p.BusID, busID) {
			found = p
		}
	})
	return found
}

// GPUs returns all gpu elements in order.
func (m *Machine) GPUs() []*GPU {
	var all []*GPU
	m.Walk(func(_ *CPU, _, p *PCI) { all = append(all, p.GPUs...) })
	return all
}

// Elements counts the XML elements of the machine without the root. NCCL 2.30.7 reads at most MaxElements.
func (m *Machine) Elements() int {
	n := 0
	nics := func(list []*NIC) {
		for _, nic := range list {
			n += 1 + len(nic.Nets)
		}
	}
	for _, c := range m.CPUs {
		n++
		nics(c.NICs)
	}
	m.Walk(func(_ *CPU, _, p *PCI) {
		n += 1 + len(p.Peers)
		nics(p.NICs)
		for _, g := range p.GPUs {
			n += 1 + len(g.NVLinks) + len(g.C2Cs)
		}
	})
	return n
}
