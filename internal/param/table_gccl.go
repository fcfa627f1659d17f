package param

import (
	"math"
	"time"
)

var gcclDefs = []Def{
	{ID: GCCLInitTimeout, Name: "GCCL_INIT_TIMEOUT", Type: TypeDuration, Default: "30m", Min: int64(time.Millisecond), Max: math.MaxInt64, Unit: "s", Subsys: "init", Strict: true,
		Text: "How long communicator creation waits for all ranks before it ends with an error that names the missing ones."},
	{ID: GCCLDevice, Name: "GCCL_DEVICE", Type: TypeEnum, Default: "auto", Values: []string{"auto", "host", "cuda"}, Subsys: "init", Agree: true, Strict: true,
		Text: "Where collectives run: host is ordinary memory and CPUs, cuda is GPUs. auto is cuda where a driver with at least one device can be loaded and the build has kernels, otherwise host. gcclSetDeviceKind comes before it."},
	{ID: GCCLDeterministic, Name: "GCCL_DETERMINISTIC", Type: TypeBool, Default: "0", Subsys: "coll", Agree: true, Strict: true,
		Text: "1 pins the order in which contributions are added to that of the ranks, so that results have the same bits whatever the size of the message: reductions use the methods eager and direct only. An error with an NCCL_ALGO that asks for another method of a reduction."},
	{ID: GCCLSpinUs, Name: "GCCL_SPIN_US", Type: TypeInt, Default: "auto", Min: 0, Max: 1_000_000, Unit: "us", Subsys: "wait", Strict: true,
		Text: "How long a host wait spins before it starts to yield the CPU. auto depends on whether the ranks of the host have a CPU each."},
	{ID: GCCLYieldUs, Name: "GCCL_YIELD_US", Type: TypeInt, Default: "auto", Min: 0, Max: 1_000_000, Unit: "us", Subsys: "wait", Strict: true,
		Text: "How long a host wait yields the CPU before it sleeps in the kernel."},
	{ID: GCCLLate, Name: "GCCL_LATE", Type: TypeDuration, Default: "10s", Min: 0, Max: int64(24 * time.Hour), Unit: "s", Subsys: "wait", Strict: true,
		Text: "After how long a waiting operation is reported in the log; again after 6 and 30 times as long. 0 never. Of a collective one rank says which ranks have not joined it, what they have finished and whether their processes live; of a message and a signal each rank says whom it waits for, and ranks that wait for each other in a circle are named."},
	{ID: GCCLStageBytes, Name: "GCCL_STAGE_BYTES", Type: TypeSize, Default: "auto", Min: 64 << 10, Max: 1 << 40, Unit: "bytes", Subsys: "memory", Agree: true, Strict: true,
		Text: "Scratch memory per rank through which buffers go that peers cannot reach directly."},
	{ID: GCCLEagerBytes, Name: "GCCL_EAGER_BYTES", Type: TypeSize, Default: "auto", Min: 0, Max: 1 << 40, Unit: "bytes", Subsys: "coll", Agree: true, Strict: true,
		Text: "Largest message that a collective handles in one shot, every rank reading all contributions."},
	{ID: GCCLLsaStride, Name: "GCCL_LSA_STRIDE", Type: TypeSize, Default: "4GiB", Min: 1 << 20, Max: 1 << 46, Unit: "bytes", Subsys: "memory", Agree: true, Strict: true,
		Text: "Distance between the address ranges of neighbouring ranks in the flat window range of a process; bounds how much window memory a rank can have."},
	{ID: GCCLDeviceHeader, Name: "GCCL_DEVICE_HEADER", Type: TypeEnum, Default: "2.28.7", Values: []string{"2.28.3", "2.28.7"}, Subsys: "init", Strict: true,
		Text: "Which header a program of the device API was compiled with, if its structures do not say: those before 2.29 carry no version, and that of 2.28.3 is smaller than that of 2.28.7 to 2.28.9."},
	{ID: GCCLCheck, Name: "GCCL_CHECK", Type: TypeBool, Default: "0", Subsys: "coll", Strict: true,
		Text: "1 looks at the buffers of each collective: a send and a receive buffer that overlap in another way than the documented in-place one are an invalid argument. Whether all ranks make the same call (operation, count, type, root) is always compared."},
	{ID: GCCLSimd, Name: "GCCL_SIMD", Type: TypeEnum, Default: "auto", Values: []string{"auto", "c", "avx2", "avx512", "neon"}, Subsys: "coll", Strict: true,
		Text: "Instruction set of the host reductions; one that the CPU lacks is an error at communicator creation. Results have the same bits with all of them."},
	{ID: GCCLPortRange, Name: "GCCL_PORT_RANGE", Type: TypeRange, Default: "", Min: 1, Max: 65535, Subsys: "bootstrap", Strict: true,
		Text: "TCP ports that listening sockets may use, as lo-hi, for hosts behind a firewall. Unset: any free port."},
	{ID: GCCLTrace, Name: "GCCL_TRACE", Type: TypeString, Default: "", Subsys: "trace", Strict: true,
		Text: "File for a trace of this process in Chrome's format, which Perfetto shows and gccl-trace merges. %h in the name is the host, %p the process, %r the rank in the first communicator; a name without them gets host and process before its extension."},
	{ID: GCCLTraceLimit, Name: "GCCL_TRACE_LIMIT", Type: TypeSize, Default: "256MiB", Min: 4096, Max: 1 << 40, Unit: "bytes", Subsys: "trace", Strict: true,
		Text: "Largest size of a trace file. What comes after it is not written, which the log says once."},
	{ID: GCCLCudaLibrary, Name: "GCCL_CUDA_LIBRARY", Type: TypeString, Default: "", Subsys: "init", Strict: true,
		Text: "Path of the CUDA driver library to load in place of libcuda.so.1: for tests with a stand-in, which brings its own kernels."},
	{ID: GCCLCudaExecutor, Name: "GCCL_CUDA_EXECUTOR", Type: TypeEnum, Default: "auto", Values: []string{"auto", "kernels", "copies", "spin"}, Subsys: "coll", Strict: true,
		Text: "What works on the GPUs of one host. kernels: one rank's kernel for all ranks. copies: what only moves data by copies of the driver, which launch no kernel; the executing rank's setting counts. spin: a kernel of each rank, which wait for each other on the GPU, for small sizes and in symmetric windows, if all ranks ask for it. auto: copies with NCCL_CTA_POLICY_ZERO; otherwise spin for small sizes where every rank has a GPU and a process of its own, and kernels."},
	{ID: GCCLLibrary, Name: "GCCL_LIBRARY", Type: TypeString, Default: "", Subsys: "init", Strict: true,
		Text: "File of this library that the Python package loads in place of its own; programs in C are not concerned."},
	{ID: GCCLTuneFile, Name: "GCCL_TUNE_FILE", Type: TypeString, Default: "", Subsys: "coll", Strict: true,
		Text: "File that decides which method a size takes: a machine measured by gccl-perf --calibrate, or a table. It must say the same on all ranks."},
	{ID: GCCLPlanFile, Name: "GCCL_PLAN_FILE", Type: TypeString, Default: "", Subsys: "coll", Strict: true,
		Text: "File with plans of all ranks (gccl-plan), which communicators of that many ranks run instead of the library's own. It is verified at communicator creation, and must say the same on all ranks."},
}
