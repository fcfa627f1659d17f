package param

// Addresses and sockets of the bootstrap, and the identity of the host.
var socketDefs = []Def{
	{ID: NCCLSocketIfname, Name: "NCCL_SOCKET_IFNAME", Type: TypeString, Default: "", Subsys: "bootstrap",
		Text: "Network interfaces to use: comma list of name prefixes; a leading ^ excludes them, a leading = wants whole names."},
	{ID: NCCLSocketFamily, Name: "NCCL_SOCKET_FAMILY", Type: TypeEnum, Default: "", Subsys: "bootstrap", Values: []string{"AF_INET", "AF_INET6"},
		Text: "Address family of sockets. Unset: any."},
	{ID: NCCLCommID, Name: "NCCL_COMM_ID", Type: TypeString, Default: "", Subsys: "bootstrap",
		Text: "Fixed address of the bootstrap: ipv4:port, [ipv6]:port or host:port. Rank 0 listens there."},
	{ID: NCCLHostid, Name: "NCCL_HOSTID", Type: TypeString, Default: "", Subsys: "bootstrap",
		Text: "Replaces the identity of the host: ranks with different values count as ranks of different hosts."},
	{ID: NCCLSocketNthreads, Name: "NCCL_SOCKET_NTHREADS", Type: TypeInt, Default: "auto", Subsys: "bootstrap", Min: 1, Max: 16,
		Text: "Times NCCL_NSOCKS_PERTHREAD: streams of each path of the socket transport. Only the plugin for NCCL starts a thread for each connection."},
	{ID: NCCLNsocksPerthread, Name: "NCCL_NSOCKS_PERTHREAD", Type: TypeInt, Default: "auto", Subsys: "bootstrap", Min: 1, Max: 64,
		Text: "Times NCCL_SOCKET_NTHREADS: streams of each path of the socket transport."},
	{ID: NCCLOobNetEnable, Name: "NCCL_OOB_NET_ENABLE", Type: TypeBool, Default: "0", Subsys: "bootstrap", State: NoEffect,
		Text: "Runs the bootstrap over the network plugin."},
	{ID: NCCLOobNetIfname, Name: "NCCL_OOB_NET_IFNAME", Type: TypeString, Default: "", Subsys: "bootstrap", State: NoEffect,
		Text: "Interface of the bootstrap over the network plugin."},
}
