/* A stand-in for libcuda.so.1, for tests on machines without a GPU: the whole list of device/cuda/driver.h and what test
 * programs need beside it. Device memory is host memory, kernels are the functions of libgccl_kernels_cpu.so.
 *
 * It owns what the driver promises, what it forbids, and what makes programs hang on a real GPU: streams share a few hardware
 * queues, some calls wait for the whole device, kernels need room. It must not know the library that it serves.
 * It is a validator as well: a call with a dead handle or freed memory is an error, never undefined.
 *
 * Sources: CUDA Driver API 12.8 for semantics and codes; the table of docs/testing.md for what was measured on an H200.
 */
#ifndef GCCL_FAKE_H
#define GCCL_FAKE_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../cuda/driver.h"

/* Codes that the library does not name but the driver gives (cuda.h 12.8, cudaError_enum). */
enum {
  CUDA_ERROR_MAP_FAILED = 205,
  CUDA_ERROR_ALREADY_MAPPED = 208,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908
};

typedef struct CUmemPoolHandle_st *CUmemoryPool;

/* Entry points for test programs; driver.h has those of the library. */
#define FAKE_EXTRA(F)                                                                                                                     \
  F(CtxCreate, "cuCtxCreate_v2", (CUcontext *, unsigned flags, CUdevice))                                                                 \
  F(CtxDestroy, "cuCtxDestroy_v2", (CUcontext))                                                                                           \
  F(CtxSynchronize, "cuCtxSynchronize", (void))                                                                                           \
  F(DevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2", (CUdevice))                                                                      \
  F(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *text, int len, CUdevice))                                                            \
  F(StreamGetFlags, "cuStreamGetFlags", (CUstream, unsigned *flags))                                                                      \
  F(StreamWriteValue64, "cuStreamWriteValue64_v2", (CUstream, CUdeviceptr, uint64_t value, unsigned flags))                               \
  F(StreamWaitValue64, "cuStreamWaitValue64_v2", (CUstream, CUdeviceptr, uint64_t value, unsigned flags))                                 \
  F(EventRecordWithFlags, "cuEventRecordWithFlags", (CUevent, CUstream, unsigned flags))                                                  \
  F(EventElapsedTime, "cuEventElapsedTime", (float *ms, CUevent start, CUevent end))                                                      \
  F(EventElapsedTime2, "cuEventElapsedTime_v2", (float *ms, CUevent start, CUevent end))                                                  \
  F(MemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                                                                   \
  F(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))                                                                         \
  F(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                                               \
  F(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))                                                     \
  F(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                \
  F(MemsetD32Async, "cuMemsetD32Async", (CUdeviceptr, unsigned value, size_t n, CUstream))                                                \
  F(MemAllocAsync, "cuMemAllocAsync", (CUdeviceptr *, size_t, CUstream))                                                                  \
  F(MemFreeAsync, "cuMemFreeAsync", (CUdeviceptr, CUstream))                                                                              \
  F(MemAllocManaged, "cuMemAllocManaged", (CUdeviceptr *, size_t, unsigned flags))                                                        \
  F(LaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                                                                 \
    (CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream, void **params)) \
  F(GraphGetNodes, "cuGraphGetNodes", (CUgraph, CUgraphNode *, size_t * n))                                                               \
  F(GetProcAddress, "cuGetProcAddress_v2", (const char *symbol, void **out, int version, uint64_t flags, int *status))

/* Definitions are written as fake_<member>; the symbol is the driver's, and the compiler checks the parameters. */
#define FAKE_DECLARE(member, symbol, parameters) CUresult fake_##member parameters __asm__(symbol);
GCCL_CUDA_FUNCTIONS(FAKE_DECLARE)
GCCL_CUDA_OPTIONAL(FAKE_DECLARE)
FAKE_EXTRA(FAKE_DECLARE)

/* For kernels of tests: the kernel that runs in this thread failed, as with an illegal address. */
void gccl_fake_raise(int code);

/* For tests: counts calls by name from now on; the i-th name that was called and how often, NULL behind the last one. */
void gccl_fake_count(void);
const char *gccl_fake_calls(unsigned i, unsigned long *n);

/* --- one lock, one condition: everything below is guarded by `lock` unless it says otherwise --- */

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed; /* an operation ended, a stream emptied */

enum { FAKE_MAX_QUEUES = 32, FAKE_MAX_DEVICES = 16 };

/* A point in a stream: reached when done >= seq. */
typedef struct {
  CUstream stream;
  uint64_t seq;
} fake_point;

/* What a stream or a graph node does. */
enum fake_kind { DO_NOTHING, DO_COPY, DO_SET, DO_MEMOPS, DO_RECORD, DO_HOST, DO_KERNEL, DO_FREE, DO_LAUNCHED };
typedef struct {
  enum fake_kind kind;
  const char *call;
  union {
    struct {
      CUdeviceptr to, from;
      size_t bytes;
      int on_sms; /* device to device: needs multiprocessors */
    } copy;
    struct {
      CUdeviceptr to;
      unsigned value, width; /* bytes of an element */
      size_t n;
    } set;
    struct {
      unsigned n;
      CUstreamBatchMemOpParams *list; /* owned */
    } memops;
    struct {
      CUevent event;
      uint64_t generation;
    } record;
    struct {
      CUhostFn fn;
      void *arg;
    } host;
    struct {
      CUfunction function;
      unsigned grid, block, cooperative;
      void *param; /* owned */
    } kernel;
    CUdeviceptr free;
    CUgraphExec launched;
  };
} fake_work;

typedef struct fake_op {
  struct fake_op *next;
  CUstream stream;
  uint64_t seq;
  fake_work work;
  int npoints;
  fake_point *points; /* what must be reached before */
} fake_op;

/* A hardware queue: runs the operations of all streams that share it in the order of their issue. */
typedef struct {
  fake_op *first, **last;
  pthread_cond_t wake;
  pthread_t thread;
  int started, ending;
  CUcontext ctx;
} fake_queue;

typedef struct fake_capture {
  uint64_t id;
  int status, mode, refs;
  const void *thread;
  CUstream origin;
  CUgraph graph;
} fake_capture;

struct CUctx_st {
  uint64_t magic;
  CUcontext next;
  int device, primary, refs, dead;
  CUresult sticky;
  uint64_t id, peers;
  CUstream streams, legacy;
  int nqueues, next_queue, nstreams;
  unsigned room; /* threads that still fit on the multiprocessors */
  fake_queue queue[FAKE_MAX_QUEUES];
};

struct CUstream_st {
  uint64_t magic;
  CUstream next;
  CUcontext ctx;
  fake_queue *queue;
  unsigned flags;
  int dead, inner;    /* inner: a branch of a graph */
  const void *thread; /* owner of a per-thread stream */
  uint64_t issued, done, started;
  const char *doing; /* the operation at the front, for reports */
  fake_capture *capture;
  CUgraphNode *at; /* what the next captured operation comes after */
  size_t nat;
};

struct CUevent_st {
  uint64_t magic;
  CUcontext ctx;
  unsigned flags;
  int dead;
  fake_point point;
  uint64_t generation;
  struct timespec when;
  fake_capture *capture;
  CUgraphNode *at;
  size_t nat;
};

struct CUgraphNode_st {
  uint64_t magic;
  CUgraph graph;
  int index;
  fake_work work;
  CUgraphNode *after;
  size_t nafter;
};

typedef struct fake_hold {
  struct fake_hold *next;
  CUuserObject object;
  unsigned count;
} fake_hold;

struct CUgraph_st {
  uint64_t magic;
  int dead, captured; /* captured: belongs to a running capture */
  CUgraphNode *node;
  int n;
  fake_hold *holds;
};

struct CUgraphExec_st {
  uint64_t magic;
  int dead, refs, n, nchains;
  CUcontext ctx;
  struct {
    fake_work work;
    int chain, nafter;
    int *after;
  } * node;
  CUstream *inner; /* of the chains from 1 on */
  fake_point end;  /* of the last launch */
  fake_hold *holds;
};

struct CUuserObject_st {
  uint64_t magic;
  void *ptr;
  CUhostFn destroy;
  unsigned refs;
};

struct CUmod_st {
  uint64_t magic;
  CUcontext ctx;
  int dead;
};

typedef void (*fake_kernel)(const void *param, unsigned grid, unsigned block);
struct CUfunc_st {
  uint64_t magic;
  CUmodule module;
  char name[128];
  fake_kernel run;
  int loaded;
};

enum { MAGIC_CTX = 0xfa4ec01, MAGIC_STREAM, MAGIC_EVENT, MAGIC_NODE, MAGIC_GRAPH, MAGIC_EXEC, MAGIC_OBJECT, MAGIC_MODULE, MAGIC_FUNCTION };

/* --- device.c --- */
enum { ANY_TIME = 1, IN_CONTEXT = 2, UNSAFE = 4 };
/* The beginning of a call: scripted failures, cuInit, fork, the current context and its sticky error, and for UNSAFE calls the
 * rules of capture. Without the lock. */
CUresult fake_enter(const char *call, int needs, CUcontext *ctx);
/* The same for calls that only name a stream: *s is resolved from the handle and its context is current. */
CUresult fake_enter_stream(const char *call, CUstream handle, CUstream *s);
int fake_device_count(void);
size_t fake_device_bytes(void);
int fake_setting(const char *name, int otherwise);
const void *fake_thread(void); /* names the calling thread */
void fake_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- context.c --- */
CUcontext fake_current(void);
int fake_ctx_ok(CUcontext); /* a live context */
CUcontext fake_contexts(void);

/* --- stream.c --- */
CUstream fake_stream_of(CUcontext, CUstream handle); /* NULL when it is not a live stream */
CUstream fake_stream_new(CUcontext, unsigned flags);
void fake_stream_end(CUstream);
int fake_reached(fake_point);
/* Waits on the caller's thread; says on stderr what it waits for when that lasts. */
void fake_await(fake_point, const char *call);
void fake_await_idle(CUcontext, const char *call);
/* Issues to a stream, or adds to its capture. Takes over the work's allocations. *made, if given, is the operation's point. */
CUresult fake_submit(CUstream, fake_work, fake_point *made);
/* Issues without looking at captures. */
fake_point fake_issue(CUstream, fake_work, const fake_point *points, int npoints);
CUresult fake_submit_and_wait(CUstream, fake_work);
fake_work fake_work_copy(const fake_work *);
void fake_work_free(fake_work *);

/* --- queue.c --- */
void fake_queue_push(fake_queue *, fake_op *);
/* Runs fn on a thread of the pool. */
void fake_run(void (*fn)(void *), void *arg);
/* The calling thread may touch device memory. */
void fake_allow_device_memory(void);

/* --- memory.c --- */
enum fake_mem { MEM_NONE, MEM_DEVICE, MEM_VMM, MEM_IPC, MEM_POOL, MEM_MANAGED, MEM_HOST, MEM_REGISTERED };
typedef struct fake_range {
  struct fake_range *next;
  enum fake_mem kind;
  char *base;
  size_t bytes, mapped; /* mapped: bytes of the mapping, with the trailer */
  int fd, device, refs, own_memory;
  uint64_t id; /* buffer id */
  CUcontext ctx;
  struct fake_share *share; /* MEM_VMM */
  char ipc[64];             /* MEM_IPC: the handle that it was opened from */
} fake_range;
fake_range *fake_range_of(CUdeviceptr); /* NULL: ordinary memory, or none of ours */
int fake_range_holds(CUdeviceptr, size_t bytes, enum fake_mem *kind);
int fake_is_device(enum fake_mem);
void fake_memory_of_ctx_gone(CUcontext);
void fake_range_free(fake_range *);
int fake_memory_key(void);

/* --- capture.c --- */
/* Whether an unsafe call is forbidden to this thread now; if so, the captures that it hurts are invalidated. */
CUresult fake_capture_forbids(void);
void fake_capture_break(fake_capture *);
void fake_capture_unref(fake_capture *);
CUresult fake_capture_add(CUstream, fake_work);
void fake_capture_leave(CUstream);
CUgraph fake_graph_new(void);
void fake_graph_free(CUgraph);
CUgraphNode fake_graph_add(CUgraph, fake_work, CUgraphNode *after, size_t nafter);
/* A call that only looks at or waits for a stream, while it captures. */
CUresult fake_capture_looked_at(CUstream);

/* --- graph.c --- */
void fake_exec_unref(CUgraphExec);

#endif
