/* Stores into a GPU's memory on behalf of the library: by copies from pinned host memory in a stream of its own, because copies
 * from there, unlike memsets and copies on the device, need no SM, which a kernel that waits for us may hold (tried on driver 580). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "memory.h"

enum { ROOM = 256 << 10 };
static const uint64_t LIMIT_NS = 10000000000u;

static CUresult ready(gccl_cuda_context *x) {
  CUresult e = CUDA_SUCCESS;
  if (!x->service.room) e = gccl_cu.MemHostAlloc(&x->service.room, ROOM, CU_MEMHOST_PORTABLE);
  if (!e && !x->service.stream) e = gccl_cu.StreamCreateWithPriority(&x->service.stream, CU_STREAM_NON_BLOCKING, CU_STREAM_FIRST);
  return e;
}

/* Until the copies are done: their room is free again then. */
static CUresult finish(gccl_cuda_context *x) {
  uint64_t start = gccl_now_ns();
  CUresult e;
  while ((e = gccl_cu.StreamQuery(x->service.stream)) == CUDA_ERROR_NOT_READY && gccl_now_ns() - start < LIMIT_NS)
    nanosleep(&(struct timespec){0, 10000}, NULL);
  return e;
}

/* from NULL: zeros. */
static CUresult store(gccl_cuda_context *x, CUdeviceptr to, const char *from, uint64_t n) {
  CUresult e = ready(x);
  CUdeviceptr room = (CUdeviceptr)(uintptr_t)x->service.room;
  if (!from && !e) memset(x->service.room, 0, ROOM);
  for (uint64_t at = 0; at < n && !e; at += ROOM) {
    size_t part = n - at < ROOM ? n - at : ROOM;
    if (from) memcpy(x->service.room, from + at, part);
    e = gccl_cu.MemcpyAsync(to + at, room, part, x->service.stream);
    if (from && !e) e = finish(x);
  }
  return e || from ? e : finish(x);
}

int gccl_cuda_write(gccl_cuda_context *x, CUdeviceptr to, const void *from, uint64_t n, char *text, size_t max) {
  CUcontext before;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* a capture of this or another thread must not forbid what is done here */
  CUresult e = gccl_cuda_enter(x, &before);
  if (!e) {
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    pthread_mutex_lock(&x->service.lock);
    e = store(x, to, from, n);
    pthread_mutex_unlock(&x->service.lock);
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    gccl_cuda_leave(x, before);
  }
  if (!e) return 0;
  snprintf(text, max, "a copy of %llu bytes to memory of device %d: %s%d (%s)", (unsigned long long)n, x->ordinal,
           e == CUDA_ERROR_NOT_READY ? "not done after 10 s: error " : "error ", e, gccl_cuda_text(e));
  return GCCL_RC_CUDA;
}

void gccl_cuda_service_drop(gccl_cuda_context *x) {
  if (x->service.stream) gccl_cu.StreamDestroy(x->service.stream);
  if (x->service.room) gccl_cu.MemFreeHost(x->service.room);
  pthread_mutex_destroy(&x->service.lock);
}
