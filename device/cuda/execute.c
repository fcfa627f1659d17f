/* The executor's side: waits on the host for the records of an operation, orders its stream behind the ranks that take part, and
 * launches one ordinary kernel that does the work of all of them. */
#include <string.h>

#include "../host/exec/probe.h"
#include "kernels/kernels.h"
#include "launch.h"

/* What one pass over a batch puts into the stream: everything that can run now, in waves. */
typedef struct {
  gccl_cuda_batch *b;
  gccl_cuda_comm *d;
  gccl_cuda_memops ops;
  gccl_copy_work copies; /* messages of this wave */
  struct {
    gccl_cuda_record *record;
    int rank, last; /* of its launch */
  } events[GCCL_LEADER_RANKS * 2];
  int nevents;
  uint64_t said;             /* ranks whose "done" the kernel writes itself */
  gccl_cuda_event *recorded; /* behind everything so far; with a reference */
} pass;

static gccl_cuda_record *record_of(const gccl_cuda_comm *d, const gccl_op *x, int rank) { return gccl_cuda_record_of(d, x, rank); }

/* The ranks whose records an operation needs: all others, or the sender. From q on; nranks: no more. */
static int peer_from(const gccl_op *x, int q) {
  if (x->kind != GCCL_DO_COLL) return q <= x->root ? x->root : x->comm->nranks;
  return q == x->comm->rank ? q + 1 : q;
}
#define EACH_PEER(q, x) for (int q = peer_from(x, 0); q < (x)->comm->nranks; q = peer_from(x, q + 1))

/* Whether the stream of the record's rank has come to it: for executors that meet on the host. Their streams say so by events or by words. */
static int is_ready(const gccl_cuda_comm *d, int q, const gccl_cuda_record *r) {
  if (r->sync == GCCL_CUDA_EVENT || r->slot) return 1;
  return (int32_t)(__atomic_load_n(&eager_words(d, q, d->rank)->ready, __ATOMIC_ACQUIRE) - (uint32_t)r->launch) >= 0;
}

/* Whether all records are there, and none belongs to a launch of its rank before which another one is still to be served. */
static int available(gccl_cuda_batch *b, gccl_op *x) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  EACH_PEER(q, x) {
    const gccl_cuda_record *r = record_of(d, x, q);
    const gccl_cuda_served *s = &d->served[q];
    if (gccl_load(&r->seq) != x->seq || r->launch != s->launch + (s->left == 0) || (b->meets && !is_ready(d, q, r))) {
      b->blocked = x;
      b->blocked_on = q;
      return 0;
    }
  }
  return 1;
}

static void say_call(char *text, size_t max, const gccl_cuda_record *r) {
  snprintf(text, max, "%s of %llu %s, %s, root %d", gccl_coll_names[r->coll], (unsigned long long)r->count, gccl_type_names[r->dtype],
           gccl_red_names[r->red], r->root);
}

/* All ranks must have made the same call. */
static int check(gccl_cuda_batch *b, gccl_op *x) {
  struct ncclComm *c = b->comm;
  const gccl_cuda_comm *d = gccl_cuda_of(c);
  EACH_PEER(q, x) {
    const gccl_cuda_record *r = record_of(d, x, q);
    if (r->sync == GCCL_CUDA_EVENT && r->capture != b->capture) {
      gccl_comm_latch(
          c, GCCL_RC_USAGE,
          "rank %d of %d: the operation is %s a stream capture here and %s one on rank %d of the same process: capture it on all "
          "ranks or on none",
          c->rank, c->nranks, b->capture ? "in" : "outside", r->capture ? "in" : "outside", q);
      return GCCL_RC_USAGE;
    }
    if (x->kind == GCCL_DO_COLL && r->hash != x->hash) {
      char mine[128], theirs[128];
      gccl_cuda_record me = {.coll = x->coll, .dtype = x->dtype, .red = x->red, .root = x->root, .count = x->count};
      say_call(mine, sizeof mine, &me);
      say_call(theirs, sizeof theirs, r);
      gccl_comm_latch(c, GCCL_RC_USAGE, "the ranks do not make the same call: rank %d: %s; rank %d: %s", c->rank, mine, q, theirs);
      return GCCL_RC_USAGE;
    }
    if (x->kind != GCCL_DO_COLL && (r->count * gccl_dtype_size(r->dtype) != x->count * x->esize || r->dtype != x->dtype)) {
      gccl_comm_latch(c, GCCL_RC_USAGE, "rank %d sends %llu %s and rank %d receives %llu %s: count and type must be equal", q,
                      (unsigned long long)r->count, gccl_type_names[r->dtype], c->rank, (unsigned long long)x->count,
                      gccl_type_names[x->dtype]);
      return GCCL_RC_USAGE;
    }
  }
  return 0;
}

