/* The interpreter of lowered plans: one collective of one rank.
 *
 * An operation runs its plan's ops once per round. What a reference means is decided by the operation records: a peer's
 * buffer is its window or its memory where that can be reached, and a piece in scratch where not. Guards at the start
 * make sure that nothing of an earlier operation is overwritten that a slower peer still reads.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"
#include "remote.h"

enum { PH_GUARD, PH_EDGES, PH_RUN };
_Static_assert(GCCL_SMALL_BYTES == sizeof(((gccl_record *)0)->u.data), "the small path and the inline payload of a record");
enum { INLINE_MAX = GCCL_SMALL_BYTES };

/* A round takes at most this part of the scratch, so that rounds can move on through it. */
enum { SCRATCH_TURNS = 4 };

/* The last level of cache. Where the buffers of all ranks are larger, results are streamed past it: they would evict what
 * is read next, and be read from memory before they are written. */
static uint64_t last_level_cache(void) {
  static _Atomic(uint64_t) known;
  uint64_t v = atomic_load_explicit(&known, memory_order_relaxed);
  if (!v) {
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    /* The C library adds up all complexes of a socket on some processors; one has seldom more than this. */
    v = bytes > 0 && bytes < 32 << 20 ? (uint64_t)bytes : 32u << 20;
    atomic_store_explicit(&known, v, memory_order_relaxed);
  }
  return v;
}

typedef struct {
  gccl_reduce_src *src;
  gccl_reduce_dst *dst;
  uint64_t filled[2 * GCCL_MAX_EDGES]; /* bytes in the slot of an out-edge that has not been signalled */
  uint32_t sent[2 * GCCL_MAX_EDGES], waited[2 * GCCL_MAX_EDGES], consumed[2 * GCCL_MAX_EDGES]; /* by edge of the plan */
  /* With a port, by edge: how many slots pass in the operation; what is put next, if it is not the slot; the last put of that kind. */
  uint32_t total[2 * GCCL_MAX_EDGES];
  const char *source[2 * GCCL_MAX_EDGES];
  uint64_t direct[2 * GCCL_MAX_EDGES];
} scratch;

static scratch *scratch_of(struct ncclComm *c) {
  if (!c->exec) {
    size_t n = (size_t)c->nranks + GCCL_MAX_REFS;
    char *m = calloc(1, sizeof(scratch) + n * (sizeof(gccl_reduce_src) + sizeof(gccl_reduce_dst)));
    if (!m) return NULL;
    scratch *s = (scratch *)m;
    s->src = (gccl_reduce_src *)(m + sizeof(scratch));
    s->dst = (gccl_reduce_dst *)(s->src + n);
    c->exec = s;
  }
  return c->exec;
}

static inline int64_t at(const gccl_affine *a, uint32_t i, uint32_t j) {
  int64_t v = a->base + (int64_t)a->i * i + (int64_t)a->j * j;
  if (a->mod > 0 && (v >= a->mod || v < 0)) {
    v %= a->mod;
    if (v < 0) v += a->mod;
  }
  return v;
}

uint8_t gccl_reach(const struct ncclComm *c, const void *ptr, uint64_t bytes, uint64_t *addr) {
  uint64_t p = (uint64_t)(uintptr_t)ptr, base = (uint64_t)(uintptr_t)c->arena;
  *addr = p;
  if (c->one_process) return GCCL_BUF_LOCAL;
  if (base && p >= base && p - base < c->arena_size && bytes <= c->arena_size - (p - base)) {
    *addr = p - base;
    return GCCL_BUF_ARENA;
  }
  return GCCL_BUF_STAGED;
}

static inline char *reached(const struct ncclComm *c, int q, uint8_t kind, uint64_t addr) {
  return kind == GCCL_BUF_ARENA ? c->peers[q].arena + addr : (char *)(uintptr_t)addr;
}

static inline uint64_t slot_bytes(const gccl_op *x) { return x->comm->geo.stage_bytes / x->plan->places / GCCL_LINE * GCCL_LINE; }

/* Steps and chunks of an operation are counted in the low bits of the sync words. */
static int countable(gccl_op *x) {
  struct ncclComm *c = x->comm;
  uint64_t most = (uint64_t)x->rounds * (x->plan->steps + x->plan->nops);
  if (most < 1ull << GCCL_STEP_BITS) return 1;
  gccl_comm_latch(c, GCCL_RC_ARGUMENT, "rank %d: %s of %llu %s would take %u rounds through scratch of %llu bytes: raise GCCL_STAGE_BYTES",
                  c->rank, gccl_coll_names[x->coll], (unsigned long long)x->count, gccl_type_names[x->dtype], x->rounds,
                  (unsigned long long)c->geo.stage_bytes);
  return 0;
}

