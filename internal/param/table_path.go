package param

import "math"

// Paths between ranks of one host.
var pathDefs = []Def{
	{ID: NCCLP2pDisable, Name: "NCCL_P2P_DISABLE", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "1 forbids direct access between the memory of two GPUs."},
	{ID: NCCLShmDisable, Name: "NCCL_SHM_DISABLE", Type: TypeBool, Default: "0", Subsys: "topo",
		Text: "1 forbids shared memory between processes: they use the network."},
	{ID: NCCLP2pLevel, Name: "NCCL_P2P_LEVEL", Type: TypeString, Default: "auto", Subsys: "topo", State: NoEffect,
		Text: "Largest distance of two GPUs for direct access: LOC, NVL, PIX, PXB, PHB, SYS, or a number."},
	{ID: NCCLP2pDirectDisable, Name: "NCCL_P2P_DIRECT_DISABLE", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "1 forbids direct pointers between GPUs of one process."},
	{ID: NCCLP2pUseCudaMemcpy, Name: "NCCL_P2P_USE_CUDA_MEMCPY", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "1 copies between GPUs with copy engines."},
	{ID: NCCLMultiRankGpuEnable, Name: "NCCL_MULTI_RANK_GPU_ENABLE", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "NCCL's permission for several ranks on one GPU. Several ranks may always share a device here."},
	{ID: NCCLMnnvlEnable, Name: "NCCL_MNNVL_ENABLE", Type: TypeInt, Default: "2", Subsys: "topo", Min: 0, Max: 2, State: NoEffect,
		Text: "NVLink between hosts: 0 off, 1 on, 2 where available."},
	{ID: NCCLNvlsEnable, Name: "NCCL_NVLS_ENABLE", Type: TypeInt, Default: "2", Subsys: "topo", Min: 0, Max: 2,
		Text: "Reduction in NVLink switches: 0 off; 1 and 2 where the GPUs have it. Nothing is reduced there yet: the setting is for the search of channels."},
	{ID: NCCLCollnetEnable, Name: "NCCL_COLLNET_ENABLE", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "Reduction in the network."},
	{ID: NCCLIgnoreCPUAffinity, Name: "NCCL_IGNORE_CPU_AFFINITY", Type: TypeBool, Default: "0", Subsys: "topo", State: NoEffect,
		Text: "1 places threads by the GPU alone, whatever the affinity of the process."},
	{ID: NCCLTopoFile, Name: "NCCL_TOPO_FILE", Type: TypeString, Default: "", Subsys: "topo",
		Text: "XML file with the topology of the machine, instead of what discovery finds. If its GPUs have the ranks of the communicator, the ranks are placed there. A file that is not there is ignored with a warning."},
	{ID: NCCLTopoDumpFile, Name: "NCCL_TOPO_DUMP_FILE", Type: TypeString, Default: "", Subsys: "topo",
		Text: "XML file to write the topology to that the communicator has found."},
	{ID: NCCLTopoDumpFileRank, Name: "NCCL_TOPO_DUMP_FILE_RANK", Type: TypeInt, Default: "0", Subsys: "topo", Min: 0, Max: math.MaxInt32,
		Text: "Rank that writes NCCL_TOPO_DUMP_FILE."},
	{ID: NCCLGraphFile, Name: "NCCL_GRAPH_FILE", Type: TypeString, Default: "", Subsys: "topo",
		Text: "XML file with the channels to use instead of searching. A file that is not there or does not fit the machine is an error."},
	{ID: NCCLGraphDumpFile, Name: "NCCL_GRAPH_DUMP_FILE", Type: TypeString, Default: "", Subsys: "topo",
		Text: "XML file to write the channels to that the search has found."},
	{ID: NCCLGraphDumpFileRank, Name: "NCCL_GRAPH_DUMP_FILE_RANK", Type: TypeInt, Default: "0", Subsys: "topo", Min: 0, Max: math.MaxInt32,
		Text: "Rank that writes NCCL_GRAPH_DUMP_FILE."},
}