/* Orders the stream behind the ranks that take part: once for each launch of each. */
static CUresult acquire(pass *p, const gccl_op *x) {
  gccl_cuda_comm *d = p->d;
  CUresult e = CUDA_SUCCESS;
  EACH_PEER(q, x) {
    if (e) break;
    const gccl_cuda_record *r = record_of(d, x, q);
    if (d->served[q].launch == r->launch) continue;
    d->served[q] = (gccl_cuda_served){r->launch, r->in_launch, 0};
    if (r->sync == GCCL_CUDA_WORD) {
      if (p->b->meets && !r->slot) continue; /* it is ready */
      e = gccl_cuda_await(&p->ops, p->b->stream, ready_word(d, q, d->rank, r->slot), r->slot, r->launch);
      continue;
    }
    gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)r->ready;
    if (r->stream != (uint64_t)(uintptr_t)p->b->stream || d->peer[q].same_gpu == 0) e = gccl_cu.StreamWaitEvent(p->b->stream, v->event, 0);
    gccl_cuda_event_unref(v);
  }
  return e;
}

static CUresult mark(pass *p);

/* Tells the ranks that the operation is in the stream, and those whose launch ends with it that it is done. */
static CUresult release(pass *p, const gccl_op *x) {
  gccl_cuda_comm *d = p->d;
  CUresult e = CUDA_SUCCESS;
  EACH_PEER(q, x) {
    if (e) break;
    gccl_cuda_record *r = record_of(d, x, q);
    int last = --d->served[q].left == 0;
    if (r->sync == GCCL_CUDA_EVENT) {
      p->events[p->nevents].record = r;
      p->events[p->nevents].rank = q;
      p->events[p->nevents++].last = last;
      if (p->nevents == GCCL_LEADER_RANKS * 2) e = mark(p);
      continue;
    }
    if (last && !(p->said >> q & 1)) e = gccl_cuda_say(&p->ops, p->b->stream, done_word(d, q, d->rank, r->slot), r->slot, r->launch);
    gccl_cuda_taken(r);
  }
  return e;
}

/* One event for all ranks of this process that wait on the host for this pass; the word for those that no longer do. */
static CUresult mark(pass *p) {
  gccl_cuda_comm *d = p->d;
  CUresult e = gccl_cuda_memops_flush(&p->ops, p->b->stream);
  if (e || p->nevents == 0) return e;
  gccl_cuda_event *v = gccl_cuda_event_get(p->d->cx);
  if (!v) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&v->refs, p->nevents + 1);
  gccl_cuda_event_unref(p->recorded);
  p->recorded = v;
  if ((e = gccl_cu.EventRecord(v->event, p->b->stream))) return e;
  for (int i = 0; i < p->nevents && !e; i++) {
    gccl_cuda_record *r = p->events[i].record;
    gccl_cuda_served *s = &d->served[p->events[i].rank];
    uint64_t launch = r->launch;
    r->done = (uint64_t)(uintptr_t)v;
    if (!gccl_cuda_claim(r, GCCL_CUDA_TAKEN)) {
      s->away = 1;
      gccl_cuda_event_unref(v);
      gccl_cuda_taken(r);
    }
    if (s->away && p->events[i].last) e = gccl_cuda_say(&p->ops, p->b->stream, done_word(d, p->events[i].rank, d->rank, 0), 0, launch);
  }
  p->nevents = 0;
  return e ? e : gccl_cuda_memops_flush(&p->ops, p->b->stream);
}

