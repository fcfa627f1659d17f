/* The device's part of windows: memory of ncclMemAlloc, mapped by all ranks of the communicator. */
#include <stdio.h>
#include <stdlib.h>
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

/* The windows of all ranks in one range: rank q's whole allocation is mapped at q·stride + begin[q], so that its window is at
 * flat + q·stride for all. The places of ranks on other hosts stay empty. */
typedef struct {
  CUdeviceptr base;
  size_t bytes;
  int mapped; /* parts */
  struct {
    CUdeviceptr at;
    size_t size;
  } part[];
} flat_range;

static void unmap_flat(flat_range *f) {
  for (int q = 0; q < f->mapped; q++) gccl_cuda_unmap_at(f->part[q].at, f->part[q].size);
  if (f->base) gccl_cu.MemAddressFree(f->base, f->bytes);
  free(f);
}

/* Bytes between ranks: a multiple of what kernels count in. 0: the windows do not begin at the same place of their pages. */
static uint64_t flat_stride(const gccl_cuda_comm *d, const gccl_cuda_ref *all, uint64_t *first) {
  const uint64_t unit = 4ull << 30;
  uint64_t most = 0;
  size_t grain = 0;
  *first = 0;
  if (gccl_cuda_mem_grain(d->cx->ordinal, &grain) || !grain) return 0;
  for (int q = 0; q < d->nranks; q++)
    if (all[q].addr - all[q].base > *first) *first = all[q].addr - all[q].base;
  for (int q = 0; q < d->nranks; q++) {
    uint64_t begin = *first - (all[q].addr - all[q].base);
    if (begin % grain) return 0;
    if (begin + all[q].size > most) most = begin + all[q].size;
  }
  return (most + unit - 1) / unit * unit;
}

static CUresult map_part(gccl_cuda_comm *d, int q, const gccl_cuda_ref *r, CUdeviceptr at, flat_range *f, char *why) {
  CUmemGenericAllocationHandle h;
  size_t size = 0;
  if (d->peer[q].same_process) {
    if (!(h = gccl_cuda_mem_handle(r->id, &size))) return CUDA_ERROR_INVALID_HANDLE;
  } else {
    CUresult e = gccl_cuda_import_handle(d, q, r->id, &h, &size, why);
    if (e) return e;
  }
  CUresult e = size > r->size ? CUDA_ERROR_INVALID_VALUE : gccl_cuda_map_at(at, h, size, d->cx->ordinal);
  gccl_cuda_drop_handle(h); /* the mapping keeps the memory */
  if (e) return e;
  f->part[f->mapped].at = at;
  f->part[f->mapped++].size = size;
  return CUDA_SUCCESS;
}

static int map_flat(gccl_cuda_comm *d, gccl_window *w, const gccl_cuda_ref *all, char *text, size_t max) {
  char why[512] = "";
  uint64_t first, stride = flat_stride(d, all, &first);
  if (!stride) return 0;
  flat_range *f = calloc(1, sizeof *f + (size_t)d->nranks * sizeof *f->part);
  if (!f) {
    snprintf(text, max, "out of memory");
    return GCCL_RC_SYSTEM;
  }
  f->bytes = stride * (uint64_t)d->nranks;
  int q = 0;
  CUresult e = gccl_cu.MemAddressReserve(&f->base, f->bytes, 0, 0, 0);
  for (; q < d->nranks && !e; q++)
    if (d->peer[q].near) e = map_part(d, q, &all[q], f->base + (uint64_t)q * stride + first - (all[q].addr - all[q].base), f, why);
  if (e) {
    snprintf(text, max, "one range of addresses for the windows of %d ranks, %llu bytes: rank %d: error %d (%s)%s%s", d->nranks,
             (unsigned long long)f->bytes, q ? q - 1 : 0, e, gccl_cuda_text(e), why[0] ? ": " : "", why);
    unmap_flat(f);
    return GCCL_RC_CUDA;
  }
  w->mapping = f;
  w->flat = (char *)(uintptr_t)(f->base + first);
  w->stride = stride;
  return 0;
}

int gccl_cuda_window_map(gccl_cuda_comm *d, gccl_window *w, const gccl_cuda_ref *all, char *text, size_t max) {
  CUcontext before;
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  int rc = d->unreached ? 0 : map_flat(d, w, all, text, max);
  for (int q = 0; q < d->nranks && !rc; q++) {
    if (d->stage && q != d->rank) /* collectives take the buffer as any other, and the host reaches no peer's */
      w->peer_offset[q] = 0;
    else if (d->peer[q].same_process)
      w->peer_offset[q] = all[q].addr;
    else if (w->flat)
      w->peer_offset[q] = (uint64_t)(uintptr_t)w->flat + (uint64_t)q * w->stride;
    else if (!(w->peer_offset[q] = gccl_cuda_import_ref(d, q, &all[q], text, max)))
      rc = GCCL_RC_CUDA;
  }
  gccl_cuda_leave(d->cx, before);
  return rc;
}

void gccl_cuda_window_release(gccl_cuda_comm *d, gccl_window *w, const gccl_cuda_ref *own) {
  CUcontext before;
  if (w && w->mapping && gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS) {
    unmap_flat(w->mapping);
    gccl_cuda_leave(d->cx, before);
  }
  gccl_cuda_mem_unpin(own->base);
}