/* How many slots pass over each edge. */
static void count_slots(const gccl_op *x) {
  scratch *s = x->comm->exec;
  const gccl_lop *op = gccl_lowered_ops(x->plan);
  memset(s->total, 0, sizeof s->total);
  for (uint32_t k = 0, times = x->rounds; k < x->plan->nops; k++) {
    if (op[k].kind == GCCL_OP_LOOP) times = x->rounds * op[k].n;
    if (op[k].kind == GCCL_OP_END) times = x->rounds;
    if (op[k].kind == GCCL_OP_SIGNAL && op[k].sync != GCCL_SYNC_STEP) s->total[op[k].edge] += times;
  }
}

/* Whether writing into the receive buffer may change what the send buffer holds. */
static int overlap(const gccl_op *x) {
  uintptr_t send = (uintptr_t)x->send, recv = (uintptr_t)x->recv;
  uint64_t part = x->part * x->esize;
  return send < recv + part * x->plan->recv_parts && recv < send + part * x->plan->send_parts;
}

uint64_t gccl_part_of(const gccl_op *x) {
  const gccl_lowered *p = x->plan;
  if (x->kind != GCCL_DO_COLL || !p->split || p->recv_parts <= 1) return x->count;
  uint64_t part = (x->count + p->recv_parts - 1) / p->recv_parts;
  /* Parts that begin on a cache line. Not with edges: there the fold order of an element depends on its part. */
  return p->eager || p->nedges ? part : gccl_align(part, GCCL_LINE / gccl_dtype_size(x->dtype));
}

int gccl_coll_begin(gccl_op *x) {
  struct ncclComm *c = x->comm;
  const gccl_lowered *p = x->plan;
  if (!scratch_of(c)) {
    gccl_comm_latch(c, GCCL_RC_SYSTEM, "rank %d of %d: out of memory for the executor", c->rank, c->nranks);
    return GCCL_RC_SYSTEM;
  }
  x->seq = c->seq + 1;
  __atomic_store_n(&c->seq, x->seq, __ATOMIC_RELAXED); /* the core looks at it from other threads */
  if (gccl_has_remote(c)) {
    if (!p->eager && !p->nedges) {
      gccl_comm_latch(c, GCCL_RC_INTERNAL, "rank %d: method %s loads and stores memory of ranks on other hosts", c->rank, p->method);
      return GCCL_RC_INTERNAL;
    }
  } else if (p->eager && x->coll == GCCL_ALL_REDUCE && x->cls == 0)
    atomic_store_explicit(&c->small, p, memory_order_release);
  x->esize = (uint32_t)gccl_dtype_size(x->dtype);
  x->asize = (uint32_t)gccl_acc_size(x->dtype);
  x->hash = gccl_call_hash(x);
  x->phase = PH_GUARD;
  x->pc = x->i = x->round = 0;
  x->rounds = 1;
  x->at = 0;
  x->published = x->staged_any = 0;
  x->div = 0;
  x->scaled = 0;
  x->fold = x->red <= GCCL_RED_MIN ? x->red : GCCL_RED_SUM;
  if (x->red == GCCL_RED_AVG) {
    if (x->dtype <= 5)
      x->div = (uint64_t)c->nranks;
    else {
      x->scaled = 1;
      if (x->dtype == 8)
        x->scale.f64 = 1.0 / c->nranks;
      else
        x->scale.f32 = 1.0f / (float)c->nranks;
    }
  } else if (x->red == GCCL_RED_USER) {
    x->scaled = 1;
  }

  uint64_t line = GCCL_LINE / x->esize;
  x->part = gccl_part_of(x);
  x->stream = x->part * x->esize * (p->send_parts + p->recv_parts) * (uint64_t)c->nranks > last_level_cache();
  x->piece = x->part;
  x->send_kind = x->recv_kind = GCCL_BUF_NONE;
  if (p->eager) {
    uint64_t bytes = x->part * p->send_parts * x->esize;
    if (bytes > c->geo.eager_bytes && bytes > INLINE_MAX) {
      gccl_comm_latch(c, GCCL_RC_INTERNAL, "rank %d: %llu bytes do not fit an eager slot of %llu", c->rank, (unsigned long long)bytes,
                      (unsigned long long)c->geo.eager_bytes);
      return GCCL_RC_INTERNAL;
    }
    if (bytes <= INLINE_MAX) x->send_kind = GCCL_BUF_INLINE;
  } else if (p->nedges) {
    if (slot_bytes(x) == 0 || p->nedges > 2 * GCCL_MAX_EDGES) {
      gccl_comm_latch(c, GCCL_RC_INTERNAL, "rank %d: method %s needs %u slots and %u edges, scratch has %llu bytes: raise GCCL_STAGE_BYTES",
                      c->rank, p->method, p->places, p->nedges, (unsigned long long)c->geo.stage_bytes);
      return GCCL_RC_INTERNAL;
    }
    x->piece = slot_bytes(x) / (x->asize > x->esize ? x->asize : x->esize);
    x->rounds = x->part ? (uint32_t)((x->part + x->piece - 1) / x->piece) : 1;
    if (!countable(x)) return GCCL_RC_ARGUMENT;
    scratch *s = c->exec;
    memset(s->filled, 0, sizeof s->filled);
    memset(s->sent, 0, sizeof s->sent);
    memset(s->waited, 0, sizeof s->waited);
    memset(s->consumed, 0, sizeof s->consumed);
    if (gccl_has_remote(c)) {
      memset(s->source, 0, sizeof s->source);
      memset(s->direct, 0, sizeof s->direct);
      count_slots(x);
      x->in_place = (uint8_t)overlap(x);
    }
  } else {
    /* Until the peers' records say that everything can be reached, pieces are what scratch holds. */
    uint64_t stage = c->geo.stage_bytes / SCRATCH_TURNS / p->send_parts, out = c->geo.out_bytes / SCRATCH_TURNS;
    x->piece = (stage < out ? stage : out) / x->esize / line * line;
    if (x->piece == 0) x->piece = line;
    if (x->piece * x->esize * p->send_parts > c->geo.stage_bytes && !c->one_process) {
      gccl_comm_latch(c, GCCL_RC_USAGE, "rank %d: %u parts of a line each do not fit scratch of %llu bytes: raise GCCL_STAGE_BYTES",
                      c->rank, p->send_parts, (unsigned long long)c->geo.stage_bytes);
      return GCCL_RC_USAGE;
    }
    if (x->piece > x->part) x->piece = gccl_align(x->part, line);
  }
  return 0;
}