/* Average: floats are scaled before the fold, integers divided after it. */
unsigned gccl_cuda_work_op(uint8_t red, uint8_t dtype) {
  if (red <= GCCL_RED_MIN) return red;
  return red == GCCL_RED_AVG && dtype <= 5 ? GCCL_WORK_SUMPOSTDIV : GCCL_WORK_PREMULSUM;
}

/* Fills a rank's place; 0 or a latched error. */
static int place(gccl_cuda_comm *d, gccl_leader_work *w, int q, const gccl_cuda_record *r) {
  struct ncclComm *c = d->comm;
  gccl_leader_rank *k = &w->rank[q];
  k->send = r->send.kind == GCCL_CUDA_NONE ? 0 : gccl_cuda_reach(d, q, &r->send);
  k->recv = r->recv.kind == GCCL_CUDA_NONE ? 0 : gccl_cuda_reach(d, q, &r->recv);
  if ((!k->send && r->send.kind != GCCL_CUDA_NONE) || (!k->recv && r->recv.kind != GCCL_CUDA_NONE))
    return atomic_load(&c->error) ? GCCL_RC_CUDA : GCCL_RC_INTERNAL;
  if (w->op == GCCL_WORK_PREMULSUM && r->scaled) {
    k->scale = r->scale_device ? gccl_cuda_reach(d, q, &r->scalar) : r->scale;
    if (r->scale_device) w->scale_device |= 1ull << q;
    if (r->scale_device && !k->scale) return GCCL_RC_CUDA;
  }
  return 0;
}

/* The same bits as in host mode (exec/coll.c). */
void gccl_cuda_average(gccl_leader_work *w, unsigned n) {
  if (w->dtype <= 5) {
    w->div = n;
    return;
  }
  gccl_scalar s = {.u64 = 0};
  if (w->dtype == 8)
    s.f64 = 1.0 / (double)n;
  else
    s.f32 = 1.0f / (float)n;
  for (unsigned q = 0; q < n; q++) w->rank[q].scale = s.u64;
}

/* The kernel's last block writes the words of ranks of other processes itself, and this rank's own as the end of the batch. Only for an
 * operation alone: the words are for all that a rank has in its launch. */
static void say_inside(pass *p, const gccl_op *x, gccl_leader_work *w) {
  gccl_cuda_comm *d = p->d;
  EACH_PEER(q, x) {
    const gccl_cuda_record *r = record_of(d, x, q);
    if (r->sync != GCCL_CUDA_WORD || d->served[q].left > 1) continue;
    w->rank[q].done = done_word(d, q, d->rank, r->slot);
    w->done_value[q] = r->slot ? 1 : (uint32_t)r->launch;
    p->said |= 1ull << q;
  }
  if (!p->said || p->b->capture || p->b->nops > 1) return;
  w->rank[d->rank].done = done_word(d, d->rank, d->rank, 0);
  w->done_value[d->rank] = (uint32_t)++d->launches[d->rank];
  p->b->executor = d->rank;
}

static int launch(gccl_cuda_batch *b, CUfunction f, gccl_launch_dims dims, void *work, const char *what) {
  void *params[] = {work};
  CUresult e = gccl_cu.LaunchKernel(f, dims.grid, 1, 1, dims.block, 1, 1, 0, b->stream, params, NULL);
  return e ? gccl_cuda_failed(b->comm, e, what) : 0;
}

