/* The executor of spinning kernels: every rank launches a kernel of its own in its own stream, and they wait for each other on the GPU. The
 * host waits for nobody, and the driver is asked for one launch.
 *
 * Who executes an operation follows from what is the same on all ranks, whatever else each of them has in its group: collectives that LL
 * takes, if all collectives of the group are such. They come before the messages of the group, whose records are published behind them.
 * Eager kernels tell their end by the rank's own word in pinned memory, as a leader's kernel does; captured ones need not.
 */
#include "../host/exec/probe.h"
#include "kernels/kernels.h"
#include "launch.h"

static int takes(const gccl_cuda_comm *d, const gccl_op *x) {
  uint64_t bytes = x->count * x->esize;
  /* Of a user's operator the other ranks' factors are not known here. */
  if (bytes == 0 || bytes > d->ll_bytes || (gccl_coll_folds(x->coll) && x->red == GCCL_RED_USER)) return 0;
  return gccl_cuda_ll_kernel(d->cx, x->coll, x->dtype, gccl_cuda_work_op(x->red, x->dtype)) != NULL;
}

int gccl_cuda_spin_choose(gccl_cuda_batch *b) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  int n = 0;
  if (!d->ll_bytes) return 0;
  for (int i = 0; i < b->nops; i++)
    if (b->ops[i].kind == GCCL_DO_COLL && !takes(d, &b->ops[i])) return 0;
  for (int i = 0; i < b->nops; i++) n += b->ops[i].spins = b->ops[i].kind == GCCL_DO_COLL;
  return n;
}

/* last: it says that all of the batch is done. */
static CUresult launch(gccl_cuda_batch *b, const gccl_op *x, gccl_spin_work *w, int last) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  gccl_leader_rank *me = &w->op.rank[d->rank];
  w->op.coll = x->coll;
  w->op.dtype = x->dtype;
  w->op.op = (uint8_t)gccl_cuda_work_op(x->red, x->dtype);
  w->op.count = x->count;
  if (x->red == GCCL_RED_AVG && gccl_coll_folds(x->coll)) gccl_cuda_average(&w->op, (unsigned)d->nranks);
  me->send = (uint64_t)(uintptr_t)x->send;
  me->recv = (uint64_t)(uintptr_t)x->recv;
  me->done = last ? done_word(d, d->rank, d->rank, 0) : 0;
  if (last) w->op.done_value[d->rank] = (uint32_t)++d->launches[d->rank];
  if (last) b->executor = d->rank;
  gccl_launch_dims dims = gccl_spin_dims(w, GCCL_SPIN_LL_METHOD, d->lanes->blocks);
  void *params[] = {w};
  return gccl_cu.LaunchKernel(gccl_cuda_ll_kernel(d->cx, x->coll, x->dtype, w->op.op), dims.grid, 1, 1, dims.block, 1, 1, 0, b->stream,
                              params, NULL);
}

int gccl_cuda_spin(gccl_cuda_batch *b) {
  gccl_spin_work *w = gccl_cuda_lane_work(gccl_cuda_of(b->comm), b->capture);
  int left = b->spins == b->nops && !b->capture ? b->nops : 0;
  CUresult e = CUDA_SUCCESS;
  for (int i = 0; i < b->nops && !e; i++) {
    gccl_op *x = &b->ops[i];
    if (!x->spins) continue;
    if (gccl_probed(x->comm)) gccl_probe_step(x, GCCL_STEP_LAUNCH, NULL, -1);
    if ((e = launch(b, x, w, --left == 0))) return gccl_cuda_failed(b->comm, e, gccl_coll_names[x->coll]);
    x->phase = OP_EXECUTED;
  }
  return 0;
}
