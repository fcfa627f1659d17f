/* Contexts for a device communicator: opened together, and described to its kernels in one block of memory. */
#include <stdlib.h>

#include "gin.h"

/* Takes room in the block, on a line of its own; with NULL for the block only counts. Where kernels run on a device the block is made here and copied
 * there; it holds what kernels alone change, too: a look at it costs them a microsecond less than one at the host's memory. */
typedef struct {
  char *base, *seen; /* seen: where kernels see it */
  size_t used;
} block;

static void *take(block *b, size_t n, size_t size) {
  void *at = b->base ? b->base + b->used : NULL;
  b->used += gccl_align(n * size, 2 * GCCL_LINE);
  return at;
}

/* Where kernels see what was taken. */
static void *seen(const block *b, void *at) { return b->base ? b->seen + ((char *)at - b->base) : NULL; }

static void describe_proxy(gin *g, const gin_want *want, const gin_device *d, block *b) {
  size_t n = (size_t)g->nranks;
  char *out = take(b, (size_t)d->n, want->context_bytes);
  for (int i = 0; i < d->n; i++) {
    const gin_context *x = &g->context[d->first[i]];
    uint64_t *offsets = take(b, x->nsignals + 1, sizeof *offsets);
    uint32_t *issued = take(b, n, sizeof *issued), *visible = take(b, n, sizeof *visible);
    uint32_t *known = take(b, n, sizeof *known);
    uint32_t *pis = g->mover ? take(b, n, sizeof *pis) : NULL;
    if (!b->base) continue;
    const gin_window *told = x->told ? gin_window_of(g, x->told_window) : NULL;
    gccl_proxy_context c = {.nranks = g->nranks,
                            .queue_size = x->depth,
                            .queues = (uint64_t *)x->rings,
                            .pis = g->mover ? seen(b, pis) : x->pis,
                            .cis = x->cis,
                            .counters = x->counters,
                            .signals = x->signals,
                            .signal_offsets = seen(b, offsets),
                            .last_issued_get = seen(b, issued),
                            .last_visible_get = seen(b, visible),
                            .seen = seen(b, known),
                            .told = told ? (uint64_t *)(told->local.base + x->told_off) : NULL,
                            .nsignals = x->nsignals};
    memcpy(out + (size_t)i * want->context_bytes, &c, want->context_bytes);
  }
}

static void describe_queues(gin *g, const gin_want *want, const gin_device *d, block *b) {
  (void)want;
  size_t n = (size_t)g->nranks;
  gccl_gdaki_context *out = take(b, (size_t)d->n, sizeof *out);
  for (int i = 0; i < d->n; i++) {
    gin_context *x = &g->context[d->first[i]];
    uint64_t *offsets = take(b, x->nsignals + 1, sizeof *offsets);
    uint32_t *rkeys = take(b, n, sizeof *rkeys);
    gccl_gdaki_qp *qp = take(b, n, sizeof *qp);
    uint64_t *counters = g->mover ? take(b, x->ncounters + 1, sizeof *counters) : NULL; /* kernels raise them, when they see completions */
    if (b->base)
      out[i] = (gccl_gdaki_context){.version = GCCL_GDAKI_VERSION,
                                    .size = sizeof *out,
                                    .nranks = g->nranks,
                                    .nsignals = x->nsignals,
                                    .ncounters = x->ncounters,
                                    .sink_lkey = x->sink_lkey,
                                    .qp = seen(b, qp),
                                    .signal_rkeys = seen(b, rkeys),
                                    .signals = x->signals,
                                    .signal_offsets = seen(b, offsets),
                                    .counters = g->mover ? seen(b, counters) : x->counters};
    for (size_t r = 0; r < n; r++) {
      uint32_t *counter = take(b, x->queue[r]->depth, sizeof *counter);
      if (!b->base) continue;
      const gccl_sendq *q = x->queue[r];
      rkeys[r] = x->signal_rkeys[r];
      qp[r] = (gccl_gdaki_qp){.sq = q->sq,
                              .dbrec = q->dbrec,
                              .cq_dbrec = q->cq_dbrec,
                              .doorbell = q->doorbell,
                              .cq = q->cq,
                              .depth = q->depth,
                              .cq_depth = q->cq_depth,
                              .qpn = q->qpn,
                              .counter = seen(b, counter)};
    }
    if (b->base && !g->mover) x->shown = qp;
  }
}

