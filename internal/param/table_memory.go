package param

// Memory and registration.
var memoryDefs = []Def{
	{ID: NCCLWinEnable, Name: "NCCL_WIN_ENABLE", Type: TypeBool, Default: "1", Subsys: "memory", Agree: true,
		Text: "0 switches windows off: a registration succeeds and gives a NULL window, with one line in the log."},
	{ID: NCCLLsaTeamSize, Name: "NCCL_LSA_TEAM_SIZE", Type: TypeInt, Default: "0", Min: 0, Max: 1 << 20, Subsys: "memory", Agree: true,
		Text: "Divides LSA teams, the ranks whose memory kernels load and store: a team has the greatest common divisor of this and of its natural size. 0 leaves them whole."},
	{ID: NCCLDisableMemManager, Name: "NCCL_DISABLE_MEM_MANAGER", Type: TypeBool, Default: "0", Subsys: "memory",
		Text: "1 makes suspend and resume an error."},
	{ID: NCCLCumemEnable, Name: "NCCL_CUMEM_ENABLE", Type: TypeInt, Default: "-2", Subsys: "memory", Min: -2, Max: 1, State: NoEffect,
		Text: "GPU memory by the driver's virtual memory calls: 0 off, 1 on, -2 where available."},
	{ID: NCCLCumemHostEnable, Name: "NCCL_CUMEM_HOST_ENABLE", Type: TypeInt, Default: "-1", Subsys: "memory", Min: -1, Max: 1, State: NoEffect,
		Text: "Host memory by the driver's virtual memory calls: 0 off, 1 on, -1 where available."},
	{ID: NCCLLocalRegister, Name: "NCCL_LOCAL_REGISTER", Type: TypeBool, Default: "1", Subsys: "memory", State: NoEffect,
		Text: "Registration of user buffers by ncclCommRegister."},
	{ID: NCCLGraphRegister, Name: "NCCL_GRAPH_REGISTER", Type: TypeBool, Default: "1", Subsys: "memory", State: NoEffect,
		Text: "Registration of buffers of captured graphs."},
	{ID: NCCLLegacyCudaRegister, Name: "NCCL_LEGACY_CUDA_REGISTER", Type: TypeBool, Default: "0", Subsys: "memory", State: NoEffect,
		Text: "1 registers cudaMalloc buffers too."},
}
