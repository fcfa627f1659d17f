/* The executor of spinning kernels: every rank launches a kernel of its own in its own stream, and they wait for each other on the GPU. The
 * host waits for nobody, and the driver is asked for one launch.
 *
 * Who executes an operation follows from what is the same on all ranks, whatever messages each of them has in its group: its collectives are
 * all done so, or none. Up to a size LL takes them, whose slots are ours; beyond that, if asked for, direct kernels those whose buffers are in
 * symmetric windows, which are at the same place of the window on all ranks (ncclCommWindowRegister). They come before the messages
 * of the group, whose records are published behind them. Eager kernels tell their end by the rank's own word in pinned memory, as a
 * leader's kernel does; captured ones need not.
 */
#include "../../include/gccl.h"
#include "../host/exec/probe.h"
#include "kernels/kernels.h"
#include "launch.h"

enum { NOT_SO, DIRECTLY = 1 + GCCL_SPIN_DIRECT, BY_SLOTS = 1 + GCCL_SPIN_LL_METHOD }; /* gccl_op.spins */

/* The symmetric window that has so many bytes from ptr on at all ranks. */
static const gccl_window *window_of(const struct ncclComm *c, const void *ptr, uint64_t bytes) {
  for (unsigned i = 0; i < sizeof c->windows / sizeof *c->windows; i++) {
    const gccl_window *w = atomic_load_explicit(&c->windows[i], memory_order_acquire);
    if (!w || w->resource || !(w->flags & NCCL_WIN_COLL_SYMMETRIC) || (uint64_t)((const char *)ptr - w->user) >= w->size) continue;
    uint64_t end = (uint64_t)((const char *)ptr - w->user) + bytes;
    int q = 0;
    while (q < c->nranks && end <= w->peer_size[q]) q++;
    if (q == c->nranks) return w;
  }
  return NULL;
}

static const gccl_window *window_for(const gccl_op *x, int receiving) {
  return window_of(x->comm, receiving ? x->recv : x->send, x->count * x->esize * gccl_cuda_parts(x, receiving));
}

static uint8_t way_of(const gccl_cuda_comm *d, const gccl_op *x) {
  uint64_t bytes = x->count * x->esize;
  /* Of a user's operator the other ranks' factors are not known here. */
  if (bytes == 0 || (gccl_coll_folds(x->coll) && x->red == GCCL_RED_USER)) return NOT_SO;
  if (!gccl_cuda_spin_kernel(d->cx, GCCL_SPIN_LL_METHOD, x->coll, x->dtype, gccl_cuda_work_op(x->red, x->dtype))) return NOT_SO;
  if (bytes <= d->ll_bytes) return BY_SLOTS;
  return d->lanes->direct && window_for(x, 0) && window_for(x, 1) ? DIRECTLY : NOT_SO;
}

int gccl_cuda_spin_choose(gccl_cuda_batch *b) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  int n = 0;
  if (!d->ll_bytes) return 0;
  for (int i = 0; i < b->nops; i++)
    if (b->ops[i].kind == GCCL_DO_COLL && way_of(d, &b->ops[i]) == NOT_SO) return 0;
  for (int i = 0; i < b->nops; i++) {
    if (b->ops[i].kind != GCCL_DO_COLL) continue;
    b->ops[i].spins = way_of(d, &b->ops[i]);
    n++;
  }
  return n;
}

/* A direct kernel reads and writes all ranks' buffers, one of slots its own rank's. */
static void place(const gccl_cuda_comm *d, gccl_leader_work *w, const gccl_op *x) {
  w->rank[d->rank].send = (uint64_t)(uintptr_t)x->send;
  w->rank[d->rank].recv = (uint64_t)(uintptr_t)x->recv;
  if (x->spins != DIRECTLY) return;
  const gccl_window *send = window_for(x, 0), *recv = window_for(x, 1);
  for (int q = 0; q < d->nranks; q++) {
    w->rank[q].send = send->peer_offset[q] + (uint64_t)((const char *)x->send - send->user);
    w->rank[q].recv = recv->peer_offset[q] + (uint64_t)((const char *)x->recv - recv->user);
  }
}

/* last: it says that all of the batch is done. */
static CUresult launch(gccl_cuda_batch *b, const gccl_op *x, gccl_spin_work *w, int last) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  int method = x->spins - 1;
  w->op.coll = x->coll;
  w->op.dtype = x->dtype;
  w->op.op = (uint8_t)gccl_cuda_work_op(x->red, x->dtype);
  w->op.count = x->count;
  if (x->red == GCCL_RED_AVG && gccl_coll_folds(x->coll)) gccl_cuda_average(&w->op, (unsigned)d->nranks);
  place(d, &w->op, x);
  w->op.rank[d->rank].done = last ? done_word(d, d->rank, d->rank, 0) : 0;
  if (last) w->op.done_value[d->rank] = (uint32_t)++d->launches[d->rank];
  if (last) b->executor = d->rank;
  gccl_launch_dims dims = gccl_spin_dims(w, method, method == GCCL_SPIN_DIRECT ? d->lanes->direct : d->lanes->blocks);
  void *params[] = {w};
  return gccl_cu.LaunchKernel(gccl_cuda_spin_kernel(d->cx, method, x->coll, x->dtype, w->op.op), dims.grid, 1, 1, dims.block, 1, 1, 0,
                              b->stream, params, NULL);
}

int gccl_cuda_spin(gccl_cuda_batch *b) {
  gccl_spin_work *w = gccl_cuda_lane_work(gccl_cuda_of(b->comm), b->capture);
  int left = b->spins == b->nops && !b->capture ? b->nops : 0;
  CUresult e = CUDA_SUCCESS;
  for (int i = 0; i < b->nops && !e; i++) {
    gccl_op *x = &b->ops[i];
    if (!x->spins) continue;
    if (gccl_probed(x->comm)) gccl_probe_step(x, GCCL_STEP_LAUNCH, NULL, -1, NULL);
    if ((e = launch(b, x, w, --left == 0))) return gccl_cuda_failed(b->comm, e, gccl_coll_names[x->coll]);
    x->phase = OP_EXECUTED;
  }
  return 0;
}