static int collective(pass *p, gccl_op *x, int alone) {
  gccl_cuda_batch *b = p->b;
  gccl_cuda_comm *d = p->d;
  gccl_leader_work w;
  int n = b->comm->nranks, rc;
  memset(&w, 0, offsetof(gccl_leader_work, rank) + (size_t)n * sizeof w.rank[0]);
  w.version = GCCL_WORK_VERSION;
  w.coll = x->coll;
  w.dtype = x->dtype;
  w.op = (uint8_t)gccl_cuda_work_op(x->red, x->dtype);
  w.nranks = (uint16_t)n;
  w.root = (uint16_t)x->root;
  w.count = x->count;
  if (x->red == GCCL_RED_AVG && gccl_coll_folds(x->coll)) gccl_cuda_average(&w, (unsigned)n);
  gccl_cuda_record mine;
  if ((rc = gccl_cuda_fill_own(b, x, 1, &mine)) || (rc = place(d, &w, d->rank, &mine))) return rc;
  for (int q = 0; q < n; q++)
    if (q != d->rank && (rc = place(d, &w, q, record_of(d, x, q)))) return rc;
  if (gccl_cuda_copies_do(d, x->coll)) return gccl_cuda_copies(b, &w);
  gccl_launch_dims dims = gccl_leader_dims(&w, d->cx->sms);
  if (alone && (dims.grid == 1 || d->tickets)) say_inside(p, x, &w);
  if (dims.grid > 1 && d->tickets) w.ticket = d->tickets + (uint64_t)b->slot * sizeof(uint32_t);
  return launch(b, gccl_cuda_kernel(d->cx, x->coll, x->dtype, w.op), dims, &w, gccl_coll_names[x->coll]);
}

static int copy_now(pass *p) {
  if (p->copies.n == 0) return 0;
  p->copies.version = GCCL_WORK_VERSION;
  p->copies.ndone = 0;
  int rc =
      launch(p->b, gccl_cuda_kernel(p->d->cx, GCCL_SEND_RECV, 0, 0), gccl_copy_dims(&p->copies, p->d->cx->sms), &p->copies, "messages");
  p->copies.n = 0;
  return rc;
}

static int copy_item(pass *p, CUdeviceptr from, CUdeviceptr to, uint64_t bytes) {
  if (gccl_cuda_copies_do(p->d, GCCL_SEND_RECV)) {
    CUresult e = gccl_cuda_copy(p->b->stream, from, to, bytes);
    return e ? gccl_cuda_failed(p->b->comm, e, "cuMemcpyAsync") : 0;
  }
  if (bytes == 0 || from == to) return 0;
  p->copies.item[p->copies.n++] = (gccl_copy_item){.src = from, .dst = to, .bytes = bytes};
  return p->copies.n == GCCL_COPIES ? copy_now(p) : 0;
}

static int message(pass *p, gccl_op *x) {
  gccl_cuda_record mine;
  const gccl_cuda_record *r = record_of(p->d, x, x->root);
  int rc = gccl_cuda_fill_own(p->b, x, 1, &mine);
  if (rc || x->count == 0) return rc;
  CUdeviceptr from = gccl_cuda_reach(p->d, x->root, &r->send);
  if (!from) return atomic_load(&p->b->comm->error) ? GCCL_RC_CUDA : GCCL_RC_INTERNAL;
  return copy_item(p, from, mine.recv.addr, x->count * x->esize);
}

/* What needs nobody else: a rank's message to itself, a collective of one rank. */
static int alone(pass *p, gccl_op *x) {
  gccl_cuda_batch *b = p->b;
  gccl_cuda_record mine;
  int rc = x->count ? gccl_cuda_fill_own(b, x, 1, &mine) : 0;
  if (rc || x->count == 0) return rc;
  if (x->red != GCCL_RED_USER) return copy_item(p, mine.send.addr, mine.recv.addr, x->count * x->esize);
  gccl_leader_work w;
  memset(&w, 0, offsetof(gccl_leader_work, rank) + sizeof w.rank[0]);
  w.version = GCCL_WORK_VERSION;
  w.coll = GCCL_ALL_REDUCE;
  w.dtype = x->dtype;
  w.op = GCCL_WORK_PREMULSUM;
  w.nranks = 1;
  w.count = x->count;
  if ((rc = place(p->d, &w, 0, &mine))) return rc;
  return launch(b, gccl_cuda_kernel(p->d->cx, w.coll, w.dtype, w.op), gccl_leader_dims(&w, p->d->cx->sms), &w, "a scaled copy");
}

