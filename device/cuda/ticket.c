/* Tickets: words in which the blocks of one launch count themselves, so that the last one writes the "done" words. 0 between launches, and
 * in device memory, because the count is atomic for kernels of this GPU alone.
 *
 * An executor has one for its eager launches, which run one after another, and one for each pair of graph words, because a replay may run
 * beside them. They come from memory of the context that is never freed: cuMemFree waits for streams that wait (tried on driver 580).
 */
#include <stdio.h>

#include "launch.h"

enum { SETS = 128, SET_BYTES = GCCL_CUDA_SLOTS * sizeof(uint32_t) };

/* More memory. Preconditions: the lock is held, the context is current. */
static CUresult more(gccl_cuda_context *x) {
  CUdeviceptr at = 0;
  CUresult e = gccl_cu.MemAlloc(&at, SETS * SET_BYTES);
  if (e) return e;
  x->tickets.fresh = at;
  x->tickets.left = SETS;
  return CUDA_SUCCESS;
}

int gccl_cuda_tickets_get(gccl_cuda_comm *d, char *text, size_t max) {
  gccl_cuda_context *x = d->cx;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* a capture of this or another thread must not forbid the allocation */
  CUresult e = CUDA_SUCCESS;
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  pthread_mutex_lock(&x->tickets.lock);
  if (x->tickets.nused) {
    d->tickets = x->tickets.used[--x->tickets.nused];
  } else {
    if (x->tickets.left == 0) e = more(x);
    if (!e) d->tickets = x->tickets.fresh + (uint64_t)--x->tickets.left * SET_BYTES;
  }
  pthread_mutex_unlock(&x->tickets.lock);
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  if (e) {
    snprintf(text, max, "%d bytes of device memory for the ends of kernels: error %d (%s)", SETS * SET_BYTES, e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  return gccl_cuda_write(x, d->tickets, NULL, SET_BYTES, text, max);
}

/* No launch and no graph uses them any more. */
void gccl_cuda_tickets_put(gccl_cuda_comm *d) {
  gccl_cuda_context *x = d->cx;
  if (!d->tickets) return;
  pthread_mutex_lock(&x->tickets.lock);
  /* Those for which there is no room are lost: 512 bytes each. */
  if (x->tickets.nused < sizeof x->tickets.used / sizeof x->tickets.used[0]) x->tickets.used[x->tickets.nused++] = d->tickets;
  pthread_mutex_unlock(&x->tickets.lock);
}
