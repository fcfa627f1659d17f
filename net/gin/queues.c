/* Contexts with send queues, whoever executes them, and a card as the one who does. */
#include <stdlib.h>

#include "gin.h"

enum { LOOK_NS = 1000 * 1000 };

int gin_queues_open(gin *g, uint32_t nsignals, uint32_t ncounters, uint32_t depth, char *why) {
  int i;
  if (depth == 0 || depth & (depth - 1) || depth > NIC_DEPTH_MAX)
    return gccl_net_why(why, -1, "queues of %u entries: a power of two up to %d is expected", depth, NIC_DEPTH_MAX);
  gin_context *x = gin_context_new(g, &i);
  if (!x) return gccl_net_why(why, -1, "all %d contexts are in use", GIN_CONTEXTS);
  x->nsignals = nsignals;
  x->ncounters = ncounters;
  x->depth = depth;
  x->counters = gin_alloc(g, (ncounters + 1) * sizeof *x->counters); /* with a mover kernels have theirs on the device */
  x->queue = calloc((size_t)g->nranks, sizeof *x->queue);
  x->signal_rkeys = calloc((size_t)g->nranks, sizeof *x->signal_rkeys);
  x->by = g->card ? &gin_card : &gin_software_nic;
  int rc = x->counters && x->queue && x->signal_rkeys ? x->by->open(g, x, why) : gccl_net_why(why, -1, "out of memory");
  if (rc < 0) {
    gin_context_close(g, i);
    return -1;
  }
  return i;
}

/* ---- A card ---- */

static int card_open(gin *g, gin_context *x, char *why) {
  const gccl_card_ops *ops = g->card->ops;
  uint64_t bytes = 8ull * (x->nsignals ? x->nsignals : 1); /* registered to the byte: what is behind them is not for peers */
  x->signals = aligned_alloc(4096, gccl_align(bytes, 4096));
  x->old_values = aligned_alloc(4096, 4096);
  if (!x->signals || !x->old_values) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  memset(x->signals, 0, bytes);
  int rc = ops->reg(g->card, x->signals, bytes, 1, &x->mr, why);
  if (rc == 0) rc = ops->reg(g->card, x->old_values, 8, 1, &x->old_mr, why);
  for (int32_t r = 0; rc == 0 && r < g->nranks; r++) rc = ops->open(g->card, x->depth, &x->queue[r], why);
  if (rc < 0) return rc;
  x->sink_lkey = x->old_mr->lkey;
  return 0;
}

static void card_close(gin *g, gin_context *x) {
  for (int32_t r = 0; x->queue && r < g->nranks; r++)
    if (x->queue[r]) g->card->ops->close_queue(x->queue[r]);
  if (x->mr) g->card->ops->dereg(x->mr);
  if (x->old_mr) g->card->ops->dereg(x->old_mr);
  free(x->old_values);
}

/* Finds the first completion with an error that kernels have not passed yet. */
static void look(gin *g, gin_context *x, int32_t peer) {
  const gccl_sendq *q = x->queue[peer];
  uint64_t done = __atomic_load_n(&x->shown[peer].done, __ATOMIC_ACQUIRE);
  uint32_t syndrome = __atomic_load_n(&x->shown[peer].error, __ATOMIC_RELAXED);
  for (uint32_t i = 0; !syndrome && i < q->cq_depth; i++) {
    const unsigned char *c = q->cq + ((done + i) & (q->cq_depth - 1)) * GCCL_CQE_BYTES;
    uint8_t own = __atomic_load_n(c + GCCL_CQE_OP_OWN, __ATOMIC_ACQUIRE);
    if (!gccl_cqe_is(own, done + i, q->cq_depth)) return;
    if (own >> 4 != GCCL_CQE_OK) syndrome = c[GCCL_CQE_SYNDROME];
  }
  if (!syndrome || __atomic_load_n(&x->shown[peer].done, __ATOMIC_ACQUIRE) - done >= q->cq_depth) return; /* overtaken: other entries' */
  x->failed = 1;
  gccl_net_fail(&g->fault, GCCL_NET_EINVAL, "rank %d: a queue to rank %d in context %u has failed: %s (syndrome 0x%02x)", g->rank, peer,
                x->number, wqe_syndrome((uint8_t)syndrome), syndrome);
}

/* The card works alone; the CPU rings doorbells where kernels cannot, and tells of errors. */
static int card_serve(gin *g, gin_context *x, int32_t peer) {
  gccl_sendq *q = x->queue[peer];
  int moved = 0;
  if (q->bell) {
    uint64_t word = __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE); /* acquire: the record, and the entries */
    if (word != q->rung) {
      __atomic_thread_fence(__ATOMIC_SEQ_CST); /* record before register */
      __atomic_store_n(q->bell, word, __ATOMIC_RELEASE);
      __atomic_thread_fence(__ATOMIC_SEQ_CST); /* stores to a card may wait to be combined with later ones */
      q->rung = word;
      moved = 1;
    }
  }
  if (x->shown && !x->failed) {
    if (peer == 0) { /* now and then: a kernel that waits for a signal looks at no completion */
      uint64_t now = gin_now();
      x->looks = now - x->looked_ns > LOOK_NS;
      if (x->looks) x->looked_ns = now;
    }
    if (x->looks) look(g, x, peer);
  }
  return moved;
}

static int card_done(const gin_context *x, int32_t peer) {
  const gccl_sendq *q = x->queue[peer];
  uint64_t rung = __atomic_load_n(&x->shown[peer].rung, __ATOMIC_ACQUIRE);
  const unsigned char *last = q->cq + ((rung - 1) & (q->cq_depth - 1)) * GCCL_CQE_BYTES;
  return rung == 0 || x->failed || gccl_cqe_is(__atomic_load_n(last + GCCL_CQE_OP_OWN, __ATOMIC_ACQUIRE), rung - 1, q->cq_depth);
}

/* The next doorbell comes soon where kernels have posted and not seen the end. */
static int card_busy(const gin_context *x, int32_t peer) {
  return x->queue[peer]->bell && x->shown &&
         __atomic_load_n(&x->shown[peer].done, __ATOMIC_RELAXED) != __atomic_load_n(&x->shown[peer].claimed, __ATOMIC_RELAXED);
}

const gin_provider gin_card = {card_open, card_serve, card_done, card_busy, card_close};