int gccl_coll_begin_published(gccl_op *x) {
  int r = gccl_coll_begin(x);
  const gccl_lop *ops = gccl_lowered_ops(x->plan);
  x->phase = PH_RUN;
  x->published = 1;
  while (ops[x->pc].kind != GCCL_OP_SIGNAL) x->pc++;
  x->pc++;
  return r;
}

static uint64_t len_of(const gccl_op *x, int64_t chunk) {
  uint64_t n = x->part;
  if (x->plan->split) {
    uint64_t off = x->part * (uint64_t)chunk;
    n = off >= x->count ? 0 : x->count - off;
    if (n > x->part) n = x->part;
  }
  uint64_t from = (uint64_t)x->round * x->piece;
  n = from >= n ? 0 : n - from;
  return n < x->piece ? n : x->piece;
}

static inline uint64_t offset_of(const gccl_op *x, int64_t chunk) {
  return (x->part * (uint64_t)chunk + (uint64_t)x->round * x->piece) * x->esize;
}

static char *slot_at(const gccl_op *x, unsigned edge, char *area, uint32_t k) {
  const gccl_edge *e = gccl_lowered_edges(x->plan) + edge;
  return area + x->comm->geo.stage + (e->place + k % e->slots) * slot_bytes(x);
}

static char *slot_of(const gccl_op *x, unsigned edge, int out) {
  struct ncclComm *c = x->comm;
  const scratch *s = c->exec;
  const gccl_edge *e = gccl_lowered_edges(x->plan) + edge;
  return out ? slot_at(x, edge, c->peers[e->peer].area, s->sent[edge]) : slot_at(x, edge, c->self.area, s->consumed[edge]);
}

/* The slot of an edge that is waited for. */
static const char *coming(const gccl_op *x, unsigned edge) {
  const scratch *s = x->comm->exec;
  return slot_at(x, edge, x->comm->self.area, s->waited[edge]);
}

