/* Collectives, messages and one-sided operations: check the arguments, find the plan, submit. */
#include <string.h>

#include "../../device/host/exec/probe.h"
#include "../../device/host/exec/small.h"
#include "front.h"

static ncclResult_t check_type(const struct ncclComm *c, ncclDataType_t type, const char *call) {
  if ((unsigned)type < ncclNumTypes) return ncclSuccess;
  return gccl_fail(ncclInvalidArgument, "%s: rank %d: data type %d is unknown", call, c->rank, (int)type);
}

static ncclResult_t check_rank(const struct ncclComm *c, int rank, const char *what, const char *call) {
  if (rank >= 0 && rank < c->nranks) return ncclSuccess;
  return gccl_fail(ncclInvalidArgument, "%s: rank %d: %s %d is outside 0..%d", call, c->rank, what, rank, c->nranks - 1);
}

/* Overflow is found before any byte is touched. times: how many counts the largest buffer holds. */
static ncclResult_t check_size(const struct ncclComm *c, size_t count, int type, int times, const char *call) {
  size_t bytes;
  if (__builtin_mul_overflow(count, gccl_dtype_size(type), &bytes) || __builtin_mul_overflow(bytes, (size_t)times, &bytes) ||
      bytes > SIZE_MAX / 4)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: count %zu × %zu bytes × %d overflows", call, c->rank, count, gccl_dtype_size(type),
                     times);
  return ncclSuccess;
}

static ncclResult_t check_buffer(const struct ncclComm *c, const void *p, const char *what, const char *call) {
  if (p) return ncclSuccess;
  return gccl_fail(ncclInvalidArgument, "%s: rank %d: %s is NULL", call, c->rank, what);
}

/* Statistics of a call. One call in 1024 is a sample of how long the front takes; it is told so before it starts. */
static inline uint64_t sample_start(const struct ncclComm *c) {
  uint64_t n = atomic_load_explicit(&c->count.calls, memory_order_relaxed);
  return __builtin_expect((n & 1023) == 1000, 0) ? gccl_now_ns() : 0;
}

static inline void bump(_Atomic(uint64_t) *word, uint64_t by) { /* lost counts of two threads at once do not matter */
  atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + by, memory_order_relaxed);
}

static inline void counted(struct ncclComm *c, uint64_t bytes) {
  bump(&c->count.calls, 1);
  bump(&c->count.bytes, bytes);
}

static ncclResult_t find_plan(gccl_op *op, const char *call) {
  struct ncclComm *c = op->comm;
  uint64_t bytes = op->count * gccl_dtype_size(op->dtype);
  unsigned cls = 0;
  while (bytes > c->limit[op->coll][cls] && cls < GCCL_CLASSES - 1) cls++;
  op->cls = (uint8_t)cls;
  uint64_t key = gccl_table_key(op->coll, cls, (unsigned)op->root);
  op->plan = gccl_table_find(c, key);
  if (__builtin_expect(op->plan != NULL, 1)) {
    bump(&c->count.hits, 1);
    return ncclSuccess;
  }
  char text[GCCL_TEXT] = "";
  atomic_fetch_add(&c->count.misses, 1);
  if (gccl_probed(c)) gccl_probe_plan(op);
  int32_t rc = gccl_core.plan(c, op->coll, cls, (uint32_t)op->root, text);
  if (gccl_probed(c)) gccl_probe_planned(op, rc);
  if (rc != ncclSuccess) return gccl_fail((ncclResult_t)rc, "%s: rank %d: %s", call, c->rank, text);
  op->plan = gccl_table_find(c, key);
  return op->plan ? ncclSuccess : gccl_fail(ncclInternalError, "%s: rank %d: the plan is not in the launch table", call, c->rank);
}

/* One rank: a collective is a copy, or a scaled copy. */
static ncclResult_t alone(gccl_op *op, cudaStream_t stream, const char *call) {
  op->kind = GCCL_DO_COPY;
  if (op->red != GCCL_RED_USER && op->send == op->recv) return op->comm->cuda ? gccl_device_check(op, call) : ncclSuccess;
  return gccl_submit(op, stream, call);
}

