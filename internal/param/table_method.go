package param

import "math"

// Methods of collectives, channels and buffers.
var methodDefs = []Def{
	{ID: NCCLAlgo, Name: "NCCL_ALGO", Type: TypeString, Default: "", Subsys: "coll", Agree: true,
		Text: "Methods that collectives may use: a comma list, ^ excludes, func:list;func:list for single collectives."},
	{ID: NCCLProto, Name: "NCCL_PROTO", Type: TypeString, Default: "", Subsys: "coll", Agree: true,
		Text: "Protocols that connections may use: LL, LL128, Simple; the syntax of NCCL_ALGO. Host mode has Simple only."},
	{ID: NCCLBuffsize, Name: "NCCL_BUFFSIZE", Type: TypeSize, Default: "4MiB", Subsys: "coll", Min: 1, Max: math.MaxInt64, Unit: "bytes", Agree: true, State: NoEffect,
		Text: "Buffer per channel. Host mode has GCCL_STAGE_BYTES."},
	{ID: NCCLNthreads, Name: "NCCL_NTHREADS", Type: TypeInt, Default: "512", Subsys: "coll", Min: 64, Max: 512, State: NoEffect,
		Text: "Threads per block of a kernel."},
	{ID: NCCLMinCtas, Name: "NCCL_MIN_CTAS", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: 64, Clamp: true, Aliases: []string{"NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"}, Agree: true, State: NoEffect,
		Text: "Least number of channels; overrides the communicator's configuration."},
	{ID: NCCLMaxCtas, Name: "NCCL_MAX_CTAS", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: 64, Clamp: true, Aliases: []string{"NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"}, Agree: true, State: NoEffect,
		Text: "Largest number of channels; overrides the communicator's configuration."},
	{ID: NCCLMinP2pNchannels, Name: "NCCL_MIN_P2P_NCHANNELS", Type: TypeInt, Default: "1", Subsys: "coll", Min: 1, Max: 64, Clamp: true, Agree: true, State: NoEffect,
		Text: "Least number of channels of send and receive."},
	{ID: NCCLMaxP2pNchannels, Name: "NCCL_MAX_P2P_NCHANNELS", Type: TypeInt, Default: "64", Subsys: "coll", Min: 1, Max: 64, Clamp: true, Agree: true, State: NoEffect,
		Text: "Largest number of channels of send and receive."},
	{ID: NCCLNchannelsPerNetPeer, Name: "NCCL_NCHANNELS_PER_NET_PEER", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: 64, Clamp: true, State: NoEffect,
		Text: "Channels per peer on another host."},
	{ID: NCCLNvlsNchannels, Name: "NCCL_NVLS_NCHANNELS", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: 64, Clamp: true, State: NoEffect,
		Text: "Channels of reduction in NVLink switches."},
	{ID: NCCLP2pMaxPeers, Name: "NCCL_P2P_MAX_PEERS", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: math.MaxInt32, Aliases: []string{"NCCL_MAX_P2P_PEERS"}, State: NoEffect,
		Text: "Peers that send and receive serve at the same time."},
	{ID: NCCLSymCtas, Name: "NCCL_SYM_CTAS", Type: TypeInt, Default: "auto", Subsys: "coll", Min: 1, Max: 64, Clamp: true, State: NoEffect,
		Text: "Blocks of kernels that work on symmetric windows."},
	{ID: NCCLSymKernel, Name: "NCCL_SYM_KERNEL", Type: TypeString, Default: "auto", Subsys: "coll", State: NoEffect,
		Text: "Kernel that works on symmetric windows."},
}
