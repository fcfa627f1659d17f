/* Legacy IPC: memory of cuMemAlloc in another process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

typedef struct {
  char magic[8];
  int pid, fd;
  uint64_t token, base, bytes;
} ticket;
_Static_assert(sizeof(ticket) <= sizeof(CUipcMemHandle), "fits");

/* The handle stands for the whole allocation, whatever address inside it was given (cuIpcGetMemHandle). */
CUresult fake_IpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p) {
  CUresult rc = fake_enter("cuIpcGetMemHandle", IN_CONTEXT, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  fake_trailer t;
  if (!out || !r || r->kind != MEM_DEVICE || fake_file_read(r->fd, &t)) {
    rc = CUDA_ERROR_INVALID_VALUE; /* also for cuMemAllocAsync memory (measured), VMM and imported memory */
  } else {
    ticket k = {"fakeipc", getpid(), r->fd, t.token, (uint64_t)(uintptr_t)r->base, r->bytes};
    memset(out, 0, sizeof *out);
    memcpy(out->reserved, &k, sizeof k);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_IpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle h, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuIpcOpenMemHandle_v2", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  ticket k;
  memcpy(&k, h.reserved, sizeof k);
  if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || memcmp(k.magic, "fakeipc", 8)) return CUDA_ERROR_INVALID_VALUE;
  if (k.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT; /* not in the exporting process (measured) */
  pthread_mutex_lock(&fake_lock);
  for (fake_range *r = fake_ranges; r; r = r->next)
    if (r->kind == MEM_IPC && !memcmp(r->ipc, h.reserved, sizeof r->ipc)) { /* once a process; then counted */
      r->refs++;
      *out = (CUdeviceptr)(uintptr_t)r->base;
      pthread_mutex_unlock(&fake_lock);
      return CUDA_SUCCESS;
    }
  for (fake_range *r = fake_ranges; r; r = r->next) { /* another allocation of that process at the same place (measured) */
    ticket other;
    memcpy(&other, r->ipc, sizeof other);
    if (r->kind != MEM_IPC || other.pid != k.pid || other.base >= k.base + k.bytes || k.base >= other.base + other.bytes) continue;
    pthread_mutex_unlock(&fake_lock);
    return CUDA_ERROR_ALREADY_MAPPED;
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", k.pid, k.fd);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  fake_trailer t;
  void *p = NULL;
  /* The number of a descriptor is used again: the token tells whether it is still that memory. */
  if (fd >= 0 && !fake_file_read(fd, &t) && t.token == k.token) p = fake_map_file(fd, fake_round(k.bytes, FAKE_PAGE), NULL);
  if (fd >= 0) close(fd);
  if (p) {
    fake_range *r = fake_range_add(MEM_IPC, p, k.bytes, -1, ctx);
    memcpy(r->ipc, h.reserved, sizeof r->ipc);
    *out = (CUdeviceptr)(uintptr_t)p;
  } else {
    rc = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_IpcCloseMemHandle(CUdeviceptr p) {
  CUresult rc = fake_enter("cuIpcCloseMemHandle", IN_CONTEXT | UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  if (!r || r->kind != MEM_IPC || r->base != (char *)(uintptr_t)p) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else if (--r->refs == 0) {
    fake_await_idle(r->ctx, "cuIpcCloseMemHandle");
    fake_range_free(r);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}
