/* Memory of ncclMemAlloc on a GPU: physical memory with a handle that other processes can import, mapped for all GPUs that can
 * reach it. The list of allocations also says what a window may lie in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

typedef struct allocation {
  struct allocation *next;
  CUdeviceptr at;
  size_t size; /* mapped */
  CUmemGenericAllocationHandle handle;
  uint64_t id;
  int ordinal, pins, freed;
} allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static allocation *list;

static CUresult access_for_all(CUdeviceptr at, size_t size, int ordinal) {
  CUmemAccessDesc access[64];
  size_t n = 0;
  for (int i = 0; i < gccl_cuda_devices() && n < 64; i++) {
    int can = i == ordinal;
    if (!can) gccl_cu.DeviceCanAccessPeer(&can, i, ordinal);
    if (can) access[n++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, i}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  return gccl_cu.MemSetAccess(at, size, access, n);
}

/* Around all calls that make, import, map, unmap or release memory by handle: threads that unmap the same memory at once make the driver free something of its own twice
 * (driver 580.159.04: AddressSanitizer, one run in thirty with eight threads). Taken last. */
static pthread_mutex_t driver = PTHREAD_MUTEX_INITIALIZER;

CUresult gccl_cuda_map_at(CUdeviceptr at, CUmemGenericAllocationHandle handle, size_t size, int ordinal) {
  pthread_mutex_lock(&driver);
  CUresult e = gccl_cu.MemMap(at, size, 0, handle, 0);
  if (!e && (e = access_for_all(at, size, ordinal))) gccl_cu.MemUnmap(at, size);
  pthread_mutex_unlock(&driver);
  return e;
}

void gccl_cuda_unmap_at(CUdeviceptr at, size_t size) {
  pthread_mutex_lock(&driver);
  gccl_cu.MemUnmap(at, size);
  pthread_mutex_unlock(&driver);
}

void gccl_cuda_drop_handle(CUmemGenericAllocationHandle handle) {
  pthread_mutex_lock(&driver);
  gccl_cu.MemRelease(handle);
  pthread_mutex_unlock(&driver);
}

CUresult gccl_cuda_map_handle(CUmemGenericAllocationHandle handle, size_t size, int ordinal, CUdeviceptr *out) {
  CUdeviceptr at = 0;
  CUresult e = gccl_cu.MemAddressReserve(&at, size, 0, 0, 0);
  if (e) return e;
  if ((e = gccl_cuda_map_at(at, handle, size, ordinal)))
    gccl_cu.MemAddressFree(at, size);
  else
    *out = at;
  return e;
}

void gccl_cuda_unmap(CUdeviceptr at, size_t size) {
  gccl_cuda_unmap_at(at, size);
  gccl_cu.MemAddressFree(at, size);
}

/* The properties of all such memory of a device, and what its sizes and addresses are multiples of. */
static CUresult kind_of_memory(int ordinal, CUmemAllocationProp *prop, size_t *grain) {
  int rdma = 0;
  gccl_cu.DeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, ordinal);
  *prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}};
  prop->allocFlags.gpuDirectRDMACapable = (unsigned char)(rdma != 0);
  return gccl_cu.MemGetAllocationGranularity(grain, prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
}

CUresult gccl_cuda_mem_grain(int ordinal, size_t *grain) {
  CUmemAllocationProp prop;
  return kind_of_memory(ordinal, &prop, grain);
}

static CUresult make(allocation *a, size_t bytes, const char **step) {
  CUmemAllocationProp prop;
  size_t grain = 0;
  *step = "cuMemGetAllocationGranularity";
  CUresult e = kind_of_memory(a->ordinal, &prop, &grain);
  if (e) return e;
  a->size = (bytes + grain - 1) / grain * grain;
  *step = "cuMemCreate";
  pthread_mutex_lock(&driver);
  e = gccl_cu.MemCreate(&a->handle, a->size, &prop, 0);
  pthread_mutex_unlock(&driver);
  if (e) return e;
  *step = "mapping the memory";
  if (!(e = gccl_cuda_map_handle(a->handle, a->size, a->ordinal, &a->at))) {
    *step = "cuPointerGetAttribute";
    if (!(e = gccl_cu.PointerGetAttribute(&a->id, CU_POINTER_ATTRIBUTE_BUFFER_ID, a->at))) return e;
    gccl_cuda_unmap(a->at, a->size);
  }
  gccl_cuda_drop_handle(a->handle);
  return e;
}

