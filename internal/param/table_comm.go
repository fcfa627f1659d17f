package param

import "math"

// Communicators, launches and checks.
var commDefs = []Def{
	{ID: NCCLCommBlocking, Name: "NCCL_COMM_BLOCKING", Type: TypeBool, Default: "auto", Subsys: "comm",
		Text: "Whether calls on a communicator may block; overrides its configuration."},
	{ID: NCCLCommSplitShareResources, Name: "NCCL_COMM_SPLIT_SHARE_RESOURCES", Type: TypeBool, Default: "auto", Subsys: "comm", State: NoEffect,
		Text: "Whether a split shares resources with its parent; overrides its configuration."},
	{ID: NCCLCommShrinkShareResources, Name: "NCCL_COMM_SHRINK_SHARE_RESOURCES", Type: TypeBool, Default: "auto", Subsys: "comm", State: NoEffect,
		Text: "Whether a shrunk communicator shares resources with its parent; overrides its configuration."},
	{ID: NCCLNumRmaCtx, Name: "NCCL_NUM_RMA_CTX", Type: TypeInt, Default: "auto", Subsys: "comm", Min: 0, Max: math.MaxInt32,
		Text: "Contexts for one-sided operations; 0 switches them off. Overrides the configuration."},
	{ID: NCCLCheckPointers, Name: "NCCL_CHECK_POINTERS", Type: TypeBool, Default: "0", Subsys: "comm",
		Text: "1 is GCCL_CHECK=1 in host mode. On a GPU it checks that buffers are memory of the communicator's device."},
	{ID: NCCLCheckMode, Name: "NCCL_CHECK_MODE", Type: TypeEnum, Default: "DEFAULT", Subsys: "comm", Values: []string{"DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL"},
		Text: "Argument checks: DEBUG_LOCAL and DEBUG_GLOBAL are GCCL_CHECK=1 in host mode."},
	{ID: NCCLCgaClusterSize, Name: "NCCL_CGA_CLUSTER_SIZE", Type: TypeInt, Default: "4", Subsys: "comm", Min: 0, Max: 8, Clamp: true, State: NoEffect,
		Text: "Cluster size of kernel launches."},
	{ID: NCCLCtaPolicy, Name: "NCCL_CTA_POLICY", Type: TypeString, Default: "DEFAULT", Subsys: "comm",
		Text: "Use of blocks: DEFAULT, EFFICIENCY, ZERO, joined by a bar, or 0, 1, 2. Overrides the configuration. On a GPU ZERO moves data by copies of the driver (GCCL_CUDA_EXECUTOR); EFFICIENCY has no effect."},
	{ID: NCCLNvlinkUtilCentricSchedEnable, Name: "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", Type: TypeBool, Default: "auto", Subsys: "comm", State: NoEffect,
		Text: "Scheduling that favours NVLink use; overrides the configuration."},
	{ID: NCCLRuntimeConnect, Name: "NCCL_RUNTIME_CONNECT", Type: TypeBool, Default: "1", Subsys: "comm", State: NoEffect,
		Text: "0 makes all connections at communicator creation."},
	{ID: NCCLLaunchMode, Name: "NCCL_LAUNCH_MODE", Type: TypeEnum, Default: "PARALLEL", Subsys: "comm", Values: []string{"PARALLEL", "GROUP"}, State: NoEffect,
		Text: "How kernels of one process are launched. GROUP is deprecated in NCCL."},
	{ID: NCCLLaunchOrderImplicit, Name: "NCCL_LAUNCH_ORDER_IMPLICIT", Type: TypeBool, Default: "0", Subsys: "comm", State: NoEffect,
		Text: "1 orders the launches of several communicators on one device."},
	{ID: NCCLGraphMixingSupport, Name: "NCCL_GRAPH_MIXING_SUPPORT", Type: TypeBool, Default: "auto", Subsys: "comm", State: NoEffect,
		Text: "Whether captured and plain launches may mix on one communicator."},
	{ID: NCCLGraphStreamOrdering, Name: "NCCL_GRAPH_STREAM_ORDERING", Type: TypeBool, Default: "auto", Subsys: "comm", State: NoEffect,
		Text: "Whether captured launches keep the order of streams."},
	{ID: NCCLRasEnable, Name: "NCCL_RAS_ENABLE", Type: TypeBool, Default: "1", Subsys: "comm", State: NoEffect,
		Text: "The health service of NCCL."},
	{ID: NCCLRasAddr, Name: "NCCL_RAS_ADDR", Type: TypeString, Default: "localhost:28028", Subsys: "comm", State: NoEffect,
		Text: "Address of the health service of NCCL."},
}
