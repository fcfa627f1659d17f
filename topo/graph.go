package topo

// Pattern is how a channel visits the GPUs of a system. The numbers are those of graph files.
type Pattern int

// The patterns. In a chain order the first GPU is the top.
const (
	BalancedTree Pattern = 1 // a chain; traffic with the network is split over its first two GPUs
	SplitTree    Pattern = 2 // a chain; the first GPU receives from the network, the second sends to it
	Tree         Pattern = 3 // a chain; one GPU does both. Also the chain of SHARP
	Ring         Pattern = 4
	NVLS         Pattern = 5 // a head that reduces through the NVLink switch
	CollNet      Pattern = 6 // heads that SHARP serves directly; only in files, nothing here searches it
)

// heads says whether a channel of the pattern lists its head only.
func (p Pattern) heads() bool { return p == NVLS || p == CollNet }

// Ids of graphs in files.
const (
	RingID  = 0
	TreeID  = 1
	ChainID = 2
	NVLSID  = 3
)

// Graph is a set of channels of one pattern that the links carry all at once.
type Graph struct {
	ID           int
	Pattern      Pattern
	CrossNic     int     // 0, 1 or 2: see Options.CrossNic
	BWIntra      float64 // GB/s of one channel inside the system
	BWInter      float64 // GB/s of one channel from and to the network
	LatencyInter float64 // µs
	TypeIntra    PathType
	TypeInter    PathType // the worst paths that were allowed
	SameChannels bool     // all channels have one order
	Channels     []Channel
	Fallback     bool // nothing was found: one slow channel in order of the file, over ways that may not exist
	hops         int
}

// Channel is one channel: ranks in order (NVLS: the head only) and, between systems, the NICs in and out.
type Channel struct {
	Ranks   []*Rank
	In, Out *Node // NETNode; nil inside one system
}

// N is the number of channels.
func (g *Graph) N() int { return len(g.Channels) }

// TotalBW is the bandwidth of all channels inside the system.
func (g *Graph) TotalBW() float64 { return float64(g.N()) * g.BWIntra }
