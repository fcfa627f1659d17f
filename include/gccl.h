/* gccl.h: the public C interface of GCCL.
 *
 * The host API has the names, values and layouts of NCCL 2.30.7, so a program written for that library
 * compiles and links unchanged; the names that begin with gccl are this library's own. Types, constants and
 * functions are C99 and C++11.
 *
 * Rules that hold for every function unless its comment says otherwise:
 *
 * - Results. ncclSuccess is 0. An error leaves the caller's outputs unwritten, and ncclGetLastError explains
 *   it in words. A call on a nonblocking communicator may give ncclInProgress: poll ncclCommGetAsyncError.
 * - Communicators. A NULL or destroyed communicator gives ncclInvalidArgument, one with a latched failure
 *   gives that failure, a revoked one gives ncclInvalidUsage.
 * - Streams. Communication calls enqueue work and return; the work runs in stream order. A NULL stream in
 *   host mode means that the work is done in the calling thread before the call (or the outermost
 *   ncclGroupEnd) returns.
 * - Buffers belong to the caller, who leaves them alone until the stream has passed the operation. Counts
 *   are elements of datatype, never bytes; offsets and sizes are bytes. A count of 0 succeeds and moves
 *   nothing, except that an empty send or receive still takes part in matching.
 * - Ranks of one communicator issue the same collectives in the same order with matching arguments. "In
 *   place" is told from addresses alone; buffers that overlap in another way give undefined contents.
 * - Each ncclX has a twin pncclX with the same meaning. ncclX is weak, so that a tool may take its place and
 *   call on to pncclX. */
#ifndef GCCL_H
#define GCCL_H

#ifdef __CUDACC_RTC__
#include "gccl_device/impl/rtc.h"
#else
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* CUDA's own headers are used where the compiler finds them. Without them only the stream handle is needed,
 * and it is declared as CUDA declares it, so that both kinds of object file link together. Kernels for the CPU
 * (GCCL_DEVICE_CPU) bring CUDA's names themselves. */
#if defined(__has_include) && !defined(GCCL_DEVICE_CPU)
#if __has_include(<cuda_runtime.h>) && __has_include(<cuda_fp16.h>)
#define GCCL_HAVE_CUDA_HEADERS 1
#endif
#endif
#ifdef GCCL_HAVE_CUDA_HEADERS
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if defined(CUDART_VERSION) && CUDART_VERSION >= 11000
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && defined(CUDART_VERSION) && CUDART_VERSION >= 11080
#include <cuda_fp8.h>
#endif
#else
typedef struct CUstream_st* cudaStream_t;
#endif

/* Version of the NCCL interface that this header describes. nccl.h holds the same lines for scripts that read
 * them there; the check below keeps the two from parting. */
#ifndef NCCL_MAJOR
#define NCCL_MAJOR 2
#define NCCL_MINOR 30
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE 23007
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X) * 1000 + (Y) * 100 + (Z) : (X) * 10000 + (Y) * 100 + (Z))
#endif
#if NCCL_MAJOR != 2 || NCCL_MINOR != 30 || NCCL_PATCH != 7 || NCCL_VERSION_CODE != 23007
#error "gccl.h describes NCCL 2.30.7, but the nccl.h included before it has another version; include the nccl.h installed beside gccl.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants -------------------------------------------------------------------------------------------- */

/* No communicator. */
#define NCCL_COMM_NULL NULL
/* Bytes of a unique id. */
#define NCCL_UNIQUE_ID_BYTES 128
/* Marks a structure that its initializer has filled. */
#define NCCL_API_MAGIC 0xcafebeef
/* A configuration field that the caller leaves to the library. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
/* A time that is not known. */
#define NCCL_UNDEF_FLOAT -1.0f
/* ncclCommSplit: this rank joins no child. */
#define NCCL_SPLIT_NOCOLOR -1

/* Flags of ncclCommWindowRegister: none; the same window and offset on every rank in each collective; writes
 * become visible in the order in which they were issued. */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
/* Bytes to which a window's offset inside its allocation is aligned. */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

/* ncclConfig_t.CTAPolicy, a bit mask: default; few workers; none, where copy engines can do the operation. */
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* Flags of ncclCommShrink: the parent is idle; running operations of the parent are aborted first. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
/* Flags of ncclCommRevoke. */
#define NCCL_REVOKE_DEFAULT 0x00
/* Flags of ncclCommSuspend: release the communicator's memory. */
#define NCCL_SUSPEND_MEM 0x01

