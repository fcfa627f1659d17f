/* A rank's side of operations that another rank executes: "ready" before, the record, the wait behind. */
#include <string.h>

#include "launch.h"

/* The batch of an executor, if this thread drives it too. */
static gccl_cuda_batch *beside(const gccl_cuda_batch *b, int executor, gccl_cuda_batch *all, int n) {
  const char *area = b->comm->peers[executor].area;
  for (int i = 0; i < n; i++)
    if (all[i].comm->rank == executor && all[i].comm->self.area == area) return &all[i];
  return NULL;
}

/* The capture of a batch's stream, also of one whose turn has not come. */
static uint64_t capture_of(const gccl_cuda_batch *b) {
  int status;
  uint64_t id = 0;
  if (b->phase > PH_NEW) return b->capture;
  CUresult e = gccl_cu.StreamGetCaptureInfo(b->streams[0], &status, &id, NULL, NULL, NULL);
  return !e && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

/* Threads of a process order their streams by events. Not in a capture, where both streams would have to be in the same one: this
 * thread knows that only of executors that it drives itself. */
static int sync_with(const gccl_cuda_batch *b, int executor, gccl_cuda_batch *all, int n) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  if (!d->peer[executor].same_process) return GCCL_CUDA_WORD;
  if (!b->capture) return GCCL_CUDA_EVENT;
  const gccl_cuda_batch *other = beside(b, executor, all, n);
  return other && capture_of(other) == b->capture ? GCCL_CUDA_EVENT : GCCL_CUDA_WORD;
}

/* Graphs of this process that a replay of this capture may wait for, and itself: a wait in a hardware queue holds up all streams of it, so
 * each of them needs one. */
static int graphs_that_wait(const gccl_cuda_batch *b, gccl_cuda_batch *all, int n) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  uint64_t seen[GCCL_LEADER_RANKS];
  int graphs = 0;
  for (int q = 0; q < d->nranks; q++) {
    if (!d->peer[q].same_process || !d->peer[q].same_gpu) continue;
    const gccl_cuda_batch *other = q == d->rank ? b : beside(b, q, all, n);
    uint64_t capture = other ? capture_of(other) : 0;
    int k = 0;
    while (k < graphs && (!capture || seen[k] != capture)) k++;
    if (k == graphs) seen[graphs++] = capture;
  }
  return graphs;
}

/* In more graphs than queues two of them would share one, and the first one launched would wait there for the second. */
static int enough_queues(const gccl_cuda_batch *b, gccl_cuda_batch *all, int n) {
  struct ncclComm *c = b->comm;
  int queues = gccl_cuda_of(c)->cx->queues, graphs = b->capture ? graphs_that_wait(b, all, n) : 0;
  if (graphs <= queues) return 1;
  gccl_comm_latch(
      c, GCCL_RC_USAGE,
      "rank %d of %d: %d ranks of this process capture graphs that wait for each other, and streams share %d hardware queues "
      "here: their replays would wait for ever: capture the streams of the ranks into one graph (fork and join them by events), "
      "give each rank a process, or set CUDA_DEVICE_MAX_CONNECTIONS to at least %d before the start",
      c->rank, c->nranks, graphs, queues, graphs);
  return 0;
}

static int onesided(const gccl_cuda_batch *b) {
  for (int i = 0; i < b->nops; i++)
    if (b->ops[i].kind != GCCL_DO_PUT && b->ops[i].kind != GCCL_DO_WAIT_SIGNAL) return 0;
  return 1;
}

static int towards(const gccl_cuda_batch *b, int executor) {
  int n = 0;
  for (int i = 0; i < b->nops; i++) n += executor_of(&b->ops[i]) == executor;
  return n;
}

/* True for the first operation of the batch with this executor. */
static int first_with(const gccl_cuda_batch *b, int i) {
  int e = executor_of(&b->ops[i]);
  for (int k = 0; k < i; k++)
    if (executor_of(&b->ops[k]) == e) return 0;
  return 1;
}

/* "Ready" in the stream, once for each executor. */
static int announce(gccl_cuda_batch *b, gccl_cuda_batch *all, int n) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  gccl_cuda_memops m = {.n = 0};
  int events = 0;
  CUresult e = CUDA_SUCCESS;
  for (int i = 0; i < b->nops && !e; i++) {
    int x = executor_of(&b->ops[i]);
    if (x == c->rank || !first_with(b, i)) continue;
    d->launches[x]++;
    if (b->late) continue;
    if (sync_with(b, x, all, n) == GCCL_CUDA_EVENT)
      events++;
    else
      e = gccl_cuda_say(&m, b->stream, ready_word(d, c->rank, x, b->slot), b->slot, d->launches[x]);
  }
  if (!e && events) {
    b->ready = gccl_cuda_event_get(d->cx);
    if (!b->ready) return gccl_cuda_failed(c, CUDA_ERROR_OUT_OF_MEMORY, "cuEventCreate");
    atomic_store(&b->ready->refs, events);
    e = gccl_cu.EventRecord(b->ready->event, b->stream);
  }
  if (!e) e = gccl_cuda_memops_flush(&m, b->stream);
  return e ? gccl_cuda_failed(c, e, "saying that the buffers are ready") : 0;
}

