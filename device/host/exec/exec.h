/* The host executor: runs lowered plans, messages and one-sided operations on ordinary memory.
 *
 * Every operation is a state machine (gccl_op): step() runs it until it must wait for a peer and then returns, so that one
 * thread can drive the ranks of many communicators at once (gccl_drive). Nothing here knows Go, streams or groups; it
 * touches struct ncclComm and the shared areas only.
 * Not thread safe per communicator: whoever is being served by the issue order (drive.c) owns it.
 */
#ifndef GCCL_HOST_EXEC_H
#define GCCL_HOST_EXEC_H

#include "../../layout/comm.h"
#include "../../layout/names.h"
#include "../reduce/reduce.h"

/* Results of step and drive. Errors are ncclResult_t values and are latched in the communicator before they return. */
enum { GCCL_DONE = 0, GCCL_BLOCKED = -1 };
enum { GCCL_RC_SYSTEM = 2, GCCL_RC_INTERNAL = 3, GCCL_RC_ARGUMENT = 4, GCCL_RC_USAGE = 5, GCCL_RC_REMOTE = 6, GCCL_RC_TIMEOUT = 8 };

enum gccl_op_kind { GCCL_DO_COLL, GCCL_DO_SEND, GCCL_DO_RECV, GCCL_DO_COPY, GCCL_DO_PUT, GCCL_DO_WAIT_SIGNAL };

/* Operators as the executor knows them; user operators are GCCL_RED_USER. */
enum { GCCL_RED_SUM, GCCL_RED_PROD, GCCL_RED_MAX, GCCL_RED_MIN, GCCL_RED_AVG, GCCL_RED_USER };

/* Buffers that somebody fills and takes while the operation runs: the first elements of every part first. */
typedef struct gccl_flow {
  /* Returns when so many elements of every part of the send buffer are there, or the communicator is aborted. It may block: what it waits
   * for must not wait for this thread. */
  void (*await)(struct gccl_flow *, struct ncclComm *, uint64_t elements);
  void (*made)(struct gccl_flow *, struct ncclComm *, uint64_t elements); /* so many of every part of the receive buffer are final */
} gccl_flow;

typedef struct gccl_op {
  /* Arguments, filled by the caller. */
  struct ncclComm *comm;
  uint8_t kind, coll, dtype, red, cls;
  uint8_t device_scalar; /* scale is read from *scalar when the operation starts */
  uint8_t signal;        /* PUT: raise the peer's signal word behind the data */
  uint32_t window;       /* PUT to a remote rank: number of the window, whose offset is in window_offset */
  int32_t root;          /* collectives; peer of messages and one-sided operations */
  const void *send;
  void *recv;
  uint64_t count;    /* elements; WAIT_SIGNAL: signals to consume */
  gccl_scalar scale; /* GCCL_RED_USER: this rank's factor */
  const void *scalar;
  uint64_t window_offset;
  const gccl_lowered *plan;     /* collectives */
  uint64_t entered_ns;          /* when the call was entered, if this call is a sample for the statistics; else 0 */
  uint64_t call;                /* number of the call, where somebody looks (probe.h) */
  struct gccl_seen *seen;       /* what profiler plugins have of it, or NULL */
  uint8_t traced, stepped, cut; /* its run is in the trace; the op at pc is; some op is not */
  gccl_flow *flow;              /* NULL: the buffers are there */
  uint8_t hidden;               /* GPU buffers that other processes cannot open: device/cuda/lend.c */
  uint8_t spins;                /* every rank's own kernel does it, and how: device/cuda/spin.c */

  /* State. */
  uint8_t phase, send_kind, recv_kind, scaled, fold;
  uint8_t staged_any; /* some rank's buffers pass through scratch: rounds are cut into pieces */
  uint8_t published, moved, finished, stream;
  uint8_t in_place; /* buffers overlap; known where slots are put from them */
  uint32_t pc, i, round, rounds;
  int32_t at, blocked_on; /* next rank to look at in a wait; rank it waits for (-1: none in particular) */
  uint64_t seq, part, piece, div, done;
  uint32_t hash, esize, asize;
} gccl_op;

/* Whether so many elements of every part of the send buffer are there; if not the communicator is aborted, and what the buffer holds must not
 * leave this rank. */
static inline int gccl_flow_has(gccl_op *x, uint64_t elements) {
  if (__builtin_expect(!x->flow, 1)) return 1;
  x->flow->await(x->flow, x->comm, elements);
  return !atomic_load_explicit(&x->comm->abort, memory_order_seq_cst);
}

/* Starts op: to be called once, when it is the turn of op in its communicator. */
int gccl_op_begin(gccl_op *op);
/* Runs until the op is done, must wait, or fails. */
int gccl_op_step(gccl_op *op);
/* Elements of a part of the operation's buffers, which are whole parts one after another but for the end. */
uint64_t gccl_part_of(const gccl_op *op);
/* One element of a user's scalar as the accumulator's type. */
gccl_scalar gccl_scalar_load(int dtype, const void *element);

/* What one communicator does in one launch: collectives one after another, everything else side by side. */
typedef struct {
  struct ncclComm *comm;
  gccl_op *ops;
  int nops;
  uint64_t ticket; /* place in the issue order: gccl_order_take */
  /* State. */
  int begun, coll, left, rc;
} gccl_batch;