/* ---- Types ------------------------------------------------------------------------------------------------ */

/* A communicator: one rank's view of a group of ranks. Made by the creation functions, released by
 * ncclCommDestroy or ncclCommAbort. */
typedef struct ncclComm* ncclComm_t;

/* Memory that all ranks of a communicator registered together. Made by ncclCommWindowRegister. */
typedef struct ncclWindow_vidmem* ncclWindow_t;

/* A setting looked up once by ncclParamBind. Never freed. */
typedef struct ncclParamHandle* ncclParamHandle_t;

/* Names a communicator that is to be made: opaque bytes that may be copied and sent by any means. */
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1, /* a call into CUDA failed */
  ncclSystemError = 2,        /* the operating system, a library or the network failed */
  ncclInternalError = 3,      /* a defect of this library, or memory that was overwritten */
  ncclInvalidArgument = 4,    /* one argument is wrong by itself */
  ncclInvalidUsage = 5,       /* the call is wrong at this moment or in this combination */
  ncclRemoteError = 6,        /* another rank failed or cannot be reached */
  ncclInProgress = 7,         /* not finished yet: poll */
  ncclTimeout = 8,            /* a deadline passed */
  ncclNumResults = 9
} ncclResult_t;

/* What ncclCommMemStats reports. Values are bytes, except for the suspended state, which is 0 or 1. */
typedef enum {
  ncclStatGpuMemSuspend = 0,   /* can be released by suspending */
  ncclStatGpuMemSuspended = 1, /* 1 while suspended */
  ncclStatGpuMemPersist = 2,   /* stays when suspended */
  ncclStatGpuMemTotal = 3      /* both kinds together */
} ncclCommMemStat_t;

/* Reduction operators. Values from ncclNumOps up to ncclMaxRedOp are handles made by ncclRedOpCreatePreMulSum. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4, /* integers: wrapping sum, then division by the number of ranks towards zero */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/* Where the scalar of ncclRedOpCreatePreMulSum lives, and with that when it is read. */
typedef enum {
  ncclScalarDevice = 0,       /* read while a collective runs; stays valid until then */
  ncclScalarHostImmediate = 1 /* read before the creating call returns */
} ncclScalarResidence_t;

/* Options of a new communicator. Start from NCCL_CONFIG_INITIALIZER and set fields; a field left undefined
 * takes the value after the slash. The environment variable of the same purpose wins over a field. A
 * structure of an older header (smaller size, lower version) is accepted; magic must be NCCL_API_MAGIC. A
 * value that is not allowed gives ncclInvalidArgument. */