static char *eager_of(const gccl_op *x, int q, int64_t chunk) {
  struct ncclComm *c = x->comm;
  uint64_t off = x->part * (uint64_t)chunk * x->esize;
  if (x->send_kind == GCCL_BUF_INLINE) return (char *)gccl_record_of(c, q, x->seq)->u.data + off;
  return c->peers[q].area + c->geo.eager + (x->seq & (GCCL_RECORDS - 1)) * c->geo.eager_bytes + off;
}

/* Where this round's pieces begin in scratch. Rounds, of one operation and of the next, move on through it: a piece that a peer
 * has just read is in the peer's cache, and to write there again would take every line back from it. Not where ranks share CPUs:
 * there they share the cache too, and the fewer lines the better. */
static inline uint64_t turn_of(const gccl_op *x, uint64_t parts, uint64_t scratch) {
  uint64_t span = parts * x->piece * x->esize;
  return span <= scratch && !x->comm->crowded ? (x->seq + x->round) % (scratch / span) * span : 0;
}

static char *stage_of(const gccl_op *x, int q, int64_t chunk) {
  const gccl_geometry *g = &x->comm->geo;
  return x->comm->peers[q].area + g->stage + turn_of(x, x->plan->send_parts, g->stage_bytes) + (uint64_t)chunk * x->piece * x->esize;
}

static char *out_of(const gccl_op *x, int q) {
  const gccl_geometry *g = &x->comm->geo;
  return x->comm->peers[q].area + g->out + turn_of(x, 1, g->out_bytes);
}

static const char *source(const gccl_op *x, const gccl_ref *r, int q, int64_t chunk) {
  struct ncclComm *c = x->comm;
  switch (r->space) {
  case GCCL_SEND: {
    if (q == c->rank) return (const char *)x->send + offset_of(x, chunk);
    const gccl_record *rec = gccl_record_of(c, q, x->seq);
    if (rec->send_kind == GCCL_BUF_STAGED) return stage_of(x, q, chunk);
    return reached(c, q, rec->send_kind, rec->u.buf.send) + offset_of(x, chunk);
  }
  case GCCL_RECV:
    if (q == c->rank) return (const char *)x->recv + offset_of(x, chunk);
    return reached(c, q, gccl_record_of(c, q, x->seq)->recv_kind, gccl_record_of(c, q, x->seq)->u.buf.recv) + offset_of(x, chunk);
  case GCCL_STAGE: return stage_of(x, q, chunk);
  case GCCL_OUT: return out_of(x, q);
  case GCCL_EAGER: return eager_of(x, q, chunk);
  default: return slot_of(x, r->edge, 0);
  }
}

/* From here on a copy into a slot is worth leaving out. */
enum { DIRECT_BYTES = 4096 };

/* An op that copies this rank's send buffer into a slot of a rank that takes puts from any memory: the put takes it from there. */
static int put_from_buffer(gccl_op *x, const gccl_lop *op, uint64_t bytes) {
  struct ncclComm *c = x->comm;
  scratch *s = c->exec;
  const gccl_ref *to = &op->dst[0];
  if (!gccl_has_remote(c) || op->ndst != 1 || to->space != GCCL_SLOT || op->nsrc != 1 || op->src[0].space != GCCL_SEND || s->src[0].scaled)
    return 0;
  const gccl_edge *e = gccl_lowered_edges(x->plan) + to->edge;
  if (!gccl_is_remote(c, e->peer) || !c->port->anywhere[e->peer] || bytes < DIRECT_BYTES) return 0;
  if ((to->partial && x->asize != x->esize) || (op->flags & GCCL_FINAL && x->div)) return 0;
  s->source[to->edge] = s->src[0].ptr;
  return 1;
}

/* GCCL_DONE when all that is put from this rank's buffers has left them. */
static int buffers_left(gccl_op *x) {
  struct ncclComm *c = x->comm;
  const scratch *s = c->exec;
  const gccl_edge *e = gccl_lowered_edges(x->plan);
  for (uint32_t k = 0; k < x->plan->nedges; k++) {
    if (!s->direct[k] || gccl_load(&c->port->done[e[k].peer]) >= s->direct[k]) continue;
    x->blocked_on = e[k].peer;
    return GCCL_BLOCKED;
  }
  return GCCL_DONE;
}

/* Whether an op has to wait until the send buffer has left, which it overwrites. */
static inline int overwrites(const gccl_op *x, const gccl_lop *op) {
  if (!x->in_place) return 0;
  for (unsigned k = 0; k < op->ndst; k++)
    if (op->dst[k].space == GCCL_RECV) return 1;
  return 0;
}