/* drive.c: the issue order and the loop that drives operations. */
uint64_t gccl_order_take(struct ncclComm *comm);
/* Runs all batches to their end in this thread; returns the last error, each batch's own in rc. */
int gccl_drive(gccl_batch *batches, int n);
/* The same for one operation whose ticket is given: the steady path. */
int gccl_drive_one(gccl_op *op, uint64_t ticket);
enum { GCCL_SMALL_BYTES = 48 }; /* small.h: payload of a record */
/* drive.c: goes on with an operation that has begun. */
int gccl_drive_begun(gccl_op *op, uint64_t ticket);
/* coll.c: says which rank calls what, and latches it. */
int gccl_call_mismatch(const gccl_op *op, int peer);
/* coll.c: begins op as if it had run up to and including its first signal. */
int gccl_coll_begin_published(gccl_op *op);

/* Waits until nothing that was issued on comm before is left, or the deadline; GCCL_DONE or GCCL_RC_TIMEOUT. */
int gccl_order_quiesce(struct ncclComm *comm, uint64_t timeout_ns);

/* True if the bytes at ptr can be read and written by every rank of comm; kind and addr as for a record. */
uint8_t gccl_reach(const struct ncclComm *comm, const void *ptr, uint64_t bytes, uint64_t *addr);

/* Latches the first cause of a communicator's failure and ends all its waits in this process. Any thread. */
void gccl_comm_latch(struct ncclComm *comm, int32_t rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* wait.c */
typedef struct {
  uint64_t since, spins;
  uint32_t naps, reports;
} gccl_idle;
void gccl_idle_reset(gccl_idle *);
/* Waits a little because nothing moved: spin, then yield, then sleep on the futex word of op's communicator until a peer signals.
 * recheck is called once the sleeper is visible to its peers and says whether something moved after all. op is what is waited
 * for, on which rank (-1: several); it is named in the log when it is late. */
void gccl_idle_wait(gccl_idle *, const gccl_op *op, int32_t on, int (*recheck)(void *), void *arg, uint64_t max_sleep_ns);
/* What a thread asks while it waits (gcclSetInterrupt). */
typedef struct {
  int (*ask)(void *);
  void *arg;
  uint64_t asked_ns;
} gccl_interrupt;
extern __thread gccl_interrupt gccl_interrupt_self __attribute__((tls_model("initial-exec")));
/* To be called after a nap: asks, at most every 20 ms. True: the wait is to end. */
int gccl_interrupted(void);
/* The same for a wait on comm, which is latched then. */
void gccl_interrupt_check(struct ncclComm *comm);
void gccl_wake_slow(struct ncclComm *comm);
void gccl_wake_self(struct ncclComm *comm); /* wakes this rank's own sleeper; any thread */
/* late.c: an operation has waited for `waited` ns, for the turn-th time. */
void gccl_late_report(const gccl_op *op, int turn, int32_t on, uint64_t waited);
void gccl_wait_init(void); /* once per process: registers for expedited membarrier */
uint64_t gccl_now_ns(void);

/* To be called after a release store that a peer may sleep on. The sleeper's membarrier orders that store before this load. */
static inline void gccl_wake(struct ncclComm *comm) {
  atomic_signal_fence(memory_order_seq_cst);
  if (__builtin_expect(atomic_load_explicit(comm->sleepers, memory_order_relaxed) != 0, 0)) gccl_wake_slow(comm);
}

/* Statistics: the first store that a peer can see has happened. */
static inline void gccl_sample(const gccl_op *op) {
  if (__builtin_expect(op->entered_ns == 0, 1)) return;
  gccl_counters *n = &op->comm->count;
  atomic_fetch_add_explicit(&n->front_ns, gccl_now_ns() - op->entered_ns, memory_order_relaxed);
  atomic_fetch_add_explicit(&n->samples, 1, memory_order_relaxed);
}

static inline uint64_t gccl_load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void gccl_store(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline gccl_area *gccl_area_of(const struct ncclComm *c, int q) { return (gccl_area *)c->peers[q].area; }
static inline gccl_record *gccl_record_of(const struct ncclComm *c, int q, uint64_t seq) {
  return (gccl_record *)(c->peers[q].area + c->geo.records) + (seq & (GCCL_RECORDS - 1));
}
static inline gccl_call *gccl_call_of(const struct ncclComm *c, int q, uint64_t seq) {
  return (gccl_call *)(c->peers[q].area + c->geo.calls) + (seq & (GCCL_RECORDS - 1));
}
/* What all ranks must agree on: mixed so that one differing field changes the hash. */
static inline uint32_t gccl_call_hash(const gccl_op *x) {
  uint64_t h =
      (uint64_t)x->coll | (uint64_t)x->dtype << 8 | (uint64_t)x->red << 16 | (uint64_t)x->cls << 24 | (uint64_t)(uint32_t)x->root << 32;
  h ^= x->count * 0x9e3779b97f4a7c15ull;
  h *= 0xff51afd7ed558ccdull;
  return (uint32_t)(h >> 32) | 1u;
}

/* Fills this rank's record of op->seq but for its payload and seq, and what the call is. */
static inline void gccl_record_fill(gccl_record *r, const gccl_op *x) {
  gccl_call *d = gccl_call_of(x->comm, x->comm->rank, x->seq);
  d->count = x->count;
  d->coll = x->coll;
  d->dtype = x->dtype;
  d->op = x->red;
  d->cls = x->cls;
  d->root = x->root;
  d->scale = x->scale.u64;
  r->hash = x->hash;
  r->send_kind = x->send_kind;
  r->recv_kind = x->recv_kind;
  r->scaled = x->scaled;
}

static inline void gccl_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Executors of the kinds, used by gccl_op_begin and gccl_op_step. */
int gccl_coll_begin(gccl_op *op);
int gccl_coll_step(gccl_op *op);
int gccl_message_step(gccl_op *op);
int gccl_onesided_step(gccl_op *op);

#endif
