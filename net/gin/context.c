/* The backend `proxy`: rings of descriptors, one for each context and peer.
 *
 * A producer claims an index (pis), waits until the ring has room (cis), and stores the words of its descriptor in any order.
 * The consumer takes descriptors in the order of indices, clears the words, and stores cis when they have completed. Many
 * producers may share a ring.
 */
#include <stdlib.h>

#include "gin.h"

enum {
  BATCH = 64, /* descriptors of a ring taken in one turn, with one completion */
  AHEAD = 8   /* slots that are fetched before their turn: each comes from the cache of its producer */
};

static char *ring_of(const gin_context *x, int32_t peer) { return x->rings + (uint64_t)(uint32_t)peer * x->depth * gfd_bytes(x->format); }

/* A context stands in the slot of its number, or behind it where others are. */
gin_context *gin_context_new(gin *g, int *slot) {
  if (g->opened >> 24) return NULL; /* numbers are used up */
  for (uint32_t k = 0; k < GIN_CONTEXTS; k++) {
    gin_context *x = &g->context[(g->opened + k) % GIN_CONTEXTS];
    if (x->used) continue;
    x->used = 1;
    x->number = g->opened++;
    *slot = (int)(x - g->context);
    return x;
  }
  return NULL;
}

gin_context *gin_context_of(gin *g, uint32_t number) {
  for (uint32_t k = 0; k < GIN_CONTEXTS; k++) {
    gin_context *x = &g->context[(number + k) % GIN_CONTEXTS];
    if (x->used && x->number == number) return x;
  }
  return NULL;
}

int gin_context_open(gin *g, int format, uint32_t nsignals, uint32_t ncounters, uint32_t depth) {
  int i;
  gin_context *x = depth == 0 || depth & (depth - 1) ? NULL : gin_context_new(g, &i);
  if (!x) return -1;
  size_t n = (size_t)g->nranks;
  x->format = (uint8_t)format;
  x->nsignals = nsignals;
  x->ncounters = ncounters;
  x->depth = depth;
  x->rings = gin_alloc(g, n * depth * gfd_bytes(format));
  x->signals = gin_alloc(g, (nsignals + 1) * sizeof *x->signals);
  x->counters = gin_alloc(g, (ncounters + 1) * sizeof *x->counters);
  x->pis = gin_alloc(g, n * sizeof *x->pis);
  x->cis = gin_alloc(g, n * sizeof *x->cis);
  x->seen = calloc(n, sizeof *x->seen);
  x->counter = calloc(n * depth, sizeof *x->counter);
  if (!x->rings || !x->signals || !x->counters || !x->pis || !x->cis || !x->seen || !x->counter) {
    gin_context_close(g, i);
    return -1;
  }
  return i;
}

void gin_context_close(gin *g, int context) {
  gin_context *x = &g->context[context];
  x->used = 0;
  if (x->by) x->by->close(g, x);
  free(x->queue);
  free(x->signal_rkeys);
  gin_give(g, x->rings);
  gin_give(g, x->signals);
  gin_give(g, x->counters);
  gin_give(g, x->pis);
  gin_give(g, x->cis);
  free(x->seen);
  free(x->counter);
  free(x->told);
  memset(x, 0, sizeof *x);
}

void gin_context_start(gin *g, int context, uint32_t index) {
  gin_context *x = &g->context[context];
  for (int32_t q = 0; q < g->nranks; q++) {
    if (x->qp)
      gin_nic_start(&x->qp[q], index);
    else
      x->pis[q] = x->cis[q] = x->seen[q] = index;
  }
}

/* ---- Producing ---- */

uint64_t gin_context_post(gin *g, int context, int32_t peer, const gfd *d, const uint32_t *abort) {
  gin_context *x = &g->context[context];
  uint64_t words[GFD_WORDS_MAX];
  if (!gfd_encode(x->format, d, words)) return 0;
  uint32_t at = __atomic_fetch_add(&x->pis[peer], 1, __ATOMIC_RELAXED);
  while (at - __atomic_load_n(&x->cis[peer], __ATOMIC_ACQUIRE) >= x->depth) /* acquire: the slot has been cleared */
    if (abort && __atomic_load_n(abort, __ATOMIC_RELAXED)) return 0;
  uint64_t *slot = (uint64_t *)(ring_of(x, peer) + (uint64_t)(at & (x->depth - 1)) * gfd_bytes(x->format));
  for (uint32_t i = gfd_words(x->format); i-- > 0;) __atomic_store_n(&slot[i], words[i], __ATOMIC_RELEASE); /* acquired in take */
  gin_rouse(g);
  return (uint64_t)at + 1;
}