static void run_reduce(gccl_op *x, const gccl_lop *op) {
  struct ncclComm *c = x->comm;
  scratch *s = c->exec;
  uint64_t n = len_of(x, at(&op->dst[0].chunk, x->i, 0));
  if (n == 0) return;
  int nsrc = 0, ndst = 0, convert = 0, out_used = 0;
  int fold = op->flags & GCCL_FOLD;
  for (unsigned k = 0; k < op->nsrc; k++) {
    const gccl_ref *r = &op->src[k];
    for (uint32_t j = 0; j < r->count; j++) {
      int q = (int)at(&r->rank, x->i, j);
      gccl_reduce_src *d = &s->src[nsrc++];
      d->ptr = source(x, r, q, at(&r->chunk, x->i, j));
      d->partial = r->partial;
      d->scaled = 0;
      convert |= r->partial;
      if (fold && x->scaled && !r->partial && r->space != GCCL_SLOT) {
        d->scaled = 1;
        if (q == c->rank || x->red == GCCL_RED_AVG)
          d->scale = x->scale;
        else
          d->scale.u64 = gccl_call_of(c, q, x->seq)->scale;
      }
    }
  }
  for (unsigned k = 0; k < op->ndst; k++) {
    const gccl_ref *r = &op->dst[k];
    for (uint32_t j = 0; j < r->count; j++) {
      int q = (int)at(&r->rank, x->i, j);
      int64_t chunk = at(&r->chunk, x->i, j);
      gccl_reduce_dst *d = &s->dst[ndst];
      d->partial = r->partial;
      convert |= r->partial;
      d->stream = x->stream;
      switch (r->space) {
      case GCCL_RECV: {
        if (q == c->rank) {
          d->ptr = (char *)x->recv + offset_of(x, chunk);
          break;
        }
        const gccl_record *rec = gccl_record_of(c, q, x->seq);
        if (rec->recv_kind == GCCL_BUF_STAGED) {
          if (out_used) continue;
          out_used = 1;
          d->ptr = out_of(x, c->rank);
          d->stream = 0;
        } else {
          d->ptr = reached(c, q, rec->recv_kind, rec->u.buf.recv) + offset_of(x, chunk);
        }
        break;
      }
      case GCCL_STAGE:
        d->ptr = stage_of(x, q, chunk);
        d->stream = 0;
        break;
      case GCCL_OUT:
        d->ptr = out_of(x, c->rank);
        d->stream = 0;
        break;
      case GCCL_EAGER: d->ptr = eager_of(x, q, chunk); break;
      default:
        d->ptr = slot_of(x, r->edge, 1);
        d->stream = 0;
        s->filled[r->edge] = n * (r->partial ? x->asize : x->esize);
        break;
      }
      ndst++;
    }
  }
  if (put_from_buffer(x, op, n * x->esize)) return;
  if (!fold && !convert) {
    for (int k = 0; k < ndst; k++)
      if (s->dst[k].ptr != s->src[0].ptr) gccl_copy(c->simd, s->dst[k].ptr, s->src[0].ptr, n * x->esize, s->dst[k].stream);
    return;
  }
  gccl_reduce(c->simd, x->dtype, x->fold, s->dst, ndst, s->src, nsrc, n, op->flags & GCCL_FINAL ? x->div : 0);
}

static void publish(gccl_op *x) {
  struct ncclComm *c = x->comm;
  gccl_record *r = gccl_record_of(c, c->rank, x->seq);
  const gccl_lowered *p = x->plan;
  if (!p->eager) {
    uint64_t send = 0, recv = 0;
    if (p->needs & GCCL_NEEDS_SEND) x->send_kind = gccl_reach(c, x->send, x->part * p->send_parts * x->esize, &send);
    if (p->needs & GCCL_NEEDS_RECV) x->recv_kind = gccl_reach(c, x->recv, x->part * p->recv_parts * x->esize, &recv);
    r->u.buf.send = send;
    r->u.buf.recv = recv;
    x->staged_any |= x->send_kind == GCCL_BUF_STAGED || x->recv_kind == GCCL_BUF_STAGED;
  }
  gccl_record_fill(r, x);
  gccl_store(&r->seq, x->seq); /* acquired in record_seen */
  x->published = 1;
  gccl_sample(x);
  gccl_wake(c);
  if (gccl_has_remote(c)) gccl_remote_record(x);
}

