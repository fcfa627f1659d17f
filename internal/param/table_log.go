package param

// Logs, configuration files and the settings registry.
var logDefs = []Def{
	{ID: NCCLDebug, Name: "NCCL_DEBUG", Type: TypeEnum, Default: "", Subsys: "log", Values: []string{"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"}, Param: &ParamInfo{CRaw, true},
		Text: "How much is logged. Unset logs failures and fallbacks as WARN does, without the version line. ABORT adds one line per operation to INFO, TRACE one per chunk."},
	{ID: NCCLDebugSubsys, Name: "NCCL_DEBUG_SUBSYS", Type: TypeList, Default: "INIT,BOOTSTRAP,ENV", Subsys: "log", Param: &ParamInfo{CUint64, true},
		Text: "Parts of the library that log at INFO and above: a comma list of INIT COLL P2P SHM NET GRAPH TUNING ENV ALLOC ALLOC_HOST CALL PROXY NVLS BOOTSTRAP REG PROFILE RAS DESTROY ALL; a leading ^ means all but these."},
	{ID: NCCLDebugFile, Name: "NCCL_DEBUG_FILE", Type: TypeString, Default: "", Subsys: "log", Param: &ParamInfo{CString, true},
		Text: "File that log lines are appended to: %h is the host, %p the process, %% a percent sign. Unset, or if it cannot be written: standard error."},
	{ID: NCCLDebugTimestampFormat, Name: "NCCL_DEBUG_TIMESTAMP_FORMAT", Type: TypeString, Default: "[%F %T]", Subsys: "log", Param: &ParamInfo{CString, true},
		Text: "Time in front of a log line, in strftime form; %Nf gives N digits of the fraction of the second."},
	{ID: NCCLDebugTimestampLevels, Name: "NCCL_DEBUG_TIMESTAMP_LEVELS", Type: TypeList, Default: "ALL", Subsys: "log", Param: &ParamInfo{CUint32, true},
		Text: "Levels whose lines carry the time: a comma list of NCCL_DEBUG words or ALL; a leading ^ means all but these. (NCCL stamps WARN only.)"},
	{ID: NCCLSetThreadName, Name: "NCCL_SET_THREAD_NAME", Type: TypeBool, Default: "0", Subsys: "log", State: NoEffect, Param: &ParamInfo{CBool, true},
		Text: "Names the threads of the library."},
	{ID: NCCLWarnEnableDebugInfo, Name: "NCCL_WARN_ENABLE_DEBUG_INFO", Type: TypeBool, Default: "0", Subsys: "log", State: NoEffect, Param: &ParamInfo{CBool, false},
		Text: "In NCCL a warning raises the log level to INFO. Not done here: the error text holds the cause."},
	{ID: NCCLNoCache, Name: "NCCL_NO_CACHE", Type: TypeList, Default: "", Subsys: "log", State: NoEffect, Param: &ParamInfo{CString, false},
		Text: "In NCCL names variables that are read each time. Here all settings are read at each communicator creation."},
	{ID: NCCLParamDumpAll, Name: "NCCL_PARAM_DUMP_ALL", Type: TypeBool, Default: "0", Subsys: "log", Param: &ParamInfo{CBool, false},
		Text: "1 lists private settings too in ncclParamDumpAll and ncclParamGetAllParameterKeys."},
	{ID: NCCLConfFile, Name: "NCCL_CONF_FILE", Type: TypeString, Default: "", Subsys: "log",
		Text: "Configuration file of NAME=VALUE lines, read instead of $HOME/.nccl.conf. A file never overrides the environment."},
}