int gccl_cuda_mem_alloc(void **out, size_t bytes, char *text, size_t max) {
  CUcontext ctx = NULL;
  CUdevice dev = 0;
  const char *step = "cuCtxGetCurrent";
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  allocation *a = calloc(1, sizeof *a);
  if (!a) {
    snprintf(text, max, "out of memory");
    return GCCL_RC_SYSTEM;
  }
  CUresult e = gccl_cu.CtxGetCurrent(&ctx);
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  if (!e && ctx) e = gccl_cu.CtxGetDevice(&dev);
  a->ordinal = dev;
  /* A thread without a context gets the primary one of device 0, as the runtime does: the first mapping makes it. */
  if (!e && !ctx) {
    step = "cuDevicePrimaryCtxRetain";
    if (!(e = gccl_cu.DevicePrimaryCtxRetain(&ctx, dev))) e = gccl_cu.CtxSetCurrent(ctx);
  }
  if (!e) e = make(a, bytes, &step);
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  if (e) {
    snprintf(text, max, "device %d: %s: error %d (%s)%s", a->ordinal, step, e, gccl_cuda_text(e),
             e == CUDA_ERROR_OUT_OF_MEMORY ? ": the device has no memory left" : "");
    free(a);
    return GCCL_RC_CUDA;
  }
  pthread_mutex_lock(&lock);
  a->next = list;
  list = a;
  pthread_mutex_unlock(&lock);
  *out = (void *)(uintptr_t)a->at;
  return 0;
}

int gccl_cuda_memory_new(gccl_cuda_comm *d, uint64_t bytes, void **out, char *text, size_t max) {
  CUcontext before;
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  int rc = gccl_cuda_mem_alloc(out, bytes, text, max);
  gccl_cuda_leave(d->cx, before);
  if (!rc && (rc = gccl_cuda_write(d->cx, (CUdeviceptr)(uintptr_t)*out, NULL, bytes, text, max))) gccl_cuda_mem_free(*out);
  return rc;
}

/* Preconditions: lock is held. */
static allocation *find(CUdeviceptr at) {
  allocation *a = list;
  while (a && (at < a->at || at - a->at >= a->size)) a = a->next;
  return a;
}

/* Takes it off the list and gives it back. Preconditions: lock is held. */
static void drop(allocation *a) {
  for (allocation **p = &list; *p; p = &(*p)->next)
    if (*p == a) {
      *p = a->next;
      break;
    }
  gccl_cuda_unmap(a->at, a->size);
  gccl_cuda_drop_handle(a->handle);
  free(a);
}

int gccl_cuda_mem_free(void *ptr) {
  pthread_mutex_lock(&lock);
  allocation *a = find((CUdeviceptr)(uintptr_t)ptr);
  int ok = a && a->at == (CUdeviceptr)(uintptr_t)ptr && !a->freed;
  if (ok) {
    a->freed = 1;
    if (a->pins == 0) drop(a); /* else with the last window */
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

int gccl_cuda_mem_pin(const void *ptr, uint64_t bytes, gccl_cuda_span *out) {
  pthread_mutex_lock(&lock);
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)ptr;
  allocation *a = find(at);
  if (a && !a->freed) {
    *out = (gccl_cuda_span){.base = a->at, .size = a->size, .id = a->id, .ordinal = a->ordinal};
    if (bytes <= a->size - (at - a->at)) a->pins++;
  }
  int ok = a && !a->freed;
  pthread_mutex_unlock(&lock);
  return ok;
}

void gccl_cuda_mem_unpin(CUdeviceptr base) {
  pthread_mutex_lock(&lock);
  allocation *a = find(base);
  if (a && --a->pins == 0 && a->freed) drop(a);
  pthread_mutex_unlock(&lock);
}

int gccl_cuda_mem_owns(uint64_t id) {
  pthread_mutex_lock(&lock);
  allocation *a = list;
  while (a && a->id != id) a = a->next;
  pthread_mutex_unlock(&lock);
  return a != NULL;
}

CUmemGenericAllocationHandle gccl_cuda_mem_handle(uint64_t id, size_t *size) {
  CUmemGenericAllocationHandle h = 0;
  pthread_mutex_lock(&lock);
  allocation *a = list;
  while (a && a->id != id) a = a->next;
  pthread_mutex_lock(&driver);
  if (a && !gccl_cu.MemRetainAllocationHandle(&h, (void *)(uintptr_t)a->at)) *size = a->size;
  pthread_mutex_unlock(&driver);
  pthread_mutex_unlock(&lock);
  return h;
}

CUresult gccl_cuda_import_handle(gccl_cuda_comm *d, int peer, uint64_t id, CUmemGenericAllocationHandle *h, size_t *size, char *text) {
  uint64_t bytes = 0;
  int fd = gccl_cuda_fetch(d->comm, peer, id, &bytes, text);
  if (fd < 0) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&driver);
  CUresult e = gccl_cu.MemImportFromShareableHandle(h, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  pthread_mutex_unlock(&driver);
  close(fd);
  *size = bytes;
  return e;
}

int gccl_cuda_mem_export(uint64_t id, uint64_t *size) {
  int fd = -1;
  pthread_mutex_lock(&lock);
  allocation *a = list;
  while (a && a->id != id) a = a->next;
  if (a) {
    *size = a->size;
    if (gccl_cu.MemExportToShareableHandle(&fd, a->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) fd = -1;
  }
  pthread_mutex_unlock(&lock);
  return fd;
}