int gccl_call_mismatch(const gccl_op *x, int q) {
  struct ncclComm *c = x->comm;
  const gccl_call *r = gccl_call_of(c, q, x->seq);
  gccl_comm_latch(c, GCCL_RC_USAGE,
                  "ranks disagree on operation %llu: rank %d calls %s of %llu %s (op %s, root %d), rank %d calls %s of %llu %s (op "
                  "%s, root %d): every rank must issue the same calls in the same order",
                  (unsigned long long)x->seq, c->rank, gccl_coll_names[x->coll], (unsigned long long)x->count, gccl_type_names[x->dtype],
                  gccl_red_names[x->red], x->root, q, r->coll < 9 ? gccl_coll_names[r->coll] : "?", (unsigned long long)r->count,
                  r->dtype < 12 ? gccl_type_names[r->dtype] : "?", r->op < 6 ? gccl_red_names[r->op] : "?", r->root);
  return GCCL_RC_USAGE;
}

/* GCCL_DONE once rank q's record of this operation is visible. */
static inline int record_seen(gccl_op *x, int q) {
  const gccl_record *r = gccl_record_of(x->comm, q, x->seq);
  if (gccl_load(&r->seq) != x->seq) return GCCL_BLOCKED;
  if (__builtin_expect(r->hash != x->hash, 0)) return gccl_call_mismatch(x, q);
  x->staged_any |= r->send_kind == GCCL_BUF_STAGED || r->recv_kind == GCCL_BUF_STAGED;
  return GCCL_DONE;
}

static inline int step_reached(gccl_op *x, int q, uint32_t step) {
  if (step <= 1) return record_seen(x, q);
  return gccl_load(&gccl_area_of(x->comm, q)->progress) >= (x->seq << GCCL_STEP_BITS | step) ? GCCL_DONE : GCCL_BLOCKED;
}

static int wait_step(gccl_op *x, const gccl_lop *op) {
  struct ncclComm *c = x->comm;
  uint32_t step = x->round * x->plan->steps + op->step;
  if (!(op->flags & GCCL_ALL_PEERS)) {
    int q = (int)at(&op->peer, x->i, 0), r = q == c->rank ? GCCL_DONE : step_reached(x, q, step);
    x->blocked_on = q;
    return r;
  }
  for (; x->at < c->nranks; x->at++) {
    if (x->at == c->rank) continue;
    int r = step_reached(x, x->at, step);
    if (r != GCCL_DONE) {
      x->blocked_on = x->at;
      return r;
    }
  }
  x->at = 0;
  if (step == 1 && !x->plan->eager && !x->plan->nedges) { /* all records are known: so is the number of rounds */
    if (!x->staged_any) x->piece = x->part;
    if (!x->staged_any && !gccl_flow_has(x, x->part)) return GCCL_BLOCKED;
    x->rounds = x->piece ? (uint32_t)((x->part + x->piece - 1) / x->piece) : 1;
    if (x->rounds == 0) x->rounds = 1;
    if (!countable(x)) return GCCL_RC_ARGUMENT;
    if (x->staged_any) c->staged_seq = x->seq;
  }
  return GCCL_DONE;
}

static gccl_edge_words *words_of(const gccl_op *x, const gccl_edge *e) {
  struct ncclComm *c = x->comm;
  return (gccl_edge_words *)((e->out ? c->peers[e->peer].area : c->self.area) + c->geo.edges) + e->index;
}

static int wait_edge(gccl_op *x, const gccl_lop *op) {
  scratch *s = x->comm->exec;
  const gccl_edge *e = gccl_lowered_edges(x->plan) + op->edge;
  gccl_edge_words *w = words_of(x, e);
  x->blocked_on = e->peer;
  if (op->sync == GCCL_SYNC_DATA) {
    if (gccl_load(&w->data) < (x->seq << GCCL_STEP_BITS | (s->waited[op->edge] + 1))) return GCCL_BLOCKED;
    s->waited[op->edge]++;
    return GCCL_DONE;
  }
  uint32_t sent = s->sent[op->edge];
  if (sent < e->slots) return GCCL_DONE;
  return gccl_load(&w->credit) >= (x->seq << GCCL_STEP_BITS | (sent + 1 - e->slots)) ? GCCL_DONE : GCCL_BLOCKED;
}