int gin_device_idle(gin *g, const gin_device *d) {
  for (int i = 0; i < d->n; i++) {
    const gin_context *x = &g->context[d->first[i]];
    for (int32_t r = 0; r < g->nranks; r++) {
      if (x->by ? !x->by->done(x, r) : gin_context_pending(x, r)) return 0;
    }
  }
  return 1;
}

void gin_device_close(gin *g, gin_device *d, int keep) {
  for (int i = 0; i < d->n; i++) {
    if (keep)
      memset(&g->context[d->first[i]], 0, sizeof *g->context);
    else
      gin_context_close(g, d->first[i]);
  }
  if (!keep && g->mover && d->contexts)
    g->mover->ops->release(g->mover, d->contexts);
  else if (!keep)
    free(d->contexts);
  free(d);
}

/* Makes the signals of a context, the index-th of its device communicator, sums that are told. */
static int tell(gin *g, const gin_want *w, int context, uint32_t index) {
  gin_context *x = &g->context[context];
  uint64_t words = (uint64_t)w->nsignals * (uint32_t)g->nranks;
  x->told_window = w->window;
  x->told_off = w->told + index * words * sizeof *x->told;
  return (x->told = calloc(words + 1, sizeof *x->told)) ? 0 : -1;
}

gin_device *gin_device_open(gin *g, const gin_want *w, char *why) {
  int known = w->nic || (w->context_bytes >= GCCL_PROXY_CONTEXT_OLD && w->context_bytes <= sizeof(gccl_proxy_context));
  gin_device *d = known ? calloc(1, sizeof *d) : NULL;
  if (!d) {
    gccl_net_why(why, GCCL_NET_EINVAL, known ? "out of memory" : "contexts of %u bytes are of no header", w->context_bytes);
    return NULL;
  }
  for (; d->n < (int)w->n; d->n++) {
    int x = -1;
    if (d->n == GIN_CONTEXTS)
      gccl_net_why(why, GCCL_NET_ENOMEM, "a communicator has %d contexts in all", GIN_CONTEXTS);
    else if (w->nic)
      x = gin_queues_open(g, w->nsignals, w->ncounters, w->depth, why);
    else if ((x = gin_context_open(g, w->format, w->nsignals, w->ncounters, w->depth)) < 0)
      gccl_net_why(why, GCCL_NET_ENOMEM, "no room for a context with rings of %u (a communicator has %d contexts in all)", w->depth,
                   GIN_CONTEXTS);
    else if (g->mover && w->told && tell(g, w, x, (uint32_t)d->n) < 0) {
      gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
      gin_context_close(g, x);
      x = -1;
    }
    if (x < 0) break;
    d->first[d->n] = x;
  }
  block b = {0};
  char text[GCCL_MOVER_TEXT] = "";
  void (*describe)(gin *, const gin_want *, const gin_device *, block *) = w->nic ? describe_queues : describe_proxy;
  if (d->n == (int)w->n) {
    describe(g, w, d, &b); /* counts */
    size_t bytes = b.used;
    if (!(b.base = aligned_alloc(2 * GCCL_LINE, bytes))) {
      gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    } else if (!(b.seen = g->mover ? g->mover->ops->memory(g->mover, bytes, text) : b.base)) {
      gccl_net_why(why, GCCL_NET_ENOMEM, "%s", text);
      free(b.base);
    } else {
      memset(b.base, 0, bytes);
      b.used = 0;
      describe(g, w, d, &b);
      d->contexts = b.seen;
      if (!g->mover) return d;
      int rc = g->mover->ops->store(g->mover, b.seen, b.base, bytes, text);
      free(b.base);
      if (rc == 0) return d;
      gccl_net_why(why, GCCL_NET_ESYSTEM, "%s", text);
    }
  }
  gin_device_close(g, d, 0);
  return NULL;
}

void gin_device_address(gin *g, const gin_device *d, int context, int32_t peer, unsigned char out[GIN_ADDRESS]) {
  const gin_context *x = &g->context[d->first[context]];
  memcpy(out, x->queue[peer]->address, GCCL_CARD_ADDRESS);
  memcpy(out + GCCL_CARD_ADDRESS, &x->mr->rkey, 4);
}

int gin_device_join(gin *g, gin_device *d, int context, int32_t peer, const unsigned char in[GIN_ADDRESS], char *why) {
  gin_context *x = &g->context[d->first[context]];
  memcpy(&x->signal_rkeys[peer], in + GCCL_CARD_ADDRESS, 4);
  ((gccl_gdaki_context *)d->contexts)[context].signal_rkeys[peer] = x->signal_rkeys[peer];
  return g->card->ops->connect(x->queue[peer], in, why);
}