/* What a checked call does. */
static ncclResult_t go(gccl_op *op, cudaStream_t stream, const char *call) {
  struct ncclComm *c = op->comm;
  if (op->kind == GCCL_DO_COLL) {
    if (c->nranks == 1) return alone(op, stream, call);
    ncclResult_t rc = c->cuda && !gccl_device_staged(c) ? ncclSuccess : find_plan(op, call); /* a GPU's leader needs none */
    if (rc != ncclSuccess) return rc;
  }
  return gccl_submit(op, stream, call);
}

static ncclResult_t go_watched(gccl_op *op, cudaStream_t stream, const char *call) {
  gccl_probe_call_state s;
  int depth = gccl_thread_self ? gccl_thread_self->depth : 0;
  gccl_probe_call(&s, op, stream, depth);
  ncclResult_t rc = go(op, stream, call);
  gccl_probe_forget(op); /* unless somebody has it */
  gccl_probe_called(&s, rc, depth);
  return rc;
}

static inline ncclResult_t issue(gccl_op *op, cudaStream_t stream, const char *call) {
  return gccl_probed(op->comm) ? go_watched(op, stream, call) : go(op, stream, call);
}

typedef struct {
  unsigned coll;
  int reduces, rooted, send_times_n, recv_times_n; /* whose size is count × nranks */
} shape;

static const shape shapes[] = {
    [GCCL_ALL_REDUCE] = {GCCL_ALL_REDUCE, 1, 0, 0, 0}, [GCCL_REDUCE_SCATTER] = {GCCL_REDUCE_SCATTER, 1, 0, 1, 0},
    [GCCL_ALL_GATHER] = {GCCL_ALL_GATHER, 0, 0, 0, 1}, [GCCL_BROADCAST] = {GCCL_BROADCAST, 0, 1, 0, 0},
    [GCCL_REDUCE] = {GCCL_REDUCE, 1, 1, 0, 0},         [GCCL_ALL_TO_ALL] = {GCCL_ALL_TO_ALL, 0, 0, 1, 1},
    [GCCL_GATHER] = {GCCL_GATHER, 0, 1, 0, 1},         [GCCL_SCATTER] = {GCCL_SCATTER, 0, 1, 1, 0},
};

/* The fused path: an all-reduce of a few bytes on the calling thread. Returns ncclInProgress where it does not apply. */
static inline ncclResult_t small(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t red, ncclComm_t c,
                                 cudaStream_t stream) {
  if (count == 0 || count > GCCL_SMALL_BYTES || (unsigned)type >= ncclNumTypes || (unsigned)red > ncclMin || (uintptr_t)stream > 2 ||
      !send || !recv)
    return ncclInProgress;
  const gccl_lowered *plan = atomic_load_explicit(&c->small, memory_order_acquire);
  uint32_t esize = (uint32_t)gccl_dtype_size((int)type);
  uint64_t bytes = count * esize;
  if (!plan || bytes > GCCL_SMALL_BYTES || bytes > c->limit[GCCL_ALL_REDUCE][0] || !c->blocking || c->check || c->probe ||
      (gccl_thread_self && gccl_thread_self->depth))
    return ncclInProgress;
  gccl_op op; /* each argument that the host's executor reads, in place of zeros for all: this is the quickest call */
  op.comm = c;
  op.kind = GCCL_DO_COLL;
  op.coll = GCCL_ALL_REDUCE;
  op.dtype = (uint8_t)type;
  op.red = (uint8_t)red;
  op.cls = 0;
  op.device_scalar = op.signal = 0;
  op.root = 0;
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.scale.u64 = 0;
  op.plan = plan;
  op.esize = esize;
  op.call = 0;
  op.seen = NULL;
  op.flow = NULL;
  op.traced = op.stepped = op.cut = 0;
  op.entered_ns = sample_start(c);
  int r = gccl_small_all_reduce(&op, gccl_order_take(c));
  counted(c, bytes);
  bump(&c->count.hits, 1);
  return r ? gccl_operation_failed(c, r, "ncclAllReduce") : ncclSuccess;
}

