package param

// What tools show of a running process, and the CUDA runtime over host memory.
var toolDefs = []Def{
	{ID: NCCLNvtxDisable, Name: "NCCL_NVTX_DISABLE", Type: TypeBool, Default: "0", Subsys: "tools", Param: &ParamInfo{CBool, true},
		Text: "1: the public calls make no NVTX ranges, although a profiler has set NVTX_INJECTION64_PATH. Read at the first call."},
	{ID: GCCLTop, Name: "GCCL_TOP", Type: TypeBool, Default: "1", Subsys: "tools", Strict: true,
		Text: "1: while this process has communicators, gccl-top of the same user may ask it about them, on a Unix socket in GCCL_TOP_DIR. 0: there is no socket. Read when a process makes its first communicator."},
	{ID: GCCLTopDir, Name: "GCCL_TOP_DIR", Type: TypeString, Default: "", Subsys: "tools", Strict: true,
		Text: "Folder of the sockets of GCCL_TOP; it must belong to the user and be closed to all others (0700), and is made if it is not there. Unset: /tmp/gccl-UID."},
	{ID: GCCLReportSignal, Name: "GCCL_REPORT_SIGNAL", Type: TypeEnum, Default: "none", Values: []string{"none", "USR1", "USR2", "HUP", "QUIT"}, Subsys: "tools", Strict: true,
		Text: "Signal at which a process writes into its log what each of its communicators is doing and which ranks are missing. A handler that the program had is called afterwards; one that it installs later takes the place of this one. Read when a process makes its first communicator."},
	{ID: GCCLCudartDevices, Name: "GCCL_CUDART_DEVICES", Type: TypeInt, Default: "4", Min: 1, Max: 64, Subsys: "tools", Strict: true,
		Text: "How many devices libgccl-cudart.so, the CUDA runtime over host memory, says there are."},
}