int gccl_cuda_reads(const gccl_op *x) {
  if (x->kind != GCCL_DO_COLL || (x->coll != GCCL_BROADCAST && x->coll != GCCL_SCATTER)) return 1;
  return x->comm->rank == x->root;
}

int gccl_cuda_writes(const gccl_op *x) {
  if (x->kind != GCCL_DO_COLL || (x->coll != GCCL_REDUCE && x->coll != GCCL_GATHER)) return 1;
  return x->comm->rank == x->root;
}

uint64_t gccl_cuda_parts(const gccl_op *x, int receiving) {
  if (x->kind != GCCL_DO_COLL) return 1;
  int n = receiving ? x->coll == GCCL_ALL_GATHER || x->coll == GCCL_ALL_TO_ALL || x->coll == GCCL_GATHER
                    : x->coll == GCCL_REDUCE_SCATTER || x->coll == GCCL_ALL_TO_ALL || x->coll == GCCL_SCATTER;
  return n ? (uint64_t)x->comm->nranks : 1;
}

int gccl_cuda_check(gccl_op *x, char *text, size_t max) {
  const gccl_cuda_comm *d = gccl_cuda_of(x->comm);
  uint64_t size = gccl_dtype_size(x->dtype), part = x->count * size;
  int rc = 0, send = 0, recv = 0, scalar = 0;
  gccl_cuda_forget();
  if (part == 0 || x->kind == GCCL_DO_PUT || x->kind == GCCL_DO_WAIT_SIGNAL) return 0; /* windows are known */
  if (x->red == GCCL_RED_USER && x->device_scalar)
    rc = gccl_cuda_check_buffer(d, x->scalar, size, "the operator's scalar", &scalar, text, max);
  if (!rc && x->send && gccl_cuda_reads(x))
    rc = gccl_cuda_check_buffer(d, x->send, part * gccl_cuda_parts(x, 0), "sendbuff", &send, text, max);
  if (!rc && x->recv && gccl_cuda_writes(x))
    rc = gccl_cuda_check_buffer(d, x->recv, part * gccl_cuda_parts(x, 1), "recvbuff", &recv, text, max);
  x->hidden = (uint8_t)(send * GCCL_CUDA_HIDDEN_SEND | recv * GCCL_CUDA_HIDDEN_RECV | scalar * GCCL_CUDA_HIDDEN_SCALAR);
  return rc;
}

int gccl_cuda_fill_own(gccl_cuda_batch *b, const gccl_op *x, int local, gccl_cuda_record *r) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  int rc = 0;
  r->scaled = x->red == GCCL_RED_USER;
  r->scale_device = r->scaled && x->device_scalar;
  r->scale = x->scale.u64;
  r->send.kind = r->recv.kind = GCCL_CUDA_NONE;
  if (x->count == 0) return 0;
  if (r->scale_device) rc = gccl_cuda_describe(d, gccl_cuda_lent_at(b, x, x->scalar, GCCL_CUDA_HIDDEN_SCALAR), local, &r->scalar);
  if (!rc && x->send && gccl_cuda_reads(x))
    rc = gccl_cuda_describe(d, gccl_cuda_lent_at(b, x, x->send, GCCL_CUDA_HIDDEN_SEND), local, &r->send);
  if (!rc && x->recv && gccl_cuda_writes(x))
    rc = gccl_cuda_describe(d, gccl_cuda_lent_at(b, x, x->recv, GCCL_CUDA_HIDDEN_RECV), local, &r->recv);
  return rc;
}

static int fill(gccl_cuda_batch *b, gccl_op *x, gccl_cuda_record *r, int sync) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int executor = executor_of(x);
  r->taken = GCCL_CUDA_OFFERED;
  r->hash = x->hash;
  r->launch = d->launches[executor];
  r->in_launch = (uint32_t)towards(b, executor);
  r->sync = (uint8_t)sync;
  r->kind = x->kind;
  r->coll = x->coll;
  r->dtype = x->dtype;
  r->red = x->red;
  r->root = x->root;
  r->slot = b->slot;
  r->count = x->count;
  r->capture = b->capture;
  r->stream = (uint64_t)(uintptr_t)b->stream;
  r->ready = (uint64_t)(uintptr_t)b->ready;
  r->done = 0;
  return gccl_cuda_fill_own(b, x, d->peer[executor].same_process, r);
}

static gccl_cuda_record *own_record(const gccl_cuda_comm *d, const gccl_op *x) { return gccl_cuda_record_of(d, x, d->rank); }

