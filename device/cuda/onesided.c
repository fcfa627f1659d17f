/* One-sided operations: a put is a copy of the caller's stream into the peer's window, a signal a write behind it, a wait a stream's
 * wait for a count. The word of a pair is at the receiver, in pinned memory, and has one writer: the sender's stream. */
#include "launch.h"

static CUdeviceptr signal_word(const gccl_cuda_comm *d, int from, int to) {
  return d->peer[to].words - d->layout.words + d->layout.signals + (uint64_t)from * 64;
}

int gccl_cuda_onesided(gccl_cuda_batch *b, gccl_op *x) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  CUresult e = CUDA_SUCCESS;
  if (b->capture) {
    gccl_comm_latch(
        c, GCCL_RC_USAGE,
        "rank %d of %d: one-sided operations cannot be captured in this version: a captured wait compares a constant, and signals "
        "count: issue them outside the capture",
        c->rank, c->nranks);
    return GCCL_RC_USAGE;
  }
  if (x->kind == GCCL_DO_WAIT_SIGNAL) {
    if (c->nranks == 1) return 0;
    c->signals_waited[x->root] += x->count;
    e = gccl_cu.StreamWaitValue32(b->stream, signal_word(d, x->root, c->rank), (uint32_t)c->signals_waited[x->root],
                                  CU_STREAM_WAIT_VALUE_GEQ);
    return e ? gccl_cuda_failed(c, e, "cuStreamWaitValue32") : 0;
  }
  if (x->count) e = gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)x->recv, (CUdeviceptr)(uintptr_t)x->send, x->count * x->esize, b->stream);
  if (e) return gccl_cuda_failed(c, e, "cuMemcpyAsync");
  if (!x->signal || c->nranks == 1) return 0;
  e = gccl_cu.StreamWriteValue32(b->stream, signal_word(d, c->rank, x->root), (uint32_t)++c->signals_sent[x->root], 0);
  return e ? gccl_cuda_failed(c, e, "cuStreamWriteValue32") : 0;
}
