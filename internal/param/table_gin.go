package param

// The one-sided network between ranks that do not share memory.
var ginDefs = []Def{
	{ID: GCCLGin, Name: "GCCL_GIN", Type: TypeString, Default: "", Subsys: "net", Agree: true, Strict: true,
		Text: "Backends of the one-sided network that may be used, best first: host (commands of an executor), proxy (rings of descriptors). Unset: what the device of the communicator can use."},
	{ID: GCCLGinSpin, Name: "GCCL_GIN_SPIN_US", Type: TypeInt, Default: "auto", Min: 0, Max: 10_000_000, Unit: "us", Subsys: "net", Strict: true,
		Text: "How long the thread of the network keeps looking after the last thing that moved, before it naps. auto is 1000 where ranks have a CPU each, otherwise 0."},
	{ID: GCCLGinNap, Name: "GCCL_GIN_NAP_US", Type: TypeInt, Default: "200", Min: 1, Max: 100_000, Unit: "us", Subsys: "net", Strict: true,
		Text: "Length of a nap of the network's thread, up to eight times it after half a second of silence: what the first message may wait."},
	{ID: GCCLGinHot, Name: "GCCL_GIN_HOT", Type: TypeBool, Default: "0", Subsys: "net", Strict: true,
		Text: "1 keeps the network's thread looking for ever: no nap, one CPU less."},
	{ID: GCCLGinCPU, Name: "GCCL_GIN_CPU", Type: TypeInt, Default: "-1", Min: -1, Max: 1023, Subsys: "net", Strict: true,
		Text: "CPU on which the network's thread runs; -1 is any."},
}
