/* The C front: everything a steady call needs, and nothing else.
 *
 * The front owns the public symbols, the handles, the groups of each thread, host streams and the order of
 * operations. It opens the Go core (libgccl_core.so, beside it) at the first call that needs it. It never waits for the
 * core on a steady call.
 */
#ifndef GCCL_FRONT_H
#define GCCL_FRONT_H

#pragma GCC visibility push(default)
#include "../../include/nccl.h"
#pragma GCC visibility pop

#include "../../device/host/exec/exec.h"
#include "../core.h"

/* A public function: pncclX is the code, ncclX a weak alias of it, so that tools may interpose ncclX. */
#define GCCL_API(ret, name, ...)                                                        \
  __attribute__((visibility("default"))) ret p##name(__VA_ARGS__);                      \
  __attribute__((visibility("default"), weak, alias("p" #name))) ret name(__VA_ARGS__); \
  ret p##name(__VA_ARGS__)
#define GCCL_OWN_API __attribute__((visibility("default")))

/* --- core.c: the core, forks, errors --- */
extern gccl_core_api gccl_core;
/* Opens the core if need be. call names the public function, for the error text. */
ncclResult_t gccl_core_open(const char *call);
/* The text of a setting; empty if it cannot be had. Preconditions: the core is open. */
void gccl_setting(const char *name, char *out, int max);
/* Whether the core has been opened, without opening it. */
int gccl_core_ready(void);
/* Set in a child that was forked after the core was opened. */
extern int gccl_forked;
/* Keeps the text as this thread's and the process's last error; returns rc. */
ncclResult_t gccl_fail(ncclResult_t rc, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *gccl_library_path(void);

/* --- thread.c: what a thread of the host program carries --- */
typedef struct {
  gccl_op *op;
  int nops, capops;
  cudaStream_t *stream; /* of op[i] */
  gccl_job *job;
  int njobs, capjobs;
} gccl_group;

typedef struct {
  int depth;
  int device_kind;
  ncclResult_t error; /* last error of a call inside the open group */
  gccl_group group;
  char last[1024];
  char seen[1024];                /* the process's last error, as handed out to this thread */
  struct gccl_param_texts *param; /* texts handed out by ncclParam* */
} gccl_thread;

gccl_thread *gccl_thread_get(void); /* NULL only when out of memory */
extern __thread gccl_thread *gccl_thread_self __attribute__((tls_model("initial-exec")));
const char *gccl_last_error(void);

/* --- handle.c: communicator handles --- */
struct ncclComm *gccl_handle_new(void);
void gccl_handle_retire(struct ncclComm *comm);
enum { GCCL_HANDLE_SLOT = (sizeof(struct ncclComm) + 4095) / 4096 * 4096, GCCL_HANDLE_SLOTS = 16384 };
extern _Atomic(char *) gccl_handle_slab;
static inline int gccl_handle_in_slab(const struct ncclComm *c) {
  uintptr_t base = (uintptr_t)atomic_load_explicit(&gccl_handle_slab, memory_order_acquire), p = (uintptr_t)c;
  return base && p - base < (uintptr_t)GCCL_HANDLE_SLOT * GCCL_HANDLE_SLOTS && (p - base) % GCCL_HANDLE_SLOT == 0;
}
/* The steady case of gccl_comm_check: true if comm can take an operation. */
static inline int gccl_handle_ready(const struct ncclComm *c) {
  return !gccl_forked && gccl_handle_in_slab(c) && c->magic == GCCL_COMM_MAGIC &&
         atomic_load_explicit(&c->state, memory_order_acquire) == GCCL_COMM_READY &&
         atomic_load_explicit(&c->error, memory_order_acquire) == 0;
}
/* True for a pointer that is a live communicator; never follows a stray pointer. */
int gccl_handle_known(const struct ncclComm *comm);
/* The live communicator in slot i, or NULL; i counts to *end. */
struct ncclComm *gccl_handle_at(int i, int *end);
/* Checks that comm can take an operation; the text names call. */
ncclResult_t gccl_comm_check(const struct ncclComm *comm, const char *call);
/* The same, but a finalized or revoked communicator passes: it may still be asked and divided. */
ncclResult_t gccl_comm_check_made(const struct ncclComm *comm, const char *call);
ncclResult_t gccl_handle_check(const struct ncclComm *comm, const char *call);

/* --- cuda.c --- */
/* Turns gcclDeviceAuto into what the settings and this machine say; a kind that cannot be had is an error. */
ncclResult_t gccl_device_choose(int32_t *kind, const char *call);
/* Makes the device's state of a fresh communicator, on its parent's device if it has a parent. device: -1 for that of the calling
 * thread; GCCL_DEVICE_IN_TURN - i for the i-th in turn, so that ranks share devices when there are more ranks. */
enum { GCCL_DEVICE_IN_TURN = -2 };
ncclResult_t gccl_device_attach(struct ncclComm *comm, const struct ncclComm *parent, int device, const char *call);
/* Whether its operations go through host memory, by a plan. */
int gccl_device_staged(const struct ncclComm *);
const char *gccl_device_unreached(const struct ncclComm *); /* why kernels do not reach all memory of this host; NULL: they do */
/* Stores n bytes, or zeros, into memory of the communicator's GPU, and waits until they are there. */
ncclResult_t gccl_device_write(struct ncclComm *, void *to, const void *from, size_t n, const char *call);
/* What device communicators refer to, as kernels of the GPU see it. */
ncclResult_t gccl_device_kernels(struct ncclComm *, struct ncclDevCommWindowTable **table, uint32_t **abort_flag, const char *call);
/* Whether the buffers of an operation can be used: a wrong one fails the call, not the communicator. */
ncclResult_t gccl_device_check(gccl_op *op, const char *call);
ncclResult_t gccl_device_launch_one(gccl_op *op, cudaStream_t stream, const char *call);
ncclResult_t gccl_device_launch_group(gccl_op *ops, cudaStream_t *streams, int n, const char *call);
extern const gccl_device_api gccl_cuda_device_api;
/* ncclMemAlloc and ncclMemFree where the memory is a GPU's: *done, or the result, says whether it was. */
ncclResult_t gccl_device_mem_alloc(void **ptr, size_t size, int *done);
int gccl_device_mem_free(void *ptr);
int32_t gccl_quiesce(struct ncclComm *comm, uint64_t timeout_ns);

/* --- config.c --- */
ncclResult_t gccl_config_read(gccl_config *out, const ncclConfig_t *in, const char *call);

/* --- trace.c --- */
extern const gccl_trace_api gccl_front_trace;

/* --- stream.c: host streams --- */
typedef struct gccl_stream gccl_stream;
typedef struct gccl_task gccl_task; /* a launch: batches and their operations in one block */
struct gccl_task {
  gccl_task *next;
  int nbatches;
  gccl_batch *batches;
  gccl_op *ops;
  struct gccl_rendezvous *before, *after; /* several streams of one group: see launch.c */
  void (*call)(void *);                   /* a function of the user instead of batches; NULL: none */
  void *arg;
  struct gccl_cuda_staging *staged; /* of a CUDA communicator on several hosts; else NULL */
};
/* NULL, the legacy and the per-thread stream mean the caller itself: *out = NULL. */
gccl_task *gccl_task_new(int nbatches, int nops); /* NULL: out of memory */
ncclResult_t gccl_stream_find(cudaStream_t stream, gccl_stream **out, const char *call);
void gccl_stream_push(gccl_stream *, gccl_task *);
gccl_stream *gccl_stream_new(void);
void gccl_stream_free(gccl_stream *);
ncclResult_t gccl_stream_drain(gccl_stream *); /* ncclInProgress: interrupted */

/* The thread that does a communicator's operations beside its callers; made when it is first needed. */
ncclResult_t gccl_worker(struct ncclComm *, gccl_stream **, const char *call);

/* --- group.c --- */
/* Adds an operation to the open group, or runs it at once. */
ncclResult_t gccl_submit(gccl_op *op, cudaStream_t stream, const char *call);
/* Adds a job, or runs it at once. The job is copied; ids and exclude are taken over (malloc). */
ncclResult_t gccl_submit_job(gccl_job *job, const char *call);
ncclResult_t gccl_group_note(ncclResult_t rc); /* remembers an error of a call inside a group */
/* Frees what a thread that ends has collected in a group that it left open. */
void gccl_group_forget(gccl_group *);

/* --- jobs.c --- */
/* Runs n jobs, which it frees; blocking or not as their communicators are. */
ncclResult_t gccl_jobs_run(gccl_job *jobs, int n, const char *call);
void gccl_job_done(gccl_job *jobs, int32_t n, void *cookie); /* a background run has ended: for the core */
void gccl_job_free(gccl_job *);                              /* what the job points to */
int gccl_job_makes_comm(const gccl_job *);
int gccl_job_blocking(const gccl_job *);

/* --- launch.c --- */
/* The text of an operation that ended with rc; returns rc. */
ncclResult_t gccl_operation_failed(const struct ncclComm *comm, int rc, const char *call);
/* A message to the rank itself outside a group. */
ncclResult_t gccl_lonely_message(const struct ncclComm *comm, const char *call);
ncclResult_t gccl_launch_one(gccl_op *op, cudaStream_t stream, const char *call);
ncclResult_t gccl_launch_group(gccl_group *g, const char *call);
void gccl_task_run(gccl_task *);                            /* runs and frees */
gccl_task *gccl_task_call(void (*call)(void *), void *arg); /* NULL: out of memory */

/* --- mem.c --- */
/* The window of a program, or NULL. */
gccl_window *gccl_window_of(const struct ncclComm *comm, ncclWindow_t win);
void gccl_registrations_drop(const struct ncclComm *comm);

/* --- devcomm.c --- */
/* Writes what a finished GCCL_JOB_DEVCOMM has made to where its caller wants it, and to where kernels want it. */
ncclResult_t gccl_devcomm_complete(void *devcomm);

/* --- check.c --- */
/* Refuses buffers of a collective that overlap otherwise than in place. Preconditions: the sizes do not overflow. */
ncclResult_t gccl_check_overlap(const gccl_op *op, const char *call);

/* --- coll.c --- */
ncclResult_t gccl_all_reduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t red, ncclComm_t comm,
                             cudaStream_t stream);
/* coll: enum gccl_coll; count as the public call of that collective has it. */
ncclResult_t gccl_collective(unsigned coll, const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t red, int root,
                             ncclComm_t comm, cudaStream_t stream, const char *call);
/* kind: GCCL_DO_SEND or GCCL_DO_RECV. */
ncclResult_t gccl_message(int kind, const void *send, void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream, const char *call);
/* data: there is something to put before the signal. */
ncclResult_t gccl_onesided(const void *local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int data,
                           int sig, int ctx, unsigned flags, ncclComm_t comm, cudaStream_t stream, const char *call);
ncclResult_t gccl_wait_signal(int n, const ncclWaitSignalDesc_t *desc, ncclComm_t comm, cudaStream_t stream);

/* --- redop.c --- */
/* Resolves op for comm and type into o. */
ncclResult_t gccl_redop_apply(struct ncclComm *comm, ncclRedOp_t op, ncclDataType_t type, gccl_op *o, const char *call);

#endif