static int run(pass *p, gccl_op *x, int only) {
  if (gccl_probed(x->comm)) gccl_probe_step(x, GCCL_STEP_LAUNCH, NULL, -1, NULL);
  switch (x->kind) {
  case GCCL_DO_COLL: return collective(p, x, only);
  case GCCL_DO_RECV: return message(p, x);
  case GCCL_DO_COPY: return alone(p, x);
  default: return gccl_cuda_onesided(p->b, x);
  }
}

/* One wave: everything that is available now, ordered together. */
static int wave(pass *p, int *found) {
  gccl_cuda_batch *b = p->b;
  gccl_op *todo[64];
  int n = 0, rc = 0;
  CUresult e = CUDA_SUCCESS;
  for (int i = 0; i < b->nops && n < 64; i++) {
    gccl_op *x = &b->ops[i];
    if (x->phase != OP_NEW || executor_of(x) != b->comm->rank) continue;
    int peers = x->kind == GCCL_DO_COLL || x->kind == GCCL_DO_RECV;
    if (peers) {
      if (!available(b, x)) continue;
      if ((rc = check(b, x))) return rc;
      e = acquire(p, x);
    }
    if (e) return gccl_cuda_failed(b->comm, e, "waiting for the other ranks' buffers");
    if (x->kind == GCCL_DO_WAIT_SIGNAL && !gccl_cuda_signalled(b, x)) {
      b->blocked = x;
      b->blocked_on = x->root;
      break; /* signals are taken in the order of the calls */
    }
    todo[n++] = x;
  }
  if (n == 0) return 0;
  p->said = 0;
  gccl_cuda_event_unref(p->recorded); /* more is to come */
  p->recorded = NULL;
  if ((e = gccl_cuda_memops_flush(&p->ops, b->stream))) return gccl_cuda_failed(b->comm, e, "waiting for the other ranks' buffers");
  for (int i = 0; i < n && !rc; i++) rc = run(p, todo[i], n == 1);
  if (!rc) rc = copy_now(p);
  if (rc) return rc;
  for (int i = 0; i < n && !e; i++) {
    if (todo[i]->kind == GCCL_DO_COLL || todo[i]->kind == GCCL_DO_RECV) e = release(p, todo[i]);
    todo[i]->phase = OP_EXECUTED;
  }
  if (e) return gccl_cuda_failed(b->comm, e, "telling the other ranks that an operation is done");
  *found += n;
  return 0;
}

int gccl_cuda_execute(gccl_cuda_batch *b) {
  pass p;
  p.b = b;
  p.d = gccl_cuda_of(b->comm);
  p.ops.n = 0;
  p.copies.n = 0;
  p.nevents = 0;
  p.recorded = NULL;
  int found = 0, before, rc;
  do {
    before = found;
    b->blocked = NULL;
    rc = wave(&p, &found);
  } while (!rc && found > before);
  CUresult e = rc ? CUDA_SUCCESS : mark(&p);
  if (!rc && !e && found == b->nops) {
    b->end = p.recorded;
    p.recorded = NULL;
  }
  gccl_cuda_event_unref(p.recorded);
  if (rc) return rc;
  if (e) return gccl_cuda_failed(b->comm, e, "telling the other ranks that an operation is done");
  if (found && b->comm->nranks > 1) gccl_wake(b->comm);
  if (!b->blocked) return 0;
  b->blocked->moved = found > 0;
  return GCCL_BLOCKED;
}