/* The far end of an edge is on another host: the slot goes there with the count of data, or the count of credits. */
static void signal_remote(gccl_op *x, const gccl_edge *e, unsigned edge, int data, uint64_t value) {
  struct ncclComm *c = x->comm;
  scratch *s = c->exec;
  uint64_t word = c->geo.edges + e->index * sizeof(gccl_edge_words);
  if (data) {
    const char *slot = slot_of(x, edge, 1), *from = s->source[edge];
    gccl_remote_put(c, e->peer, GCCL_AT_AREA, 0, (uint64_t)(slot - c->peers[e->peer].area), from ? from : slot, s->filled[edge],
                    GCCL_AT_AREA, word + offsetof(gccl_edge_words, data), value, from ? GCCL_CMD_TRACKED : 0);
    if (from) s->direct[edge] = ++c->puts_tracked[e->peer];
    s->source[edge] = NULL;
    s->filled[edge] = 0;
    gccl_port_help(c);
  } else if (s->consumed[edge] + 1 + e->slots <= s->total[edge]) {
    /* The sender waits for it; those of the last slots nobody does. It leaves with the next data, or when this rank waits. */
    gccl_remote_raise(c, e->peer, GCCL_AT_MIRROR, word + offsetof(gccl_edge_words, credit), value);
  }
}

static void signal_op(gccl_op *x, const gccl_lop *op) {
  struct ncclComm *c = x->comm;
  if (op->sync == GCCL_SYNC_STEP) {
    uint32_t step = x->round * x->plan->steps + op->step;
    if (!x->published) publish(x);
    if (step > 1) {
      gccl_store(&((gccl_area *)c->self.area)->progress, x->seq << GCCL_STEP_BITS | step);
      gccl_wake(c);
    }
    return;
  }
  scratch *s = c->exec;
  const gccl_edge *e = gccl_lowered_edges(x->plan) + op->edge;
  gccl_edge_words *w = words_of(x, e);
  int data = op->sync == GCCL_SYNC_DATA;
  uint64_t value = x->seq << GCCL_STEP_BITS | ((data ? s->sent : s->consumed)[op->edge] + 1);
  gccl_store(data ? &w->data : &w->credit, value);
  gccl_wake(c);
  if (gccl_is_remote(c, e->peer)) signal_remote(x, e, op->edge, data, value);
  (data ? s->sent : s->consumed)[op->edge]++;
}

/* All peers must have finished operation `need` before this rank reuses its record slot or its scratch. */
static int guard(gccl_op *x) {
  struct ncclComm *c = x->comm;
  uint64_t need = x->seq > GCCL_RECORDS ? x->seq - GCCL_RECORDS : 0;
  if (!x->plan->eager && c->staged_seq > need) need = c->staged_seq;
  if (c->done_seen >= need) return GCCL_DONE;
  uint64_t least = UINT64_MAX;
  for (int q = 0; q < c->nranks; q++) {
    if (q == c->rank) continue;
    uint64_t p = gccl_load(&gccl_area_of(c, q)->progress) >> GCCL_STEP_BITS;
    if (p < need + 1) {
      x->blocked_on = q;
      return GCCL_BLOCKED;
    }
    if (p - 1 < least) least = p - 1;
  }
  c->done_seen = least;
  return GCCL_DONE;
}

/* Slots need no guard at the next operation: what was put into them has been taken when this one ends, and nobody fills
 * them again before it has seen this rank's next record. */
static int edges_ready(gccl_op *x) {
  const gccl_edge *e = gccl_lowered_edges(x->plan);
  for (; x->at < (int)x->plan->nedges; x->at++) {
    int r = record_seen(x, e[x->at].peer);
    x->blocked_on = e[x->at].peer;
    if (r != GCCL_DONE) return r;
  }
  x->at = 0;
  return GCCL_DONE;
}

/* Whether peers read the send buffer itself, at any time once they have the record. */
static int peers_read(const gccl_op *x) {
  uint64_t addr;
  if (x->plan->eager || !(x->plan->needs & GCCL_NEEDS_SEND)) return 0;
  return gccl_reach(x->comm, x->send, x->part * x->plan->send_parts * x->esize, &addr) != GCCL_BUF_STAGED;
}

static inline int applies(const gccl_op *x, const gccl_lop *op) {
  if (op->when == GCCL_ALWAYS) return 1;
  uint64_t addr;
  if (op->when == GCCL_SEND_STAGED) return gccl_reach(x->comm, x->send, x->part * x->plan->send_parts * x->esize, &addr) == GCCL_BUF_STAGED;
  return x->recv_kind == GCCL_BUF_STAGED;
}