typedef struct ncclConfig_v23000 {
  size_t size;          /* bytes of this structure as the caller knows it */
  unsigned int magic;   /* NCCL_API_MAGIC */
  unsigned int version; /* NCCL_VERSION of the caller's header */
  int blocking;            /* 0 or 1 / 1: calls may block */
  int cgaClusterSize;      /* 0 or more / 4: thread-block cluster size of kernels */
  int minCTAs;             /* 1 or more / 1: least number of channels */
  int maxCTAs;             /* minCTAs or more / 64: greatest number of channels */
  const char* netName;     /* any / NULL: network module by name, case ignored; the text is copied */
  int splitShare;          /* 0 or 1 / 0: children of ncclCommSplit share this communicator's resources */
  int trafficClass;        /* any / undefined: service class that the network is asked for */
  const char* commName;    /* any / NULL: label for logs; the caller keeps the text alive with the communicator */
  int collnetEnable;       /* 0 or 1 / 0: reduction inside the network */
  int CTAPolicy;           /* NCCL_CTA_POLICY_ bits / NCCL_CTA_POLICY_DEFAULT */
  int shrinkShare;         /* 0 or 1 / 0: children of ncclCommShrink share this communicator's resources */
  int nvlsCTAs;            /* 1 or more / automatic: channels for NVLink SHARP */
  int nChannelsPerNetPeer; /* 1 to 64 / automatic: channels for each remote peer */
  int nvlinkCentricSched;  /* 0 or 1 / 0: schedule for NVLink use first */
  int graphUsageMode;      /* 0, 1, 2 / 2: no CUDA graph, one graph, graphs mixed with live launches */
  int numRmaCtx;           /* 0 or more / 1: contexts for one-sided operations; 0 turns these off */
  int maxP2pPeers;         /* 1 or more / automatic: peers served at one time */
  int graphStreamOrdering; /* 0 or 1 / 1: keep order between graphs and live launches */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                             \
  {                                                                                         \
    sizeof(ncclConfig_t), /* size */                                                        \
        NCCL_API_MAGIC,   /* magic */                                                       \
        NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), /* version */                     \
        NCCL_CONFIG_UNDEF_INT, /* blocking */                                               \
        NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */                                         \
        NCCL_CONFIG_UNDEF_INT, /* minCTAs */                                                \
        NCCL_CONFIG_UNDEF_INT, /* maxCTAs */                                                \
        NCCL_CONFIG_UNDEF_PTR, /* netName */                                                \
        NCCL_CONFIG_UNDEF_INT, /* splitShare */                                             \
        NCCL_CONFIG_UNDEF_INT, /* trafficClass */                                           \
        NCCL_CONFIG_UNDEF_PTR, /* commName */                                               \
        NCCL_CONFIG_UNDEF_INT, /* collnetEnable */                                          \
        NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */                                              \
        NCCL_CONFIG_UNDEF_INT, /* shrinkShare */                                            \
        NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */                                               \
        NCCL_CONFIG_UNDEF_INT, /* nChannelsPerNetPeer */                                    \
        NCCL_CONFIG_UNDEF_INT, /* nvlinkCentricSched */                                     \
        NCCL_CONFIG_UNDEF_INT, /* graphUsageMode */                                         \
        NCCL_CONFIG_UNDEF_INT, /* numRmaCtx */                                              \
        NCCL_CONFIG_UNDEF_INT, /* maxP2pPeers */                                            \
        NCCL_CONFIG_UNDEF_INT  /* graphStreamOrdering */                                    \
  }

/* Result of ncclGroupSimulateEnd. Start from NCCL_SIM_INFO_INITIALIZER; magic is a number of its own. */
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds, NCCL_UNDEF_FLOAT when nothing was estimated */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                           \
  {                                                                                         \
    sizeof(ncclSimInfo_t), /* size */                                                       \
        0x74685283,        /* magic */                                                      \
        NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), /* version */                     \
        NCCL_UNDEF_FLOAT                                  /* estimatedTime */               \
  }

/* One entry of ncclWaitSignal's list: wait for opCnt signals from one peer. */
typedef struct {
  int opCnt;  /* 1 or more */
  int peer;   /* rank that signals */
  int sigIdx; /* 0 */
  int ctx;    /* 0 */
} ncclWaitSignalDesc_t;

/* ---- Library, errors --------------------------------------------------------------------------------------- */

/* Writes the version code of the loaded library, 23007 for 2.30.7. Needs no device and starts no thread.
 * NULL gives ncclInvalidArgument. */
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/* Text of a result code: a constant string, never NULL, also for values that are no code. */
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/* Explains an error in words. With a communicator: the first cause of its failure. With NULL: the calling
 * thread's last error, or the process's if this thread had none. The string is empty when there was no
 * error; it stays valid until the same thread asks again or the communicator is destroyed. Never NULL. */
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/* Makes the next log line read NCCL_DEBUG and its companions again. Deprecated: set the variables before the
 * first call instead. */
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

/* ---- Making communicators ---------------------------------------------------------------------------------- */

/* Makes an id for one new communicator. Call it on one rank and hand the bytes to all others. The calling
 * process serves the id, so it lives until every rank is initialized. With NCCL_COMM_ID=address:port in the
 * environment the id names that address and rank 0 serves it. NULL gives ncclInvalidArgument; no usable
 * interface gives ncclInvalidUsage; a malformed NCCL_COMM_ID gives ncclInvalidArgument. */
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/* Joins a new communicator of nranks ranks as number rank (0 to nranks-1) with default options. Every rank
 * calls it with the same id, a rank per process or thread, or several ranks of one thread inside a group.
 * Blocks until all have come; a rank that does not come is named in the error. *comm is set once the call is
 * accepted; if the joining fails afterwards, the caller releases it with ncclCommAbort. *comm NULL, nranks
 * or rank out of range: ncclInvalidArgument. Ranks of different version: ncclInvalidUsage. */
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/* As ncclCommInitRank with options; config NULL means the defaults. With config->blocking 0 the call returns
 * ncclInProgress at once. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
        ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
        ncclConfig_t* config);

/* As ncclCommInitRankConfig with nId ids (1 to nranks), made on nId ranks and given in the same order to
 * all; the work of meeting is spread over them. nId out of range: ncclInvalidArgument. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
        ncclUniqueId* commIds, ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
        ncclUniqueId* commIds, ncclConfig_t* config);

/* Makes one communicator with ndev ranks in this process and writes its ndev handles to the array comm; rank
 * i uses device devlist[i], or device i when devlist is NULL. A device that does not exist:
 * ncclInvalidArgument. The array belongs to the caller, each handle is released by itself. */
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);

