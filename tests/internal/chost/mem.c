/* mem.c: see mem.h. */
#include "mem.h"

#include "cuda.h"

enum mem_mode mem_mode;
cudaStream_t mem_null;

/* Copies of the test go through a stream of their own, so that they order nothing that is under test. */
static __thread void *copies;

int mem_start(int rank) {
  if (!mem_cuda()) return OK(rank, gcclSetDeviceKind(gcclDeviceHost));
  return cu_use_device(rank) == 0 && OK(rank, gcclSetDeviceKind(gcclDeviceCuda)) && CU(rank, cu.StreamCreate(&copies, CU_NON_BLOCKING));
}

void mem_rank(int rank) {
  if (mem_cuda()) cu_use_device(rank);
}

int buf_new(struct buf *b, int rank, size_t bytes) {
  memset(b, 0, sizeof *b);
  b->bytes = bytes;
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes + !bytes)) return conf_fail(rank, "no memory for %zu bytes", bytes);
  b->at = b->copy = p;
  if (!mem_cuda()) return 1;
  cu_ptr d = 0;
  mem_rank(rank);
  if (!CU(rank, cu.MemAlloc(&d, bytes + !bytes))) return 0;
  b->at = (unsigned char *)(uintptr_t)d;
  return 1;
}

int buf_nccl(struct buf *b, int rank, size_t bytes) {
  void *p = NULL, *copy = NULL;
  memset(b, 0, sizeof *b);
  mem_rank(rank);
  if (!OK(rank, ncclMemAlloc(&p, bytes))) return 0;
  b->bytes = bytes;
  b->nccl = 1;
  b->at = b->copy = p;
  if (!mem_cuda()) return 1;
  if (posix_memalign(&copy, 64, bytes)) return conf_fail(rank, "no memory for %zu bytes", bytes);
  b->copy = copy;
  return 1;
}

void buf_free(struct buf *b, int rank) {
  if (!b->at) return;
  mem_rank(rank);
  if (b->nccl)
    OK(rank, ncclMemFree(b->at));
  else if (mem_cuda())
    CU(rank, cu.MemFree((cu_ptr)(uintptr_t)b->at));
  else
    free(b->at);
  if (b->copy != b->at) free(b->copy);
  memset(b, 0, sizeof *b);
}

static void copy(void *to, const void *from, size_t n) {
  if (!n || !mem_cuda()) return;
  CU(0, cu.MemcpyAsync((cu_ptr)(uintptr_t)to, (cu_ptr)(uintptr_t)from, n, copies));
  CU(0, cu.StreamSynchronize(copies));
}

void buf_put(const struct buf *b, size_t off, size_t n) { copy(b->at + off, b->copy + off, n); }
void buf_get(const struct buf *b, size_t off, size_t n) { copy(b->copy + off, b->at + off, n); }

static ncclResult_t code(int rc, const char *call) {
  if (rc == CU_SUCCESS) return ncclSuccess;
  if (rc == CU_NOT_READY) return ncclInProgress;
  conf_note("%s: the driver says %d", call, rc);
  return ncclUnhandledCudaError;
}

ncclResult_t mem_stream_create(cudaStream_t *s) {
  return mem_cuda() ? code(cu.StreamCreate((void **)s, CU_NON_BLOCKING), "cuStreamCreate") : gcclStreamCreate(s);
}
ncclResult_t mem_stream_sync(cudaStream_t s) {
  return mem_cuda() ? code(cu.StreamSynchronize(s), "cuStreamSynchronize") : gcclStreamSynchronize(s);
}
ncclResult_t mem_stream_query(cudaStream_t s) { return mem_cuda() ? code(cu.StreamQuery(s), "cuStreamQuery") : gcclStreamQuery(s); }
ncclResult_t mem_stream_destroy(cudaStream_t s) {
  if (!mem_cuda()) return gcclStreamDestroy(s);
  ncclResult_t rc = mem_stream_sync(s);
  ncclResult_t end = code(cu.StreamDestroy(s), "cuStreamDestroy");
  return rc == ncclSuccess ? end : rc;
}
