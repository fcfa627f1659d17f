/* Operations that only move data, by copies of the driver alone: what NCCL_CTA_POLICY_ZERO asks for.
 *
 * The executor's stream has one copy for each part that goes somewhere else, one after another. Between GPUs copy engines do them. On one
 * GPU the driver runs such a copy on multiprocessors (tried on driver 580), so nothing is gained there but that no kernel is ours.
 */
#include "kernels/kernels.h"
#include "launch.h"

int gccl_cuda_copies_do(const gccl_cuda_comm *d, unsigned coll) { return d->comm->copies && !gccl_coll_folds(coll); }

CUresult gccl_cuda_copy(CUstream s, CUdeviceptr from, CUdeviceptr to, uint64_t bytes) {
  return bytes == 0 || from == to ? CUDA_SUCCESS : gccl_cu.MemcpyAsync(to, from, bytes, s);
}

int gccl_cuda_copies(const gccl_cuda_batch *b, const gccl_leader_work *w) {
  uint64_t part = w->count * gccl_kernel_type_size[w->dtype];
  const gccl_leader_rank *rank = w->rank, *root = &rank[w->root];
  CUresult e = CUDA_SUCCESS;
  for (uint64_t q = 0; q < w->nranks && !e; q++) {
    switch (w->coll) {
    case GCCL_BROADCAST: e = gccl_cuda_copy(b->stream, root->send, rank[q].recv, part); break;
    case GCCL_GATHER: e = gccl_cuda_copy(b->stream, rank[q].send, root->recv + q * part, part); break;
    case GCCL_SCATTER: e = gccl_cuda_copy(b->stream, root->send + q * part, rank[q].recv, part); break;
    case GCCL_ALL_GATHER:
      /* From each rank to the next ones in turn, so that neighbouring copies have different ends. */
      for (uint64_t k = 0; k < w->nranks && !e; k++)
        e = gccl_cuda_copy(b->stream, rank[k].send, rank[(k + q) % w->nranks].recv + k * part, part);
      break;
    default: /* all-to-all */
      for (uint64_t k = 0; k < w->nranks && !e; k++) {
        uint64_t to = (k + q) % w->nranks;
        e = gccl_cuda_copy(b->stream, rank[k].send + to * part, rank[to].recv + k * part, part);
      }
    }
  }
  return e ? gccl_cuda_failed(b->comm, e, "cuMemcpyAsync") : 0;
}