ncclResult_t gccl_collective(unsigned coll, const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t red, int root,
                             ncclComm_t c, cudaStream_t stream, const char *call) {
  const shape *s = &shapes[coll];
  ncclResult_t rc = gccl_comm_check(c, call);
  if (rc != ncclSuccess) return rc;
  if (s->rooted && (rc = check_rank(c, root, "root", call)) != ncclSuccess) return rc;
  if ((rc = check_type(c, type, call)) != ncclSuccess) return rc;
  gccl_op op;
  memset(&op, 0, offsetof(gccl_op, phase));
  op.comm = c;
  op.kind = GCCL_DO_COLL;
  op.coll = (uint8_t)coll;
  op.dtype = (uint8_t)type;
  op.root = s->rooted ? root : 0;
  op.send = send;
  op.recv = recv;
  op.count = count;
  if (s->reduces && (rc = gccl_redop_apply(c, red, type, &op, call)) != ncclSuccess) return rc;
  if (count == 0) return ncclSuccess;
  if ((rc = check_size(c, count, (int)type, s->send_times_n || s->recv_times_n ? c->nranks : 1, call)) != ncclSuccess) return rc;
  int at_root = !s->rooted || c->rank == root;
  int reads = coll == GCCL_BROADCAST || coll == GCCL_SCATTER ? at_root : 1;
  int writes = coll == GCCL_REDUCE || coll == GCCL_GATHER ? at_root : 1;
  if (reads && (rc = check_buffer(c, send, "sendbuff", call)) != ncclSuccess) return rc;
  if (writes && (rc = check_buffer(c, recv, "recvbuff", call)) != ncclSuccess) return rc;
  if (c->check && reads && writes && (rc = gccl_check_overlap(&op, call)) != ncclSuccess) return rc;
  op.entered_ns = sample_start(c);
  counted(c, count * gccl_dtype_size((int)type));
  return issue(&op, stream, call);
}

ncclResult_t gccl_message(int kind, const void *send, void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t c,
                          cudaStream_t stream, const char *call) {
  ncclResult_t rc = gccl_comm_check(c, call);
  if (rc != ncclSuccess) return rc;
  if ((rc = check_rank(c, peer, "peer", call)) != ncclSuccess || (rc = check_type(c, type, call)) != ncclSuccess ||
      (rc = check_size(c, count, (int)type, 1, call)) != ncclSuccess)
    return rc;
  if (count && (rc = check_buffer(c, send ? send : recv, kind == GCCL_DO_SEND ? "sendbuff" : "recvbuff", call)) != ncclSuccess) return rc;
  gccl_op op;
  memset(&op, 0, offsetof(gccl_op, phase));
  op.comm = c;
  op.kind = (uint8_t)kind;
  op.dtype = (uint8_t)type;
  op.root = peer;
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.entered_ns = sample_start(c);
  counted(c, count * gccl_dtype_size((int)type));
  return issue(&op, stream, call);
}

/* --- one-sided --- */

