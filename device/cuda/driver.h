/* The CUDA driver as this library uses it: every entry point, with its exported name, in one list.
 *
 * Nothing is linked and no header of CUDA is needed: libcuda.so.1 is opened when the first CUDA communicator is made
 * (gccl_cuda_open). Types and numbers are those of the driver's C ABI, cuda.h of CUDA 12.8 (names kept, so that they
 * can be looked up); this header and cuda.h never meet in one file.
 *
 * A stand-in for tests (device/fake) implements the same list.
 */
#ifndef GCCL_CUDA_DRIVER_H
#define GCCL_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef void (*CUhostFn)(void *);

typedef struct {
  char bytes[16];
} CUuuid;

typedef struct {
  char reserved[64];
} CUipcMemHandle;

typedef struct {
  int type, id; /* CU_MEM_LOCATION_*, ordinal */
} CUmemLocation;

typedef struct {
  int type, requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;

typedef struct {
  CUmemLocation location;
  int flags;
} CUmemAccessDesc;

typedef union {
  int operation; /* CU_STREAM_MEM_OP_* */
  struct {
    int operation;
    CUdeviceptr address;
    union {
      uint32_t value;
      uint64_t value64;
    };
    unsigned flags; /* of a wait CU_STREAM_WAIT_VALUE_*, of a write CU_STREAM_WRITE_VALUE_* */
    CUdeviceptr alias;
  } value;
  struct {
    int operation;
    unsigned flags;
  } barrier, flush;
  uint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef union {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
} CUlaunchAttributeValue;

typedef struct {
  int id; /* CU_LAUNCH_ATTRIBUTE_* */
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_UNKNOWN = 999
};

/* Handles that the caller may pass for a stream; NULL is the legacy stream here. */
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum {
  CU_STREAM_FIRST = -1000
}; /* of priorities, which are cut to the range that there is (CUDA Driver API, cuStreamCreateWithPriority) */

enum {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
  CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128,
  CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
  CU_DEVICE_ATTRIBUTE_MPS_ENABLED = 133
};

enum {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13,
  CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
};

enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1, CU_MEM_HANDLE_TYPE_FABRIC = 8 };
enum { CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1 };
enum { CU_MEMHOST_PORTABLE = 1, CU_MEMHOST_DEVICEMAP = 2 }; /* of cuMemHostRegister and of cuMemHostAlloc alike */
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { CU_STREAM_WAIT_VALUE_GEQ = 0, CU_STREAM_WAIT_VALUE_EQ = 1, CU_STREAM_WAIT_VALUE_AND = 2 };
enum { CU_STREAM_WRITE_VALUE_DEFAULT = 0 }; /* behind a fence of the system; this version of the calls has no other */
enum {
  CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
  CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
  CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
  CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
  CU_STREAM_MEM_OP_BARRIER = 6
};
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1, CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2 };
enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1 };
enum { CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0, CU_FUNC_ATTRIBUTE_NUM_REGS = 4 };
enum { CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };
enum { CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, CU_GRAPH_USER_OBJECT_MOVE = 1 };
enum { CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1 };

