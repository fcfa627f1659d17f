/* Copies and fills. When a call returns follows CUDA's rules (CUDA runtime API, "API synchronization behavior"): an
 * asynchronous copy from memory that is not pinned has read it, one to such memory is complete. */
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

typedef struct {
  char *dst;
  const char *src;
  size_t width, height, dst_pitch, src_pitch;
  void *staged;
} copy;

static void run_copy(void *arg) {
  copy *c = arg;
  for (size_t row = 0; row < c->height; row++) memmove(c->dst + row * c->dst_pitch, c->src + row * c->src_pitch, c->width);
  free(c->staged);
  free(c);
}

/* now: the call returns when the copy is done. */
static cudaError_t copy_in(cudaStream_t stream, copy want, int kind, int now) {
  if (kind < HOST_TO_HOST || kind > BY_ADDRESS) return cudart_set(ERR_DIRECTION);
  if (!want.width || !want.height) return OK;
  if (!want.dst || !want.src || want.width > want.dst_pitch || want.width > want.src_pitch) return cudart_set(ERR_INVALID_VALUE);
  int null = cudart_is_null(stream);
  int source_on_host = kind == HOST_TO_HOST || kind == HOST_TO_DEVICE || kind == BY_ADDRESS;
  int target_on_host = kind == HOST_TO_HOST || kind == DEVICE_TO_HOST || kind == BY_ADDRESS;
  if (target_on_host && cudart_memory_at(want.dst, NULL, NULL) == MEM_UNKNOWN) now = 1;
  copy *c = malloc(sizeof *c);
  if (!c) return cudart_set(ERR_MEMORY);
  *c = want;
  if (!now && !null && source_on_host && cudart_memory_at(want.src, NULL, NULL) == MEM_UNKNOWN) {
    if (!(c->staged = malloc(want.width * want.height))) return free(c), cudart_set(ERR_MEMORY);
    for (size_t row = 0; row < want.height; row++)
      memcpy((char *)c->staged + row * want.width, want.src + row * want.src_pitch, want.width);
    c->src = c->staged;
    c->src_pitch = want.width;
  }
  cudaError_t e = cudart_enqueue(stream, run_copy, c);
  if (e != OK) return free(c->staged), free(c), e;
  return now && !null ? cudart_of(gcclStreamSynchronize(stream)) : OK;
}

static copy line(void *dst, const void *src, size_t n) { return (copy){dst, src, n, 1, n, n, NULL}; }

CUDART_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, int kind) { return copy_in(NULL, line(dst, src, n), kind, 1); }

CUDART_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, int kind, cudaStream_t stream) {
  return copy_in(stream, line(dst, src, n), kind, 0);
}

static int bad_pair(int a, int b) { return a < 0 || b < 0 || a >= cudart_devices() || b >= cudart_devices(); }

CUDART_API cudaError_t cudaMemcpyPeer(void *dst, int to, const void *src, int from, size_t n) {
  if (bad_pair(to, from)) return cudart_set(ERR_DEVICE);
  cudart_drain(to, 0);
  cudart_drain(from, 0);
  return copy_in(NULL, line(dst, src, n), DEVICE_TO_DEVICE, 1);
}

CUDART_API cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t n, cudaStream_t stream) {
  if (bad_pair(to, from)) return cudart_set(ERR_DEVICE);
  return copy_in(stream, line(dst, src, n), DEVICE_TO_DEVICE, 0);
}

CUDART_API cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind) {
  return copy_in(NULL, (copy){dst, src, width, height, dst_pitch, src_pitch, NULL}, kind, 1);
}

CUDART_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                                         int kind, cudaStream_t stream) {
  return copy_in(stream, (copy){dst, src, width, height, dst_pitch, src_pitch, NULL}, kind, 0);
}

/* ---- Fills --------------------------------------------------------------------------------------------------------- */

typedef struct {
  void *at;
  int value;
  size_t n;
} fill;

static void run_fill(void *arg) {
  fill *f = arg;
  memset(f->at, f->value, f->n);
  free(f);
}

CUDART_API cudaError_t cudaMemsetAsync(void *at, int value, size_t n, cudaStream_t stream) {
  if (!n) return OK;
  if (!at) return cudart_set(ERR_INVALID_VALUE);
  fill *f = malloc(sizeof *f);
  if (!f) return cudart_set(ERR_MEMORY);
  *f = (fill){at, value, n};
  cudaError_t e = cudart_enqueue(stream, run_fill, f);
  if (e != OK) free(f);
  return e;
}

CUDART_API cudaError_t cudaMemset(void *at, int value, size_t n) { return cudaMemsetAsync(at, value, n, NULL); }