/* Divides a communicator. Every rank calls; ranks of equal color form a child, ordered by key and then by
 * parent rank. NCCL_SPLIT_NOCOLOR joins none and gets NULL. config NULL takes over the parent's options.
 * *newcomm is NULL until the child is complete. The parent stays usable and is released by itself. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);

/* Makes a child without the excludeRanksCount ranks of excludeRanksList (parent ranks); only the remaining
 * ranks call, and they keep their order. The list is sorted in place. shrinkFlags: NCCL_SHRINK_DEFAULT, or
 * NCCL_SHRINK_ABORT to abort the parent's running operations first, which is the way to go on after a
 * failure. List NULL, count 0 or less, the caller in the list, or an unknown flag: ncclInvalidArgument. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
        ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
        ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

/* Makes a larger communicator of nRanks ranks. Ranks of comm call with rank -1 and keep their numbers; new
 * ranks call with comm NULL, their new number and the id from ncclCommGetUniqueId, which only parent ranks
 * may leave NULL. The parent stays alive and is released by its owner. nRanks not larger than the parent, or
 * a rank out of range: ncclInvalidArgument. */
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
        ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
        ncclComm_t* newcomm, ncclConfig_t* config);

/* Makes an id with which new ranks can join a communicator that is to grow. Each id serves one ncclCommGrow.
 * Not allowed with NCCL_COMM_ID set: ncclInvalidUsage. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId);

/* ---- Ending communicators ---------------------------------------------------------------------------------- */

/* Finishes outstanding work and tells the other ranks that no more will come; afterwards only
 * ncclCommDestroy and ncclCommAbort are allowed. Every rank calls. NULL succeeds. Twice, or after a revoke:
 * ncclInvalidArgument. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/* Finalizes if that was not done, and releases the handle. Communicators may be destroyed in any order. NULL
 * succeeds. A communicator that is still initializing: ncclInvalidArgument; one with a failure: that
 * failure, and nothing is released: use ncclCommAbort. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/* Ends running operations of this rank without waiting for others, and releases the handle. Allowed in every
 * state and from another thread than the one that is stuck. Returns in bounded time. NULL succeeds. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/* Ends running operations but keeps the handle: queries, ncclCommShrink, ncclCommSplit, ncclCommDestroy and
 * ncclCommAbort stay allowed, communication gives ncclInvalidUsage. revokeFlags other than
 * NCCL_REVOKE_DEFAULT, or a communicator finalized or revoked before: ncclInvalidArgument. NULL succeeds. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* Collective. Releases the communicator's memory, keeping its addresses; flags is NCCL_SUSPEND_MEM, 0 does
 * nothing. The communicator is not used until ncclCommResume. Suspended already, or resources shared with a
 * family: ncclInvalidUsage. */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);

/* Collective. Brings back what ncclCommSuspend released; contents are not kept. Not suspended:
 * ncclInvalidUsage. */
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommResume(ncclComm_t comm);

/* ---- Asking a communicator --------------------------------------------------------------------------------- */

/* Writes the state of the communicator: ncclSuccess, ncclInProgress while a nonblocking call runs, or its
 * first failure. Allowed at any time from any thread; the query itself succeeds whatever the state is. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/* Writes the number of ranks. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/* Writes the number of the CUDA device of this rank. A host-mode communicator has the number that its
 * creator gave or 0. */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/* Writes this rank's number, 0 to count-1. */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/* Writes one figure of the memory that the communicator holds, see ncclCommMemStat_t. value NULL or unknown
 * stat: ncclInvalidArgument. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);

/* ---- Memory, registration, windows ------------------------------------------------------------------------- */

