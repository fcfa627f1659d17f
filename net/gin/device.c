/* Contexts for a device communicator: opened together, and described to its kernels in one block of memory. */
#include <stdlib.h>

#include "gin.h"

/* Takes room in the block, on a line of its own; with NULL for the block only counts. */
typedef struct {
  char *base;
  size_t used;
} block;

static void *take(block *b, size_t n, size_t size) {
  void *at = b->base ? b->base + b->used : NULL;
  b->used += gccl_align(n * size, 2 * GCCL_LINE);
  return at;
}

static void describe_proxy(gin *g, const gin_want *want, const gin_device *d, block *b) {
  size_t n = (size_t)g->nranks;
  char *out = take(b, (size_t)d->n, want->context_bytes);
  for (int i = 0; i < d->n; i++) {
    const gin_context *x = &g->context[d->first[i]];
    uint64_t *offsets = take(b, x->nsignals + 1, sizeof *offsets);
    uint32_t *issued = take(b, n, sizeof *issued), *visible = take(b, n, sizeof *visible);
    if (!b->base) continue;
    gccl_proxy_context c = {.nranks = g->nranks,
                            .queue_size = x->depth,
                            .queues = (uint64_t *)x->rings,
                            .pis = x->pis,
                            .cis = x->cis,
                            .counters = x->counters,
                            .signals = x->signals,
                            .signal_offsets = offsets,
                            .last_issued_get = issued,
                            .last_visible_get = visible};
    memcpy(out + (size_t)i * want->context_bytes, &c, want->context_bytes);
  }
}

static void describe_queues(gin *g, const gin_want *want, const gin_device *d, block *b) {
  (void)want;
  size_t n = (size_t)g->nranks;
  gccl_gdaki_context *out = take(b, (size_t)d->n, sizeof *out);
  for (int i = 0; i < d->n; i++) {
    const gin_context *x = &g->context[d->first[i]];
    uint64_t *offsets = take(b, x->nsignals + 1, sizeof *offsets);
    uint32_t *rkeys = take(b, n, sizeof *rkeys);
    gccl_gdaki_qp *qp = take(b, n, sizeof *qp);
    if (b->base)
      out[i] = (gccl_gdaki_context){.version = GCCL_GDAKI_VERSION,
                                    .size = sizeof *out,
                                    .nranks = g->nranks,
                                    .nsignals = x->nsignals,
                                    .ncounters = x->ncounters,
                                    .sink_lkey = nic_key(NIC_KEY_SINK, x->number),
                                    .qp = qp,
                                    .signal_rkeys = rkeys,
                                    .signals = x->signals,
                                    .signal_offsets = offsets,
                                    .counters = x->counters};
    for (size_t r = 0; r < n; r++) {
      uint32_t *counter = take(b, x->depth, sizeof *counter);
      if (!b->base) continue;
      const nic_qp *q = &x->qp[r];
      rkeys[r] = nic_key(NIC_KEY_SIGNALS, x->number); /* the same at all ranks: they open contexts in the same order */
      qp[r] = (gccl_gdaki_qp){
          .sq = q->sq, .dbrec = q->dbrec, .doorbell = q->doorbell, .cq = q->cq, .depth = q->depth, .qpn = q->qpn, .counter = counter};
      qp[r].claimed = qp[r].ready = qp[r].rung = qp[r].done = q->posted;
    }
  }
}

int gin_device_idle(gin *g, const gin_device *d) {
  for (int i = 0; i < d->n; i++) {
    const gin_context *x = &g->context[d->first[i]];
    const gccl_gdaki_context *queues = x->qp ? (const gccl_gdaki_context *)d->contexts + i : NULL;
    for (int32_t r = 0; r < g->nranks; r++) {
      if (queues ? x->qp[r].told != (uint32_t)__atomic_load_n(&queues->qp[r].rung, __ATOMIC_ACQUIRE) && !x->qp[r].failed
                 : x->cis[r] != __atomic_load_n(&x->pis[r], __ATOMIC_ACQUIRE))
        return 0;
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
  if (!keep) free(d->contexts);
  free(d);
}

gin_device *gin_device_open(gin *g, const gin_want *w) {
  gin_device *d = w->nic || (w->context_bytes >= GCCL_PROXY_CONTEXT_OLD && w->context_bytes <= sizeof(gccl_proxy_context)) ? calloc(1, sizeof *d) : NULL;
  if (!d) return NULL;
  for (; d->n < (int)w->n; d->n++) {
    int x = d->n == GIN_CONTEXTS ? -1
            : w->nic             ? gin_nic_open(g, w->nsignals, w->ncounters, w->depth)
                                 : gin_context_open(g, w->format, w->nsignals, w->ncounters, w->depth);
    if (x < 0) break;
    d->first[d->n] = x;
  }
  block b = {0};
  void (*describe)(gin *, const gin_want *, const gin_device *, block *) = w->nic ? describe_queues : describe_proxy;
  describe(g, w, d, &b); /* counts */
  if (d->n == (int)w->n && (b.base = aligned_alloc(2 * GCCL_LINE, b.used))) {
    memset(b.base, 0, b.used);
    b.used = 0;
    describe(g, w, d, &b);
    d->contexts = b.base;
    return d;
  }
  gin_device_close(g, d, 0);
  return NULL;
}
