/* The device's part of windows: memory of ncclMemAlloc, mapped by all ranks of the communicator. */
#include <stdio.h>
#include <string.h>

#include "memory.h"

enum { WINDOW_ALIGN = 4096 }; /* NCCL 2.30.7, dev_runtime.cc */

int gccl_cuda_window_offer(gccl_cuda_comm *d, const void *ptr, uint64_t size, gccl_cuda_ref *r, char *text, size_t max) {
  gccl_cuda_span s;
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  memset(r, 0, sizeof *r);
  if (!gccl_cuda_mem_pin(ptr, size, &s)) {
    snprintf(text, max, "the buffer at %p is not memory of ncclMemAlloc on a GPU: allocate windows with ncclMemAlloc", ptr);
    return GCCL_RC_ARGUMENT;
  }
  uint64_t in = at - s.base;
  if (size > s.size - in) {
    snprintf(text, max, "the window of %llu bytes ends behind its allocation of %llu bytes", (unsigned long long)size,
             (unsigned long long)s.size);
    return GCCL_RC_ARGUMENT;
  }
  if (in % WINDOW_ALIGN || s.ordinal != d->cx->ordinal) {
    if (in % WINDOW_ALIGN)
      snprintf(text, max, "the buffer begins %llu bytes into its allocation, which is not a multiple of %d", (unsigned long long)in,
               WINDOW_ALIGN);
    else
      snprintf(text, max, "the buffer at %p is memory of device %d, and the communicator was made for device %d", ptr, s.ordinal,
               d->cx->ordinal);
    gccl_cuda_mem_unpin(s.base);
    return GCCL_RC_ARGUMENT;
  }
  *r = (gccl_cuda_ref){.addr = at, .base = s.base, .size = s.size, .id = s.id, .kind = GCCL_CUDA_HANDLE, .device = s.ordinal};
  return 0;
}

int gccl_cuda_window_map(gccl_cuda_comm *d, gccl_window *w, const gccl_cuda_ref *all, char *text, size_t max) {
  CUcontext before;
  if (d->stage) { /* a registration: collectives take the buffer as any other, and nobody reaches a peer's */
    w->peer_offset[d->rank] = all[d->rank].addr;
    return 0;
  }
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  int rc = 0;
  for (int q = 0; q < d->nranks && !rc; q++) {
    w->peer_offset[q] = d->peer[q].same_process ? all[q].addr : gccl_cuda_import_ref(d, q, &all[q], text, max);
    if (!w->peer_offset[q]) rc = GCCL_RC_CUDA;
  }
  gccl_cuda_leave(d->cx, before);
  return rc;
}

void gccl_cuda_window_release(const gccl_cuda_ref *own) { gccl_cuda_mem_unpin(own->base); }