/* Allocates at least size bytes of memory that can become a window and that peers can reach directly. Not
 * zeroed. The caller owns it and frees it with ncclMemFree. ptr NULL: an error, not a crash. */
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/* Frees memory of ncclMemAlloc. NULL succeeds; another pointer gives ncclInvalidArgument. Windows over it
 * are deregistered first. */
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/* Tells a communicator about a buffer that will be used often. A hint: it changes speed, never results, and
 * buffers that are not registered always work. Local to the rank. *handle may become NULL on success. The
 * memory outlives the registration. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);

/* Ends a registration. A NULL handle succeeds; an unknown one gives ncclInvalidUsage. What is left is
 * dropped with the communicator. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/* Collective: every rank calls in the same order, sizes in bytes may differ. Makes size bytes at buff,
 * memory of ncclMemAlloc, reachable for all ranks, and writes the window. winFlags are NCCL_WIN_ bits.
 * Inside a group *win is valid after the outermost ncclGroupEnd. A window that cannot be made may come back
 * as NULL with success when the default flags asked for it: test the handle. buff or win NULL, size 0, or an
 * offset inside the allocation that is no multiple of NCCL_WIN_REQUIRED_ALIGNMENT: ncclInvalidArgument. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
        int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
        int winFlags);

/* Ends a window on this rank. The caller makes sure that no rank uses it any more. NULL succeeds. Windows
 * that are left are released with the communicator. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* Writes the address at which this rank registered the window. An unknown window or a NULL output:
 * ncclInvalidArgument. */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr);

/* ---- Reduction operators ----------------------------------------------------------------------------------- */

/* Makes an operator that multiplies each rank's input by *scalar, which has type datatype, and sums the
 * products. It belongs to this communicator and this type; use with another gives ncclInvalidArgument.
 * residence says when the scalar is read. Every rank makes its own, and the scalars may differ. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
        ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
        ncclScalarResidence_t residence, ncclComm_t comm);

/* Releases an operator. Legal as soon as the collectives that use it were called, even inside their group. A
 * built-in or unknown operator: ncclInvalidArgument. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------- */

/* Combines count elements of all ranks element by element and leaves the result in recvbuff of root. Other
 * ranks may pass recvbuff NULL. In place: sendbuff == recvbuff on root. root outside the communicator:
 * ncclInvalidArgument. */
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);

/* Copies count elements of buff on root to buff on all ranks; always in place. */
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
        cudaStream_t stream);

/* Copies count elements of sendbuff on root to recvbuff on all ranks, root included. sendbuff is ignored
 * elsewhere. In place: sendbuff == recvbuff. */
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        int root, ncclComm_t comm, cudaStream_t stream);

/* Combines count elements of all ranks and leaves the result in recvbuff everywhere, bit for bit the same on
 * all ranks. In place: sendbuff == recvbuff. */
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* Combines nranks*recvcount elements of all ranks and leaves block r, recvcount elements long, on rank r. In
 * place: recvbuff == sendbuff + rank*recvcount. */
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
        ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
        ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* Collects sendcount elements of each rank into recvbuff of nranks*sendcount elements, ordered by rank,
 * everywhere. In place: sendbuff == recvbuff + rank*sendcount. */
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
        ncclComm_t comm, cudaStream_t stream);

/* Sends block r of sendbuff to rank r and receives block s of recvbuff from rank s; blocks have count
 * elements and both buffers nranks*count. There is no in-place form. */
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        ncclComm_t comm, cudaStream_t stream);

/* Collects count elements of each rank into recvbuff of root, nranks*count elements ordered by rank. Other
 * ranks may pass recvbuff NULL. In place on root: sendbuff == recvbuff + root*count. */
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        int root, ncclComm_t comm, cudaStream_t stream);

/* Sends block r of root's sendbuff, count elements of nranks*count, to recvbuff of rank r. Other ranks may
 * pass sendbuff NULL. In place on root: recvbuff == sendbuff + root*count. */
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
        int root, ncclComm_t comm, cudaStream_t stream);

/* ---- Point to point ---------------------------------------------------------------------------------------- */