/* F(member of the table, exported name, parameters). Exported names carry the version of the ABI that we call. */
#define GCCL_CUDA_FUNCTIONS(F)                                                                                                           \
  F(Init, "cuInit", (unsigned flags))                                                                                                    \
  F(DriverGetVersion, "cuDriverGetVersion", (int *version))                                                                              \
  F(GetErrorString, "cuGetErrorString", (CUresult, const char **text))                                                                   \
  F(GetErrorName, "cuGetErrorName", (CUresult, const char **text))                                                                       \
  F(DeviceGetCount, "cuDeviceGetCount", (int *n))                                                                                        \
  F(DeviceGet, "cuDeviceGet", (CUdevice *, int ordinal))                                                                                 \
  F(DeviceGetName, "cuDeviceGetName", (char *name, int len, CUdevice))                                                                   \
  F(DeviceGetUuid, "cuDeviceGetUuid_v2", (CUuuid *, CUdevice))                                                                           \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice))                                                   \
  F(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice))                                                                   \
  F(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *can, CUdevice from, CUdevice to))                                                \
  F(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                                                         \
  F(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                                                 \
  F(DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", (CUdevice, unsigned *flags, int *active))                                    \
  F(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                                                                     \
  F(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                                                                       \
  F(CtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                                                                  \
  F(CtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                                                                  \
  F(CtxGetDevice, "cuCtxGetDevice", (CUdevice *))                                                                                        \
  F(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags))                                                      \
  F(ModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *image))                                                                 \
  F(ModuleUnload, "cuModuleUnload", (CUmodule))                                                                                          \
  F(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *name))                                                \
  F(FuncGetAttribute, "cuFuncGetAttribute", (int *value, int attribute, CUfunction))                                                     \
  F(OccupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *n, CUfunction, int threads, size_t shared))           \
  F(LaunchKernel, "cuLaunchKernel",                                                                                                      \
    (CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream, void **params, \
     void **extra))                                                                                                                      \
  F(LaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **params, void **extra))                               \
  F(LaunchHostFunc, "cuLaunchHostFunc", (CUstream, CUhostFn, void *arg))                                                                 \
  F(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                                                  \
  F(MemFree, "cuMemFree_v2", (CUdeviceptr))                                                                                              \
  F(MemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                                                      \
  F(MemGetAddressRange, "cuMemGetAddressRange_v2", (CUdeviceptr * base, size_t * size, CUdeviceptr))                                     \
  F(PointerGetAttribute, "cuPointerGetAttribute", (void *value, int attribute, CUdeviceptr))                                             \
  F(PointerGetAttributes, "cuPointerGetAttributes", (unsigned n, int *attributes, void **values, CUdeviceptr))                           \
  F(MemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned flags))                                                                   \
  F(MemFreeHost, "cuMemFreeHost", (void *))                                                                                              \
  F(MemHostRegister, "cuMemHostRegister_v2", (void *, size_t, unsigned flags))                                                           \
  F(MemHostUnregister, "cuMemHostUnregister", (void *))                                                                                  \
  F(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *, void *, unsigned flags))                                    \
  F(MemcpyAsync, "cuMemcpyAsync", (CUdeviceptr to, CUdeviceptr from, size_t, CUstream))                                                  \
  F(MemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char value, size_t n, CUstream))                                            \
  F(MemGetAllocationGranularity, "cuMemGetAllocationGranularity", (size_t *, const CUmemAllocationProp *, int option))                   \
  F(MemCreate, "cuMemCreate", (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long flags))           \
  F(MemRelease, "cuMemRelease", (CUmemGenericAllocationHandle))                                                                          \
  F(MemRetainAllocationHandle, "cuMemRetainAllocationHandle", (CUmemGenericAllocationHandle *, void *address))                           \
  F(MemGetAllocationProperties, "cuMemGetAllocationPropertiesFromHandle", (CUmemAllocationProp *, CUmemGenericAllocationHandle))         \
  F(MemAddressReserve, "cuMemAddressReserve", (CUdeviceptr *, size_t, size_t alignment, CUdeviceptr wish, unsigned long long flags))     \
  F(MemAddressFree, "cuMemAddressFree", (CUdeviceptr, size_t))                                                                           \
  F(MemMap, "cuMemMap", (CUdeviceptr, size_t, size_t offset, CUmemGenericAllocationHandle, unsigned long long flags))                    \
  F(MemUnmap, "cuMemUnmap", (CUdeviceptr, size_t))                                                                                       \
  F(MemSetAccess, "cuMemSetAccess", (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t n))                                            \
  F(MemExportToShareableHandle, "cuMemExportToShareableHandle",                                                                          \
    (void *out, CUmemGenericAllocationHandle, int type, unsigned long long flags))                                                       \
  F(MemImportFromShareableHandle, "cuMemImportFromShareableHandle", (CUmemGenericAllocationHandle *, void *os, int type))                \
  F(IpcGetMemHandle, "cuIpcGetMemHandle", (CUipcMemHandle *, CUdeviceptr))                                                               \
  F(IpcOpenMemHandle, "cuIpcOpenMemHandle_v2", (CUdeviceptr *, CUipcMemHandle, unsigned flags))                                          \
  F(IpcCloseMemHandle, "cuIpcCloseMemHandle", (CUdeviceptr))                                                                             \
  F(StreamCreate, "cuStreamCreate", (CUstream *, unsigned flags))                                                                        \
  F(StreamCreateWithPriority, "cuStreamCreateWithPriority", (CUstream *, unsigned flags, int priority))                                  \
  F(StreamDestroy, "cuStreamDestroy_v2", (CUstream))                                                                                     \
  F(StreamSynchronize, "cuStreamSynchronize", (CUstream))                                                                                \
  F(StreamQuery, "cuStreamQuery", (CUstream))                                                                                            \
  F(StreamGetCtx, "cuStreamGetCtx", (CUstream, CUcontext *))                                                                             \
  F(StreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned flags))                                                           \
  F(StreamIsCapturing, "cuStreamIsCapturing", (CUstream, int *status))                                                                   \
  F(StreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2",                                                                                   \
    (CUstream, int *status, uint64_t *id, CUgraph *, const CUgraphNode **dependencies, size_t *n))                                       \
  F(StreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies", (CUstream, CUgraphNode *, size_t n, unsigned flags))           \
  F(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int mode))                                                                 \
  F(StreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))                                                                       \
  F(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                                   \
  F(StreamWriteValue32, "cuStreamWriteValue32_v2", (CUstream, CUdeviceptr, uint32_t value, unsigned flags))                              \
  F(StreamWaitValue32, "cuStreamWaitValue32_v2", (CUstream, CUdeviceptr, uint32_t value, unsigned flags))                                \
  F(StreamBatchMemOp, "cuStreamBatchMemOp_v2", (CUstream, unsigned n, CUstreamBatchMemOpParams *, unsigned flags))                       \
  F(EventCreate, "cuEventCreate", (CUevent *, unsigned flags))                                                                           \
  F(EventDestroy, "cuEventDestroy_v2", (CUevent))                                                                                        \
  F(EventRecord, "cuEventRecord", (CUevent, CUstream))                                                                                   \
  F(EventQuery, "cuEventQuery", (CUevent))                                                                                               \
  F(EventSynchronize, "cuEventSynchronize", (CUevent))                                                                                   \
  F(GraphDestroy, "cuGraphDestroy", (CUgraph))                                                                                           \
  F(GraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long flags))                                 \
  F(GraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                                                               \
  F(GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                                                               \
  F(UserObjectCreate, "cuUserObjectCreate", (CUuserObject *, void *, CUhostFn destroy, unsigned references, unsigned flags))             \
  F(UserObjectRelease, "cuUserObjectRelease", (CUuserObject, unsigned count))                                                            \
  F(GraphRetainUserObject, "cuGraphRetainUserObject", (CUgraph, CUuserObject, unsigned count, unsigned flags))

/* Entry points that an older driver may lack; the member is NULL then. */
#define GCCL_CUDA_OPTIONAL(F)                                    \
  F(FuncLoad, "cuFuncLoad", (CUfunction))                        \
  F(CtxGetId, "cuCtxGetId", (CUcontext, unsigned long long *id)) \
  F(MemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", (void *out, CUdeviceptr, size_t, int type, unsigned long long flags))

typedef struct {
#define GCCL_CUDA_MEMBER(member, symbol, parameters) CUresult(*member) parameters;
  GCCL_CUDA_FUNCTIONS(GCCL_CUDA_MEMBER)
  GCCL_CUDA_OPTIONAL(GCCL_CUDA_MEMBER)
#undef GCCL_CUDA_MEMBER
} gccl_cuda_driver;

_Static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemAccessDesc) == 12, "as in cuda.h");
_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48 && sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "as in cuda.h");

#endif