/* Somebody follows this operation: tells once that an op of the plan begins. */
static void tell_step(gccl_op *x, const gccl_lop *op) {
  if (x->stepped || op->kind == GCCL_OP_LOOP || op->kind == GCCL_OP_END || !applies(x, op)) return;
  int32_t peer = -1;
  if (op->kind == GCCL_OP_SIGNAL || op->kind == GCCL_OP_WAIT) {
    if (op->sync != GCCL_SYNC_STEP)
      peer = gccl_lowered_edges(x->plan)[op->edge].peer;
    else if (op->kind == GCCL_OP_WAIT && !(op->flags & GCCL_ALL_PEERS))
      peer = (int32_t)at(&op->peer, x->i, 0);
  }
  x->stepped = 1;
  gccl_probe_step(x, op->kind, op, peer, op->kind == GCCL_OP_WAIT && op->sync == GCCL_SYNC_DATA ? coming(x, op->edge) : NULL);
}

/* A wait before the plan's ops. */
static int tell_wait(gccl_op *x, unsigned what, int r) {
  if (gccl_probed(x->comm)) {
    if (r == GCCL_BLOCKED && !x->stepped) gccl_probe_step(x, what, NULL, x->blocked_on, NULL);
    x->stepped = r == GCCL_BLOCKED;
  }
  return r;
}

int gccl_coll_step(gccl_op *x) {
  struct ncclComm *c = x->comm;
  const gccl_lowered *p = x->plan;
  const gccl_lop *ops = gccl_lowered_ops(p);
  int r;
  if (x->phase == PH_GUARD) {
    if ((r = tell_wait(x, GCCL_WAIT_GUARD, guard(x))) != GCCL_DONE) return r;
    if (x->flow && peers_read(x) && !gccl_flow_has(x, x->part)) return GCCL_BLOCKED;
    x->phase = PH_RUN;
    if (p->nedges) {
      publish(x);
      x->phase = PH_EDGES;
    }
  }
  if (x->phase == PH_EDGES) {
    if ((r = tell_wait(x, GCCL_WAIT_PEERS, edges_ready(x))) != GCCL_DONE) return r;
    x->phase = PH_RUN;
  }
  const int edges = p->nedges && gccl_has_remote(c);
  for (;;) {
    if (x->pc == p->nops) {
      if (edges && x->round + 1 == x->rounds && (r = buffers_left(x)) != GCCL_DONE) return r;
      if (x->flow) x->flow->made(x->flow, c, (x->round + 1) * x->piece);
      if (++x->round >= x->rounds) break;
      x->pc = 0;
    }
    if (x->pc == 0 && !gccl_flow_has(x, (x->round + 1) * x->piece)) return GCCL_BLOCKED; /* all that a round reads of this rank's */
    const gccl_lop *op = &ops[x->pc];
    if (gccl_probed(c)) tell_step(x, op);
    switch (op->kind) {
    case GCCL_OP_REDUCE:
      if (edges && overwrites(x, op) && (r = buffers_left(x)) != GCCL_DONE) return r;
      if (applies(x, op)) run_reduce(x, op);
      break;
    case GCCL_OP_SIGNAL:
      if (applies(x, op)) signal_op(x, op);
      break;
    case GCCL_OP_WAIT:
      if (!applies(x, op)) break;
      r = op->sync == GCCL_SYNC_STEP ? wait_step(x, op) : wait_edge(x, op);
      if (r != GCCL_DONE) return r;
      x->moved = 1;
      break;
    case GCCL_OP_LOOP:
      x->i = 0;
      if (op->n == 0) x->pc = op->jump;
      break;
    case GCCL_OP_END:
      if (++x->i < ops[op->jump].n)
        x->pc = op->jump;
      else
        x->i = 0;
      break;
    default:
      gccl_comm_latch(c, GCCL_RC_INTERNAL, "rank %d: plan %s has an operation that the host executor cannot run (kind %d)", c->rank,
                      p->method, op->kind);
      return GCCL_RC_INTERNAL;
    }
    x->pc++;
    x->stepped = 0;
  }
  gccl_store(&((gccl_area *)c->self.area)->progress, (x->seq + 1) << GCCL_STEP_BITS);
  gccl_wake(c);
  if (gccl_has_remote(c)) gccl_remote_done(c, x->seq);
  return GCCL_DONE;
}