/* Sends count elements to peer, which calls ncclRecv with the same count and type. Between two ranks the
 * first posted send meets the first posted receive; there are no tags, and an empty message keeps its place.
 * Outside a group the stream waits until the message was taken; calls that must run together, and messages
 * to oneself, stand in one group. A send to oneself without its receive: ncclInvalidUsage. peer outside the
 * communicator: ncclInvalidArgument. */
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
        cudaStream_t stream);

/* Receives count elements from peer; see ncclSend. */
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
        cudaStream_t stream);

/* ---- One-sided --------------------------------------------------------------------------------------------- */

/* Writes count elements from localbuff into peer's part of the window peerWin, peerWinOffset bytes from its
 * start, then signals peer. localbuff lies in a window of this communicator registered with
 * NCCL_WIN_COLL_SYMMETRIC. To one peer everything arrives in program order, and a signal that is seen means
 * that its data is there. sigIdx, ctx and flags are 0. Otherwise, or without one-sided support:
 * ncclInvalidArgument. */
ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
        ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
        ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream);

/* Signals peer after all earlier puts and signals to it. sigIdx, ctx and flags are 0. */
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream);

/* The stream waits until, for each of the nDesc entries, opCnt signals of that peer have come, and takes
 * them off the count. The list is read before the call returns. An empty or NULL list, opCnt below 1, or
 * sigIdx or ctx not 0: ncclInvalidArgument. */
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
        cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
        cudaStream_t stream);

/* ---- Groups ------------------------------------------------------------------------------------------------ */

/* Opens a group on the calling thread; groups nest. Communication, window registration and the making and
 * ending of communicators are collected until the outermost ncclGroupEnd. */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);

/* Closes a group; the outermost one starts everything that was collected, as if at once. If a call inside
 * failed, nothing is started and the last such error is returned. With nonblocking communicators the result
 * may be ncclInProgress. Without a start: ncclInvalidUsage. */
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/* Closes a group like ncclGroupEnd, but starts nothing: writes the estimated time of the collected work to
 * simInfo and drops it. simInfo NULL behaves as ncclGroupEnd. A wrong magic: ncclInvalidArgument. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

/* ---- Settings ---------------------------------------------------------------------------------------------- */

/* Looks up a setting by name, such as "NCCL_DEBUG". The handle is valid for ever. Unknown name or NULL:
 * ncclInvalidArgument. */
ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key);
ncclResult_t pncclParamBind(ncclParamHandle_t* out, const char* key);

/* Write the value of a setting whose type is exactly this integer type. Another type or NULL:
 * ncclInvalidArgument. */
ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t* out);
ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t* out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t* out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t* out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t* out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t* out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t* out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t* out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t* out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t* out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t* out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t* out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t* out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t* out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t* out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t* out);

/* Writes the value of a text setting. The text belongs to the library and is valid until this thread calls
 * the function again. A setting of another type: ncclInvalidArgument. */
ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char** out);

/* Copies the raw value of a setting, of any type, into maxLen bytes at out and writes its length. Too little
 * room: ncclInvalidArgument and length 0. len is not NULL. */
ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len);
ncclResult_t pncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len);

/* Writes the value of the setting named key as text, with its length; valid until this thread calls the
 * function again. */
ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen);
ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* valueLen);

/* Writes a table of the names of all settings and its length; valid until this thread calls the function
 * again. The order means nothing. */
ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen);
ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* tableLen);

/* Prints all settings with their values to standard output. */
void ncclParamDumpAll(void);
void pncclParamDumpAll(void);

/* ---- GCCL's own -------------------------------------------------------------------------------------------- */

/* Where a communicator's buffers live and who does the work. Fixed when the communicator is made. */
typedef enum {
  gcclDeviceAuto = 0, /* CUDA where a device can be used, otherwise host */
  gcclDeviceHost = 1, /* ordinary memory, CPU */
  gcclDeviceCuda = 2  /* CUDA device memory, GPU */
} gcclDeviceKind_t;

/* Sets the device kind of the communicators that this thread makes afterwards; threads start with
 * gcclDeviceAuto. An unknown kind: ncclInvalidArgument; a kind that this machine or this build does not offer:
 * ncclInvalidUsage. */
ncclResult_t gcclSetDeviceKind(gcclDeviceKind_t kind);

/* A function that blocking calls of one thread ask while they wait: 0 lets the wait go on. */
typedef int (*gcclInterrupt_t)(void* arg);