int gin_context_reached(gin *g, int context, int32_t peer, uint32_t next) {
  return (int32_t)(__atomic_load_n(&g->context[context].cis[peer], __ATOMIC_ACQUIRE) - next) >= 0;
}

/* ---- Taking ---- */

/* Copies a descriptor out of its slot and clears the slot; 0 if not all of it is there yet. */
static int take(char *slot, int format, uint64_t *words) {
  uint64_t *w = (uint64_t *)slot;
  uint32_t n = gfd_words(format);
  for (uint32_t i = 0; i < n; i++) {
    words[i] = __atomic_load_n(&w[i], __ATOMIC_ACQUIRE); /* what the producer stored before the word is visible */
    if (!(words[i] & 1)) return 0;
  }
  for (uint32_t i = 0; i < n; i++) __atomic_store_n(&w[i], 0, __ATOMIC_RELAXED); /* before cis, which frees the slot */
  return 1;
}

static const char *issue(gin *g, gin_context *x, gin_peer *p, const gfd *d);

/* Raises the counters of descriptors up to index `to` and frees their slots. */
static void complete(gin_context *x, int32_t peer, uint32_t to) {
  uint32_t *counter = x->counter + (uint64_t)(uint32_t)peer * x->depth;
  for (uint32_t i = x->cis[peer]; i != to; i++) {
    uint32_t k = counter[i & (x->depth - 1)];
    if (k) __atomic_store_n(&x->counters[k - 1], x->counters[k - 1] + 1, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&x->cis[peer], to, __ATOMIC_RELEASE); /* acquired by producers */
}

void gin_context_done(gin *g, gin_peer *p, uint64_t cookie) {
  gin_context *x = gin_context_of(g, gin_cookie_context(cookie));
  if (x) complete(x, p->rank, (uint32_t)cookie);
}

static int serve_ring(gin *g, gin_context *x, gin_peer *p) {
  char *ring = ring_of(x, p->rank);
  uint32_t from = x->seen[p->rank], bytes = gfd_bytes(x->format);
  uint64_t words[GFD_WORDS_MAX];
  gfd d;
  int local = gin_at_once(g, p->rank);
  if (p->faulted && from != x->cis[p->rank]) complete(x, p->rank, from); /* nothing completes any more */
  for (uint32_t n = 0; n < BATCH && (local || p->faulted || gin_room(g, p, 3)); n++) {
    uint32_t at = x->seen[p->rank] & (x->depth - 1);
    const char *next = ring + (uint64_t)((at + AHEAD) & (x->depth - 1)) * bytes;
    __builtin_prefetch(next, 1); /* to write: taking a descriptor clears it */
    if (bytes > GCCL_LINE) __builtin_prefetch(next + GCCL_LINE, 1);
    if (x->seen[p->rank] - x->cis[p->rank] == x->depth || !take(ring + (uint64_t)at * bytes, x->format, words)) break;
    const char *wrong = gfd_decode(x->format, words, &d);
    if (!wrong && d.op & GCCL_GFD_COUNTER && d.counter >= x->ncounters) wrong = "it has a counter that its context does not have";
    x->counter[(uint64_t)(uint32_t)p->rank * x->depth + at] = !wrong && d.op & GCCL_GFD_COUNTER ? d.counter + 1 : 0;
    if (!wrong && !p->faulted) wrong = issue(g, x, p, &d);
    if (wrong)
      gccl_net_fail(&g->fault, GCCL_NET_EINVAL, "rank %d: descriptor %u to rank %d in context %u cannot be obeyed: %s", g->rank,
                    x->seen[p->rank], p->rank, x->number, wrong);
    x->seen[p->rank]++;
  }
  uint32_t now = x->seen[p->rank];
  if (now == from) return 0;
  if (local || p->faulted) {
    complete(x, p->rank, now);
  } else { /* the last work request of the batch stands for all: completions come in the order of posting */
    gccl_net_wr *last = p->nwork ? &p->work[p->first + p->nwork - 1] : NULL;
    if (!last || last->flags & GCCL_NET_SIGNALED) last = gin_work(g, p, GCCL_NET_FLUSH); /* room: a descriptor takes two of three */
    last->flags |= GCCL_NET_SIGNALED;
    last->cookie = gin_cookie(GIN_COOKIE_CONTEXT, x->number, now);
  }
  return 1;
}

int gin_context_serve(gin *g) {
  int moved = 0;
  for (unsigned i = 0; i < GIN_CONTEXTS; i++) {
    gin_context *x = &g->context[i];
    if (!x->used) continue;
    int32_t first = x->qp ? gin_nic_first(g) : 0; /* the software NIC may be told to take its queues in any order */
    for (int32_t k = 0; k < g->nranks; k++) {
      int32_t q = k + first < g->nranks ? k + first : k + first - g->nranks;
      if (x->by)
        moved |= x->by->serve(g, x, q);
      else if (gin_reached(g, &g->peer[q]))
        moved |= serve_ring(g, x, &g->peer[q]);
    }
  }
  return moved;
}

/* Looks at the ring, because kernels on a device have their indices there. A descriptor that was claimed and has not begun to come is not seen. */
int gin_context_pending(const gin_context *x, int32_t peer) {
  const char *slot = ring_of(x, peer) + (uint64_t)(x->seen[peer] & (x->depth - 1)) * gfd_bytes(x->format);
  return x->seen[peer] != x->cis[peer] || __atomic_load_n((const uint64_t *)slot, __ATOMIC_ACQUIRE) & 1;
}

int gin_context_busy(gin *g) {
  if (g->ndirty || g->owing || g->adds.n) return 1;
  for (int32_t r = 0; g->mover && r < g->nranks; r++)
    if (gin_lane_busy(&g->peer[r])) return 1;
  for (unsigned i = 0; i < GIN_CONTEXTS; i++) {
    const gin_context *x = &g->context[i];
    for (int32_t r = 0; x->used && r < g->nranks; r++)
      if (x->by ? x->by->busy(x, r) : gin_context_pending(x, r)) return 1;
  }
  return 0;
}

/* ---- Executing ---- */

void gin_context_signal(gin *g, gin_peer *p, const gccl_msg_signal *m) {
  gin_context *x = gin_context_of(g, m->context);
  if (x && m->off < x->nsignals)
    gin_signal(&x->signals[m->off], m->head.op, m->value);
  else if (x || !gin_context_was(g, m->context)) /* one for a context that this rank has closed comes late, and matters to nobody */
    gin_peer_failed(g, p, "a signal that this rank's context does not have");
}

/* A peer's part of a window, or this rank's own, for the range of an operation. */
static char *own_range(gin *g, uint64_t window, uint64_t off, uint64_t bytes) {
  gin_window *w = window <= UINT32_MAX ? gin_window_of(g, (uint32_t)window) : NULL;
  return w && gccl_net_within(w->local.bytes, off, bytes) ? w->local.base + off : NULL;
}

static const gccl_net_rmr *peer_range(gin *g, gin_peer *p, uint64_t window, uint64_t off, uint64_t bytes) {
  gin_window *w = window <= UINT32_MAX ? gin_window_of(g, (uint32_t)window) : NULL;
  return w && gccl_net_within(w->remote[p->rank].bytes, off, bytes) ? &w->remote[p->rank] : NULL;
}

/* To this rank itself: at once. */
static const char *issue_local(gin *g, gin_context *x, const gfd *d) {
  char *dst = NULL;
  if (d->op & (GCCL_GFD_PUT | GCCL_GFD_GET) && d->bytes) {
    dst = own_range(g, d->dst_window, d->dst_off, d->bytes);
    if (!dst) return "its destination is in no window";
    if (d->op & GCCL_GFD_INLINE) {
      memcpy(dst, &d->value, d->bytes);
    } else {
      const char *src = own_range(g, d->src_window, d->src_off, d->bytes);
      if (!src) return "its source is in no window";
      memmove(dst, src, d->bytes);
    }
  }
  if (!(d->op & (GCCL_GFD_SIGNAL_INC | GCCL_GFD_SIGNAL_ADD))) return NULL;
  uint64_t *word;
  if (d->op & GCCL_GFD_VA_SIGNAL)
    word = d->signal_off % 8 ? NULL : (uint64_t *)own_range(g, d->signal_window, d->signal_off, 8);
  else
    word = d->signal < x->nsignals ? &x->signals[d->signal] : NULL;
  if (!word) return "its signal does not exist";
  gin_signal(word, GCCL_SIGNAL_ADD, d->signal_value);
  return NULL;
}

/* Stores the sum of what this rank has signalled behind all before it, where the peer's kernels look: nobody else writes that word, so it needs no
 * agent there. */
static const char *tell(gin *g, gin_context *x, gin_peer *p, const gfd *d) {
  uint64_t at = (uint64_t)(uint32_t)g->rank * x->nsignals + d->signal,
           *sum = &x->told[(uint64_t)(uint32_t)p->rank * x->nsignals + d->signal];
  const gccl_net_rmr *r = peer_range(g, p, x->told_window, x->told_off + at * sizeof *sum, sizeof *sum);
  if (!r) return "its signals have no place at the peer";
  *sum += d->signal_value;
  uint64_t off = x->told_off + at * sizeof *sum;
  gccl_net_wr *last = p->nwork ? &p->work[p->first + p->nwork - 1] : NULL;
  if (last && last->op == GCCL_NET_PUT_INLINE && last->remote == r && last->roff == off && last->bytes == sizeof *sum) {
    memcpy(last->data, sum, sizeof *sum); /* nothing is between the two, so one word stands for both */
    return NULL;
  }
  gccl_net_wr *w = gin_work(g, p, GCCL_NET_PUT_INLINE);
  w->remote = r;
  w->roff = off;
  w->bytes = sizeof *sum;
  memcpy(w->data, sum, sizeof *sum);
  return NULL;
}

static const char *issue(gin *g, gin_context *x, gin_peer *p, const gfd *d) {
  if (gin_at_once(g, p->rank)) return issue_local(g, x, d);
  if (d->op & GCCL_GFD_FLUSH) {
    gin_work(g, p, GCCL_NET_FLUSH);
    return NULL;
  }
  if (d->op & GCCL_GFD_GET) {
    const char *dst = own_range(g, d->dst_window, d->dst_off, d->bytes);
    const gccl_net_rmr *r = peer_range(g, p, d->src_window, d->src_off, d->bytes);
    if (!dst) return "its destination is in no window";
    if (!r) return "its source is in no window of the peer";
    gccl_net_wr *w = gin_work(g, p, GCCL_NET_GET);
    w->remote = r;
    w->roff = d->src_off;
    gin_local(g, p, w, dst, d->bytes);
    return NULL;
  }
  if (d->op & GCCL_GFD_PUT && d->bytes) {
    const gccl_net_rmr *r = peer_range(g, p, d->dst_window, d->dst_off, d->bytes);
    if (!r) return "its destination is in no window of the peer";
    if (d->op & GCCL_GFD_INLINE) {
      gccl_net_wr *w = gin_work(g, p, GCCL_NET_PUT_INLINE);
      w->remote = r;
      w->roff = d->dst_off;
      w->bytes = d->bytes;
      memcpy(w->data, &d->value, d->bytes);
    } else {
      const char *src = own_range(g, d->src_window, d->src_off, d->bytes);
      if (!src) return "its source is in no window";
      gccl_net_wr *w = gin_work(g, p, GCCL_NET_PUT);
      w->remote = r;
      w->roff = d->dst_off;
      gin_local(g, p, w, src, d->bytes);
    }
  }
  if (!(d->op & (GCCL_GFD_SIGNAL_INC | GCCL_GFD_SIGNAL_ADD))) return NULL;
  gccl_msg_signal m = {.head = {.kind = GCCL_MSG_SIGNAL, .op = GCCL_SIGNAL_ADD}, .value = d->signal_value, .context = x->number};
  if (d->op & GCCL_GFD_VA_SIGNAL) {
    if (d->signal_off % 8 || !peer_range(g, p, d->signal_window, d->signal_off, 8)) return "its signal is in no window of the peer";
    m.head.place = GCCL_AT_WINDOW;
    m.window = (uint32_t)d->signal_window;
    m.off = d->signal_off;
  } else {
    if (d->signal >= x->nsignals) return "it has a signal that its context does not have";
    if (x->told) return tell(g, x, p, d);
    m.head.place = GCCL_AT_SIGNAL;
    m.off = d->signal;
  }
  gin_message(g, p, &m, sizeof m, !d->strong && d->op & GCCL_GFD_PUT && d->bytes);
  return NULL;
}
