package param

// ID names a setting in code.
type ID int

// The settings. Each has one line in the table.
const (
	// Our own.
	GCCLInitTimeout ID = iota
	GCCLDevice
	GCCLDeterministic
	GCCLSpinUs
	GCCLYieldUs
	GCCLLate
	GCCLStageBytes
	GCCLEagerBytes
	GCCLLsaStride
	GCCLDeviceHeader
	GCCLCheck
	GCCLSimd
	GCCLPortRange
	GCCLTuneFile
	GCCLPlanFile
	GCCLCudaLibrary
	GCCLCudaExecutor
	GCCLLibrary
	GCCLGin
	GCCLSoftNIC
	GCCLGinNIC
	GCCLGinHot
	GCCLGinSMCopy
	GCCLGinSpin
	GCCLGinNap
	GCCLGinCPU
	GCCLTrace
	GCCLTraceLimit
	NCCLNvtxDisable
	GCCLTop
	GCCLTopDir
	GCCLReportSignal
	GCCLCudartDevices

	// Logs and files.
	NCCLDebug
	NCCLDebugSubsys
	NCCLDebugFile
	NCCLDebugTimestampFormat
	NCCLDebugTimestampLevels
	NCCLSetThreadName
	NCCLWarnEnableDebugInfo
	NCCLNoCache
	NCCLParamDumpAll
	NCCLConfFile

	// Bootstrap and sockets.
	NCCLSocketIfname
	NCCLSocketFamily
	NCCLSocketNthreads
	NCCLNsocksPerthread
	NCCLCommID
	NCCLOobNetEnable
	NCCLOobNetIfname
	NCCLHostid

	// Plugins and network.
	NCCLNet
	NCCLNetPlugin
	NCCLTunerPlugin
	NCCLProfilerPlugin
	NCCLGinPlugin
	NCCLRmaPlugin
	NCCLEnvPlugin
	NCCLIbDisable
	NCCLIbHca
	NCCLIbTimeout
	NCCLIbRetryCnt
	NCCLIbGidIndex
	NCCLIbRoceVersionNum
	NCCLIbSl
	NCCLIbTc
	NCCLIbFifoTc
	NCCLIbQpsPerConnection
	NCCLIbSplitDataOnQps
	NCCLIbPciRelaxedOrdering
	NCCLIbAdaptiveRouting
	NCCLIbMergeNics
	NCCLNetMergeLevel
	NCCLNetForceMerge
	NCCLNetMergePolicy
	NCCLNetGdrLevel
	NCCLNetGdrRead
	NCCLNetGdrC2c
	NCCLDmabufEnable
	NCCLCrossNic
	NCCLPxnDisable
	NCCLP2pPxnLevel
	NCCLGinEnable
	NCCLGinType

	// Paths between ranks of a host.
	NCCLP2pDisable
	NCCLP2pLevel
	NCCLP2pDirectDisable
	NCCLP2pUseCudaMemcpy
	NCCLShmDisable
	NCCLMultiRankGpuEnable
	NCCLMnnvlEnable
	NCCLNvlsEnable
	NCCLCollnetEnable
	NCCLIgnoreCPUAffinity
	NCCLTopoFile
	NCCLTopoDumpFile
	NCCLTopoDumpFileRank
	NCCLGraphFile
	NCCLGraphDumpFile
	NCCLGraphDumpFileRank

	// Methods, channels, buffers.
	NCCLBuffsize
	NCCLNthreads
	NCCLMinCtas
	NCCLMaxCtas
	NCCLMinP2pNchannels
	NCCLMaxP2pNchannels
	NCCLNchannelsPerNetPeer
	NCCLNvlsNchannels
	NCCLP2pMaxPeers
	NCCLAlgo
	NCCLProto
	NCCLSymCtas
	NCCLSymKernel

	// Memory and registration.
	NCCLCumemEnable
	NCCLCumemHostEnable
	NCCLWinEnable
	NCCLLsaTeamSize
	NCCLLocalRegister
	NCCLGraphRegister
	NCCLLegacyCudaRegister
	NCCLDisableMemManager

	// Communicators and launches.
	NCCLCommBlocking
	NCCLCommSplitShareResources
	NCCLCommShrinkShareResources
	NCCLCgaClusterSize
	NCCLCtaPolicy
	NCCLNvlinkUtilCentricSchedEnable
	NCCLRuntimeConnect
	NCCLLaunchMode
	NCCLLaunchOrderImplicit
	NCCLGraphMixingSupport
	NCCLGraphStreamOrdering
	NCCLNumRmaCtx
	NCCLCheckPointers
	NCCLCheckMode
	NCCLRasEnable
	NCCLRasAddr

	numIDs
)
