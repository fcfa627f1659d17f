package param

// The one-sided network between ranks that do not share memory.
var ginDefs = []Def{
	{ID: GCCLGin, Name: "GCCL_GIN", Type: TypeString, Default: "", Subsys: "net", Agree: true, Strict: true,
		Text: "Backends of GIN that kernels may use, best first: direct (the calling threads, inside an LSA team), gdaki (a NIC's queues), proxy (a CPU thread). Unset: direct inside the LSA team, otherwise proxy. host, the executor's backend, is always there."},
	{ID: GCCLGinNIC, Name: "GCCL_GIN_NIC", Type: TypeString, Default: "", Subsys: "net", Agree: true, Strict: true,
		Text: "Whose queues gdaki uses: mlx5 (a card, by mlx5dv), mlx5-relay (the same, and the CPU rings the doorbells), soft (the software NIC, a CPU thread). Unset: a card if all ranks have one that works, otherwise the software NIC; a card that is named and missing leads to proxy, if that is allowed."},
	{ID: GCCLSoftNIC, Name: "GCCL_SOFTNIC", Type: TypeBool, Default: "0", Subsys: "net", Agree: true, Strict: true,
		Text: "1: where there is no NIC whose queues kernels can write, a CPU thread stands for one and gdaki is used before proxy."},
	{ID: GCCLGinSpin, Name: "GCCL_GIN_SPIN_US", Type: TypeInt, Default: "auto", Min: 0, Max: 10_000_000, Unit: "us", Subsys: "net", Strict: true,
		Text: "How long the thread of the network keeps looking after the last thing that moved, before it naps. auto is 1000 where ranks have a CPU each, otherwise 0."},
	{ID: GCCLGinNap, Name: "GCCL_GIN_NAP_US", Type: TypeInt, Default: "200", Min: 1, Max: 100_000, Unit: "us", Subsys: "net", Strict: true,
		Text: "Length of a nap of the network's thread, up to eight times it after half a second of silence: what the first message may wait."},
	{ID: GCCLGinHot, Name: "GCCL_GIN_HOT", Type: TypeBool, Default: "0", Subsys: "net", Strict: true,
		Text: "1 keeps the network's thread looking for ever: no nap, one CPU less."},
	{ID: GCCLGinSMCopy, Name: "GCCL_GIN_SM_COPY", Type: TypeBool, Default: "0", Subsys: "net", Strict: true, State: Experimental,
		Text: "1: what proxy and the software NIC move between windows on GPUs is copied on the device, by its multiprocessors, and not through pinned memory. Faster, and it never ends where kernels that wait for it fill the GPU."},
	{ID: GCCLGinCPU, Name: "GCCL_GIN_CPU", Type: TypeInt, Default: "-1", Min: -1, Max: 1023, Subsys: "net", Strict: true,
		Text: "CPU on which the network's thread runs; -1 is any."},
}
