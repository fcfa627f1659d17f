package topo

// Options are the user's orders that change paths and search. The zero value is not the default: use DefaultOptions.
// Callers fill them from internal/param; this package reads no environment.
type Options struct {
	// Nodes is the number of systems in the job. More than one makes the search begin and end channels at NICs.
	Nodes int

	P2PDisable  bool     // NCCL_P2P_DISABLE: GPUs reach each other through the CPU only
	P2PLevel    PathType // NCCL_P2P_LEVEL: the worst path on which GPUs talk directly
	HasP2P      bool     // P2PLevel was given
	NVBDisable  bool     // NCCL_NVB_DISABLE
	PXNDisable  bool     // NCCL_PXN_DISABLE
	NVLSDisable bool     // NCCL_NVLS_ENABLE=0
	CrossNic    int      // NCCL_CROSS_NIC: 0 same adapter, 1 any, 2 pairs of channels that swap

	MinChannels, MaxChannels int // of execution channels; 0: no limit

	// Measured bandwidths replace nominal ones.
	Measured []Measured

	// P2PVeto, if set, says that the driver refuses direct access of one rank's GPU to another's.
	P2PVeto func(from, to *Rank) bool

	// Self is the rank whose system is built, if the description has parts that only a network joins; NoRank is the first rank.
	Self int

	// Graphs, if set, is a graph file (NCCL_GRAPH_FILE): what it has is used as it is, the rest is searched.
	Graphs *GraphFile

	// Strict keeps to what NCCL 2.30.7 would find: no search beyond it. For comparisons.
	Strict bool
}

// DefaultOptions are those of a job of one node without orders.
func DefaultOptions() Options { return Options{Nodes: 1, CrossNic: 2, Self: NoRank} }
