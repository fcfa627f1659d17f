/* Pinned host memory that kernels and the CPU both look at. It is taken from the driver in slabs and never given back: cuMemFreeHost waits while
 * any stream of the context waits (tried on driver 580). What is given back here is for the next one who asks for that size. */
#include <string.h>

#include "cuda.h"

enum { SLAB = 2 << 20, SMALLEST = 8, LINES = 128 }; /* SMALLEST: of a block with its head, as a power of two */

typedef struct head {
  struct head *next;
  unsigned order;
} head;

_Static_assert(sizeof(head) <= LINES, "blocks begin at two lines");

/* Preconditions: service.lock is held, the context is current. */
static head *fresh(gccl_cuda_context *x, unsigned order) {
  size_t n = (size_t)1 << order;
  void *at = NULL;
  const unsigned flags = CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP;
  if (n >= SLAB) return gccl_cu.MemHostAlloc(&at, n, flags) ? NULL : at;
  if (x->pinned.left < n) { /* what is left of the last slab stays unused: at most the size of one block */
    if (gccl_cu.MemHostAlloc(&at, SLAB, flags)) return NULL;
    x->pinned.slab = at;
    x->pinned.left = SLAB;
  }
  head *h = (head *)x->pinned.slab;
  x->pinned.slab += n;
  x->pinned.left -= n;
  return h;
}

void *gccl_cuda_pinned(gccl_cuda_context *x, uint64_t bytes) {
  unsigned order = SMALLEST;
  CUcontext before;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  while (order < 40 && ((uint64_t)1 << order) - LINES < bytes) order++;
  if (order == 40 || gccl_cuda_enter(x, &before)) return NULL;
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  pthread_mutex_lock(&x->service.lock);
  head *h = x->pinned.free[order];
  if (h)
    x->pinned.free[order] = h->next;
  else
    h = fresh(x, order);
  pthread_mutex_unlock(&x->service.lock);
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  gccl_cuda_leave(x, before);
  if (!h) return NULL;
  h->order = order;
  return memset((char *)h + LINES, 0, bytes);
}

void gccl_cuda_pinned_free(gccl_cuda_context *x, void *at) {
  if (!at) return;
  head *h = (head *)((char *)at - LINES);
  pthread_mutex_lock(&x->service.lock);
  h->next = x->pinned.free[h->order];
  x->pinned.free[h->order] = h;
  pthread_mutex_unlock(&x->service.lock);
}