ncclResult_t gccl_onesided(const void *local, size_t count, ncclDataType_t type, int peer, ncclWindow_t win, size_t offset, int data,
                           int sig, int ctx, unsigned flags, ncclComm_t c, cudaStream_t stream, const char *call) {
  ncclResult_t rc = gccl_comm_check(c, call);
  if (rc != ncclSuccess) return rc;
  if ((rc = check_rank(c, peer, "peer", call)) != ncclSuccess) return rc;
  if (c->no_onesided)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: one-sided operations are switched off: numRmaCtx (NCCL_NUM_RMA_CTX) is 0", call,
                     c->rank);
  if (sig != 0 || ctx != 0 || flags != 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: sigIdx %d, ctx %d and flags 0x%x must be 0", call, c->rank, sig, ctx, flags);
  gccl_op op;
  memset(&op, 0, offsetof(gccl_op, phase));
  op.comm = c;
  op.kind = GCCL_DO_PUT;
  op.signal = 1;
  op.root = peer;
  if (data) {
    if ((rc = check_type(c, type, call)) != ncclSuccess || (rc = check_size(c, count, (int)type, 1, call)) != ncclSuccess) return rc;
    gccl_window *w = gccl_window_of(c, win);
    if (!w)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d: peerWin %p is not a window of this communicator", call, c->rank, (void *)win);
    if ((rc = check_buffer(c, local, "localbuff", call)) != ncclSuccess) return rc;
    size_t bytes = count * gccl_dtype_size((int)type);
    if (offset > w->peer_size[peer] || bytes > w->peer_size[peer] - offset)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d: %zu bytes at offset %zu end past rank %d's window of %llu bytes", call, c->rank,
                       bytes, offset, peer, (unsigned long long)w->peer_size[peer]);
    int inside = 0;
    for (unsigned i = 0; i < sizeof c->windows / sizeof *c->windows; i++) {
      const gccl_window *m = atomic_load_explicit(&c->windows[i], memory_order_acquire);
      inside |= m && (const char *)local >= m->user && (const char *)local + bytes <= m->user + m->size;
    }
    if (!inside)
      return gccl_fail(ncclInvalidArgument,
                       "%s: rank %d: localbuff %p is in no window of this communicator: register it with ncclCommWindowRegister", call,
                       c->rank, local);
    op.dtype = (uint8_t)type;
    op.send = local;
    op.count = count;
    op.window = w->number;
    op.window_offset = offset;
    char *there = c->cuda ? (char *)(uintptr_t)w->peer_offset[peer] : c->peers[peer].arena + w->peer_offset[peer];
    if (!c->peers[peer].remote) op.recv = (peer == c->rank ? w->user : there) + offset;
  }
  op.entered_ns = sample_start(c);
  counted(c, op.count * gccl_dtype_size(op.dtype));
  return issue(&op, stream, call);
}

ncclResult_t gccl_wait_signal(int n, const ncclWaitSignalDesc_t *d, ncclComm_t c, cudaStream_t stream) {
  const char *call = "ncclWaitSignal";
  ncclResult_t rc = gccl_comm_check(c, call);
  if (rc != ncclSuccess) return rc;
  if (n <= 0 || !d) return gccl_fail(ncclInvalidArgument, "%s: rank %d: needs at least one descriptor (nDesc %d)", call, c->rank, n);
  for (int i = 0; i < n; i++) {
    if (d[i].opCnt <= 0 || d[i].sigIdx != 0 || d[i].ctx != 0)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d: descriptor %d: opCnt %d must be positive, sigIdx %d and ctx %d must be 0", call,
                       c->rank, i, d[i].opCnt, d[i].sigIdx, d[i].ctx);
    if ((rc = check_rank(c, d[i].peer, "peer", call)) != ncclSuccess) return rc;
  }
  for (int i = 0; i < n; i++) {
    gccl_op op;
    memset(&op, 0, offsetof(gccl_op, phase));
    op.comm = c;
    op.kind = GCCL_DO_WAIT_SIGNAL;
    op.root = d[i].peer;
    op.count = (uint64_t)d[i].opCnt;
    rc = issue(&op, stream, call);
    if (rc != ncclSuccess && rc != ncclInProgress) return rc;
  }
  return rc;
}

ncclResult_t gccl_all_reduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t red, ncclComm_t c,
                             cudaStream_t stream) {
  if (gccl_handle_ready(c)) {
    ncclResult_t rc = small(send, recv, count, type, red, c, stream);
    if (rc != ncclInProgress) return rc;
  }
  return gccl_collective(GCCL_ALL_REDUCE, send, recv, count, type, red, 0, c, stream, "ncclAllReduce");
}
