/* Copies, fills, and stream memory operations. */
#include "fake.h"

enum { STAGED = 64 << 10, SMALL_SET = 64 };

/* Checks both ends. Pageable host memory is staged: small copies to the device take the bytes before they return, others and all
 * copies from the device return when they are done (CUDA Driver API, API synchronization behavior). */
static CUresult copy(const char *call, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle, int wait) {
  CUstream s;
  CUresult rc = fake_enter_stream(call, handle, &s);
  if (rc != CUDA_SUCCESS || !bytes) return rc;
  enum fake_mem a, b;
  pthread_mutex_lock(&fake_lock);
  int ok = fake_range_holds(to, bytes, &a) && fake_range_holds(from, bytes, &b);
  if (wait && ok) rc = fake_capture_forbids();
  int capturing = s->capture != NULL;
  pthread_mutex_unlock(&fake_lock);
  if (!ok || !to || !from) return CUDA_ERROR_INVALID_VALUE;
  if (rc != CUDA_SUCCESS) return rc;
  fake_work w = {.kind = DO_COPY, .call = call, .copy = {to, from, bytes, fake_is_device(a) && fake_is_device(b)}};
  int pageable = a == MEM_NONE || b == MEM_NONE;
  if (wait || (pageable && !capturing)) return fake_submit_and_wait(s, w);
  return fake_submit(s, w, NULL);
}

CUresult fake_MemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) { return copy("cuMemcpyAsync", to, from, n, s, 0); }
CUresult fake_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
  return copy("cuMemcpyHtoDAsync_v2", to, (CUdeviceptr)(uintptr_t)from, n, s, 0);
}
CUresult fake_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
  return copy("cuMemcpyDtoHAsync_v2", (CUdeviceptr)(uintptr_t)to, from, n, s, 0);
}
CUresult fake_MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
  return copy("cuMemcpyDtoDAsync_v2", to, from, n, s, 0);
}
CUresult fake_MemcpyHtoD(CUdeviceptr to, const void *from, size_t n) {
  return copy("cuMemcpyHtoD_v2", to, (CUdeviceptr)(uintptr_t)from, n, NULL, 1);
}
CUresult fake_MemcpyDtoH(void *to, CUdeviceptr from, size_t n) {
  return copy("cuMemcpyDtoH_v2", (CUdeviceptr)(uintptr_t)to, from, n, NULL, 1);
}

static CUresult set(const char *call, CUdeviceptr to, unsigned value, unsigned width, size_t n, CUstream handle) {
  CUstream s;
  CUresult rc = fake_enter_stream(call, handle, &s);
  if (rc != CUDA_SUCCESS || !n) return rc;
  enum fake_mem kind;
  pthread_mutex_lock(&fake_lock);
  int ok = fake_range_holds(to, n * width, &kind) && kind != MEM_NONE;
  pthread_mutex_unlock(&fake_lock);
  if (!ok || to % width) return CUDA_ERROR_INVALID_VALUE;
  return fake_submit(s, (fake_work){.kind = DO_SET, .call = call, .set = {to, value, width, n}}, NULL);
}

CUresult fake_MemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) { return set("cuMemsetD8Async", to, v, 1, n, s); }
CUresult fake_MemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) { return set("cuMemsetD32Async", to, v, 4, n, s); }

/* 256 operations in one call failed on an H200, 129 worked (measured). */
enum { MOST_OPS = 255 };

static CUresult check_op(const CUstreamBatchMemOpParams *p) {
  enum fake_mem kind;
  size_t width = 8;
  switch (p->operation) {
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
  case CU_STREAM_MEM_OP_WRITE_VALUE_32: width = 4; break;
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
  case CU_STREAM_MEM_OP_WRITE_VALUE_64: break;
  case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  int wait = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  if (wait && p->value.flags & ~3u) return CUDA_ERROR_NOT_SUPPORTED;
  if (!wait && p->value.flags)
    return CUDA_ERROR_INVALID_VALUE; /* the second version of these calls has no writes without a fence; so an H200 */
  /* The driver's own memory or registered memory; an address that it does not know is refused. */
  if (!p->value.address || p->value.address % width || !fake_range_holds(p->value.address, width, &kind) || kind == MEM_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

static CUresult memops(const char *call, CUstream handle, unsigned n, const CUstreamBatchMemOpParams *list, unsigned flags) {
  CUstream s;
  CUresult rc = fake_enter_stream(call, handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (!n || !list || n > MOST_OPS || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  for (unsigned i = 0; i < n && rc == CUDA_SUCCESS; i++) rc = check_op(&list[i]);
  pthread_mutex_unlock(&fake_lock);
  if (rc != CUDA_SUCCESS) return rc;
  fake_work w = {.kind = DO_MEMOPS, .call = call, .memops = {n, malloc(n * sizeof *list)}};
  memcpy(w.memops.list, list, n * sizeof *list);
  return fake_submit(s, w, NULL);
}

CUresult fake_StreamBatchMemOp(CUstream s, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags) {
  return memops("cuStreamBatchMemOp_v2", s, n, list, flags);
}

static CUresult one(const char *call, CUstream s, int operation, CUdeviceptr at, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams p = {0};
  p.value.operation = operation;
  p.value.address = at;
  p.value.value64 = value;
  p.value.flags = flags;
  return memops(call, s, 1, &p, 0);
}

CUresult fake_StreamWriteValue32(CUstream s, CUdeviceptr at, uint32_t value, unsigned flags) {
  return one("cuStreamWriteValue32_v2", s, CU_STREAM_MEM_OP_WRITE_VALUE_32, at, value, flags);
}
CUresult fake_StreamWaitValue32(CUstream s, CUdeviceptr at, uint32_t value, unsigned flags) {
  return one("cuStreamWaitValue32_v2", s, CU_STREAM_MEM_OP_WAIT_VALUE_32, at, value, flags);
}
CUresult fake_StreamWriteValue64(CUstream s, CUdeviceptr at, uint64_t value, unsigned flags) {
  return one("cuStreamWriteValue64_v2", s, CU_STREAM_MEM_OP_WRITE_VALUE_64, at, value, flags);
}
CUresult fake_StreamWaitValue64(CUstream s, CUdeviceptr at, uint64_t value, unsigned flags) {
  return one("cuStreamWaitValue64_v2", s, CU_STREAM_MEM_OP_WAIT_VALUE_64, at, value, flags);
}