/* Sets the function that the calling thread's blocking calls ask about every 50 ms (10 to 100 ms) once they sleep, with arg;
 * NULL takes it away. It is called on this thread, inside the call that waits: it may look at flags and signals, and must
 * not call this library. When it returns anything but 0, the communicator that is waited for fails with ncclSystemError,
 * the call returns that, and its peers are told; gcclStreamSynchronize returns ncclInProgress instead, and its work goes
 * on. So a program ends a wait from a signal handler, and an interpreter runs its own handlers during one. */
ncclResult_t gcclSetInterrupt(gcclInterrupt_t ask, void* arg);

/* Makes a host stream: one worker thread that runs what is enqueued, first in, first out. It may be passed
 * wherever host-mode calls take a stream; it is no CUDA stream. The caller owns it. stream NULL:
 * ncclInvalidArgument. */
ncclResult_t gcclStreamCreate(cudaStream_t* stream);

/* Waits until everything that was enqueued before is done; ncclInProgress when gcclSetInterrupt's function ended the
 * wait. NULL succeeds: work without a stream is done when its call returns. A handle that is no live host stream: ncclInvalidArgument, here and below. Failures of the work
 * itself are reported by its communicator. */
ncclResult_t gcclStreamSynchronize(cudaStream_t stream);

/* ncclSuccess when nothing is left to do, ncclInProgress otherwise. Does not block. */
ncclResult_t gcclStreamQuery(cudaStream_t stream);

/* Finishes the enqueued work, ends the worker and releases the stream. NULL succeeds. */
ncclResult_t gcclStreamDestroy(cudaStream_t stream);

/* Runs fn(arg) once, when the host stream has done what was enqueued before; on a NULL stream in the calling thread,
 * before the call returns. fn must not wait for work of the same stream. fn NULL: ncclInvalidArgument. */
ncclResult_t gcclStreamLaunchHostFunc(cudaStream_t stream, void (*fn)(void* arg), void* arg);

/* Counters of one communicator since it was made. Start from GCCL_COMM_STATS_INITIALIZER. The structure may grow
 * at its end; the library fills as much as size says. */
typedef struct gcclCommStats {
  size_t size;          /* bytes of this structure as the caller knows it */
  unsigned int magic;   /* NCCL_API_MAGIC */
  unsigned int version; /* NCCL_VERSION of the caller's header */
  uint64_t calls;            /* communication calls */
  uint64_t tableHits;        /* calls answered by the launch table, without planning */
  uint64_t tableMisses;      /* calls that had to be planned */
  uint64_t bytes;            /* payload bytes of these calls on this rank */
  uint64_t sharedBytes;      /* memory held and shared with other ranks */
  uint64_t privateBytes;     /* memory held by this rank alone */
  uint64_t frontNanoseconds; /* mean over sampled calls (one in 1024) from entering the call to its first store that a
                              peer can see; 0 before the first sample */
} gcclCommStats_t;

#define GCCL_COMM_STATS_INITIALIZER                                                                    \
  {                                                                                                    \
    sizeof(gcclCommStats_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), 0, 0, 0, \
        0, 0, 0, 0                                                                                     \
  }

/* Copies the counters of comm to *stats. stats NULL, wrong magic, or a size that does not hold the header:
 * ncclInvalidArgument. */
ncclResult_t gcclCommGetStats(ncclComm_t comm, gcclCommStats_t* stats);

/* on != 0: calls of this rank on GPU memory wait in the calling thread for the ranks of other processes and for what these have in
 * their streams, where otherwise this rank's stream would wait. Streams share a few hardware queues (CUDA_DEVICE_MAX_CONNECTIONS, 8 by
 * default), and one that waits on the GPU holds up all others of its queue: a program that sends on one stream and reduces on another
 * hangs where the two share a queue and the other rank receives only after it has reduced. For communicators whose calls come
 * from a thread of their own; all ranks set it alike. Holds for the calls that follow, not in captures. 0, the default: calls return
 * when they are enqueued. Host communicators always wait in the calling thread. */
ncclResult_t gcclCommMeetOnHost(ncclComm_t comm, int on);

/* Path of the loaded library file: a constant string, empty when the loader does not tell it. Never NULL. */
const char* gcclLibraryPath(void);

#ifdef __cplusplus
}
#endif

#endif /* GCCL_H */