int gccl_cuda_publish(gccl_cuda_batch *b, gccl_cuda_batch *all, int n) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int rc, published = 0, blocked = 0;
  if (!b->announced) {
    b->announced = 1;
    if (!onesided(b) && !enough_queues(b, all, n)) return GCCL_RC_USAGE;
    /* Nothing of this thread comes between: one call of the driver for both. */
    int executor = executor_of(&b->ops[0]);
    b->late = n == 1 && b->nops == 1 && executor != c->rank && !d->peer[executor].same_process && !b->meets;
    if ((rc = gccl_cuda_lend(b)) || (rc = announce(b, all, n))) return rc;
  }
  b->blocked = NULL;
  for (int i = 0; i < b->nops; i++) {
    gccl_op *x = &b->ops[i];
    int executor = executor_of(x);
    if (x->phase != OP_NEW || executor == c->rank) continue;
    gccl_cuda_record *r = own_record(d, x);
    if (r->seq && !gccl_cuda_is_taken(r)) { /* its last user has not been executed yet */
      b->blocked = x;
      b->blocked_on = executor;
      blocked = 1;
      continue;
    }
    if ((rc = fill(b, x, r, sync_with(b, executor, all, n)))) return rc;
    gccl_store(&r->seq, x->seq); /* release; acquired in available (execute.c) */
    x->phase = OP_PUBLISHED;
    published = 1;
  }
  if (published) gccl_wake(c);
  if (!blocked) return 0;
  b->blocked->moved = (uint8_t)published;
  return GCCL_BLOCKED;
}

/* The stream waits for the executors whose calls have not come, once for each: their last word of a launch says that all of it is done. */
static CUresult wait_away(gccl_cuda_batch *b) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  CUresult e = CUDA_SUCCESS;
  for (int i = 0; i < b->nops && !e; i++) {
    if (b->ops[i].phase != OP_LEFT) continue;
    int executor = executor_of(&b->ops[i]);
    e = gccl_cuda_wait_launch(d, b->stream, executor, (uint32_t)d->launches[executor]);
    for (int k = i; k < b->nops; k++)
      if (b->ops[k].phase == OP_LEFT && executor_of(&b->ops[k]) == executor) b->ops[k].phase = OP_ORDERED;
    if (towards(b, executor) == b->nops) b->executor = executor;
  }
  return e;
}

/* Behind the operation: the executor's event, or its word. */
int gccl_cuda_finish(gccl_cuda_batch *b) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  gccl_cuda_memops m = {.n = 0};
  CUresult e = CUDA_SUCCESS;
  uint64_t last = 0;
  int found = 0, launches = 0; /* operations that are ordered in this call, and by how many different events */
  b->blocked = NULL;
  for (int i = 0; i < b->nops && !e; i++) {
    gccl_op *x = &b->ops[i];
    if (x->phase != OP_PUBLISHED) continue;
    gccl_cuda_record *r = own_record(d, x);
    if (b->meets && r->sync == GCCL_CUDA_WORD && !(gccl_cuda_is_taken(r) && launch_done(d, executor_of(x), (uint32_t)r->launch))) {
      b->blocked = x;
      b->blocked_on = executor_of(x);
      continue;
    }
    if (r->sync == GCCL_CUDA_WORD) {
      int executor = executor_of(x);
      x->phase = OP_ORDERED;
      if (!first_with(b, i)) continue;
      if (!b->capture && !b->lends && towards(b, executor) == b->nops) b->executor = executor;
      if (b->late) e = gccl_cuda_say(&m, b->stream, ready_word(d, c->rank, executor, b->slot), b->slot, r->launch);
      if (!e && !b->meets) e = gccl_cuda_await(&m, b->stream, done_word(d, c->rank, executor, b->slot), b->slot, r->launch);
      continue;
    }
    if (b->leave && gccl_cuda_claim(r, GCCL_CUDA_LEFT)) {
      x->phase = OP_LEFT;
      continue;
    }
    if (!gccl_cuda_is_taken(r)) {
      b->blocked = x;
      b->blocked_on = executor_of(x);
      continue;
    }
    gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)r->done;
    found++;
    if (r->done != last) {
      launches++;
      e = gccl_cu.StreamWaitEvent(b->stream, v->event, 0);
      gccl_cuda_event_unref(b->end);
      b->end = v; /* with its reference */
    } else {
      gccl_cuda_event_unref(v);
    }
    last = r->done;
    x->phase = OP_ORDERED;
  }
  if (found && (found != b->nops || launches > 1)) { /* it is not the end of all of them */
    gccl_cuda_event_unref(b->end);
    b->end = NULL;
  }
  if (!e) e = gccl_cuda_memops_flush(&m, b->stream);
  if (!e && b->leave) e = wait_away(b);
  if (e) return gccl_cuda_failed(c, e, "waiting for the executor");
  return b->blocked ? GCCL_BLOCKED : gccl_cuda_take_back(b);
}
