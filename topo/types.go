package topo

import "fmt"

// Kind is the kind of a node of the graph.
type Kind uint8

// The kinds. A GPU node is a rank's place on a physical GPU, a DEV node is the physical GPU (or a partition of one): several
// ranks on one GPU are several GPU nodes on one DEV. NVS is the NVLink switch of the whole domain, CXB a bridge that the
// partitions of a split GPU share towards their CPU.
const (
	GPUNode Kind = iota
	DEVNode
	PCINode
	NVSNode
	CPUNode
	NICNode
	NETNode
	CXBNode
	kinds
)

var kindNames = [kinds]string{"GPU", "DEV", "PCI", "NVS", "CPU", "NIC", "NET", "CXB"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// PathType orders ways between two nodes from best to worst. A path is as bad as its worst step.
type PathType uint8

// The ladder. A link has one of the types LOC, NVL, C2C, PIX (a PCI link), SYS and NET.
const (
	LOC PathType = iota // the node itself, or a GPU and its device
	NVL                 // NVLink, direct or through its switch
	NVB                 // NVLink through one other GPU
	C2C                 // GPU to CPU over C2C
	PIX                 // PCI with at most one switch
	PXB                 // PCI with several switches, no CPU
	P2C                 // GPU to its closest NIC over C2C and the CPU
	PXN                 // GPU to NIC through a peer GPU on NVLink
	PHB                 // through a CPU
	SYS                 // through a link between CPUs
	NET                 // only the network
	DIS                 // none
	pathTypes
)

var pathNames = [pathTypes]string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}

func (t PathType) String() string {
	if t < pathTypes {
		return pathNames[t]
	}
	return fmt.Sprintf("path type %d", uint8(t))
}

// ParsePathType returns the type with the name.
func ParsePathType(name string) (PathType, bool) {
	for t, n := range pathNames {
		if n == name {
			return PathType(t), true
		}
	}
	return DIS, false
}

// NodeID is unique in a kind: the index of the host in the upper 8 bits, below it the bus id as a number, the NUMA node or
// the number of the network device.
type NodeID uint64

const hostShift = 56

// MakeID puts an id together.
func MakeID(host int, local uint64) NodeID {
	return NodeID(uint64(host)<<hostShift | local&(1<<hostShift-1))
}

// Host is the index of the host in System.Hosts.
func (id NodeID) Host() int { return int(id >> hostShift) }

// Local is the id inside the host.
func (id NodeID) Local() uint64 { return uint64(id) & (1<<hostShift - 1) }

// Text is how graph files and reports write the id: host-local, both hexadecimal.
func (id NodeID) Text() string { return fmt.Sprintf("%x-%x", id.Host(), id.Local()) }

// LocalBW is the bandwidth of what costs nothing (GB/s).
const LocalBW = 5000.0

// Node is a node of the graph. The part that belongs to its kind is set, the others are nil.
type Node struct {
	Kind  Kind
	ID    NodeID
	Index int     // among the nodes of its kind
	Out   []*Link // outgoing links, in the order that the path search follows

	Rank *Rank      // GPUNode
	Dev  *DevInfo   // DEVNode
	CPU  *CPUInfo   // CPUNode
	Net  *NetInfo   // NETNode
	PCI  *PCIDevice // PCINode

	at int // among all nodes of the system
}

func (n *Node) String() string { return n.Kind.String() + "/" + n.ID.Text() }

// Link is one direction of a connection. Rev is the other direction; the two may differ in bandwidth.
type Link struct {
	From, To *Node
	Type     PathType // LOC, NVL, C2C, PIX, SYS or NET
	BW       float64  // GB/s
	Rev      *Link    // nil for the one-way nvlink elements of broken files
	index    int      // among all links of the system
}

func (l *Link) String() string { return fmt.Sprintf("%s -> %s %s", l.From, l.To, l.Type) }

// Rank is a rank of the communicator on this system. Several ranks may have one Device.
type Rank struct {
	Rank   int   // in the communicator
	Node   *Node // its GPUNode
	Device *Node // the DEVNode that it runs on
	Dev    int   // the driver's index of the GPU
	GDR    bool
}

// DevInfo describes a physical GPU or a partition of one.
type DevInfo struct {
	BusID string
	Dev   int // driver's index
	SM    int
	Part  int     // Unknown if the GPU is not split
	Ranks []*Rank // in order of the file
}

// CPUInfo describes a NUMA node.
type CPUInfo struct {
	NUMA                 int
	Arch, Vendor         string
	Family, Model        int
	Affinity             string
	intel, amd, x86, ppc bool
	betweenBW            float64 // of a link to another CPU of the same host
	arm                  bool
}

// PCIDevice describes a bridge or switch.
type PCIDevice struct {
	BusID string
	ID    uint64 // vendor, device, subsystem vendor, subsystem device
}

// NetInfo describes a network device.
type NetInfo struct {
	Name        string
	Dev         int
	BW          float64 // GB/s of the port
	Latency     float64 // microseconds
	Port        int
	Asic        uint64 // the physical adapter; devices with equal Asic and Port share BW
	MaxConn     int
	GDR, Coll   bool
	Rail, Plane int // Unknown

	localGPU  *Node   // the GPU that it serves first
	closeGPUs []*Node // the GPUs with the best way to it
}

// System is the graph of one node of the job: a host, or the hosts of one NVLink domain.
// It is not changed after Build.
type System struct {
	Name  string
	Hosts []uint64 // host hashes, in order of appearance
	Nodes [kinds][]*Node
	Links []*Link
	Ranks []*Rank // in the order of the GPU nodes

	paths [][]path // by Node.at of both ends
}

// Count is the number of nodes of a kind.
func (s *System) Count(k Kind) int { return len(s.Nodes[k]) }

// total is the number of nodes of all kinds.
func (s *System) total() int {
	n := 0
	for _, list := range s.Nodes {
		n += len(list)
	}
	return n
}

// RankByNumber returns the rank with the number, or nil if it is not on this system.
func (s *System) RankByNumber(rank int) *Rank {
	for _, r := range s.Ranks {
		if r.Rank == rank {
			return r
		}
	}
	return nil
}
