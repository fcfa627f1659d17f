/* Device memory, host memory, and what a pointer is.
 *
 * Every allocation is a file of its own, so that other processes can map it. An address that is freed is soon given out again,
 * with another buffer id, as the driver does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "memory.h"

fake_range *fake_ranges;
static long long used[FAKE_MAX_DEVICES];

size_t fake_round(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/* 0 when the processor has no protection keys, or GCCL_FAKE_PROTECT=0: device memory can be touched by anybody then. */
static int key;
static void make_key(void) {
  if (fake_setting("GCCL_FAKE_PROTECT", 1)) key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
}
int fake_memory_key(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_key);
  return key > 0 ? key : 0;
}

void fake_count(int device, long long bytes) { used[device] += bytes; }

uint64_t fake_next_id(void) {
  static uint64_t id;
  return ++id;
}

int fake_file_new(size_t bytes, int device, int ipc, uint64_t *token) {
  if (bytes > fake_device_bytes() || used[device] + (long long)bytes > (long long)fake_device_bytes()) return -1;
  fake_trailer t = {"fake cuda memor", bytes, 0, device, ipc};
  int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (getrandom(&t.token, sizeof t.token, 0) != sizeof t.token || ftruncate(fd, (off_t)(bytes + FAKE_PAGE)) ||
      pwrite(fd, &t, sizeof t, (off_t)bytes) != sizeof t) {
    close(fd);
    return -1;
  }
  if (token) *token = t.token;
  used[device] += (long long)bytes;
  return fd;
}

int fake_file_read(int fd, fake_trailer *t) {
  off_t end = lseek(fd, 0, SEEK_END);
  if (end < FAKE_PAGE || pread(fd, t, sizeof *t, end - FAKE_PAGE) != sizeof *t) return -1;
  return strcmp(t->magic, "fake cuda memor") || t->bytes + FAKE_PAGE != (uint64_t)end || t->device >= FAKE_MAX_DEVICES ? -1 : 0;
}

void *fake_map_file(int fd, size_t bytes, void *at) {
  void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
  if (p == MAP_FAILED) return NULL;
  int k = fake_memory_key();
  if (k > 0) pkey_mprotect(p, bytes, PROT_READ | PROT_WRITE, k);
  return p;
}

fake_range *fake_range_add(enum fake_mem kind, void *base, size_t bytes, int fd, CUcontext ctx) {
  fake_range *r = calloc(1, sizeof *r);
  *r = (fake_range){.next = fake_ranges,
                    .kind = kind,
                    .base = base,
                    .bytes = bytes,
                    .mapped = fake_round(bytes, FAKE_PAGE),
                    .fd = fd,
                    .device = ctx ? ctx->device : 0,
                    .refs = 1,
                    .id = fake_next_id(),
                    .ctx = ctx};
  fake_ranges = r;
  return r;
}

fake_range *fake_range_of(CUdeviceptr p) {
  for (fake_range *r = fake_ranges; r; r = r->next)
    if ((char *)(uintptr_t)p >= r->base && (char *)(uintptr_t)p < r->base + r->bytes) return r;
  return NULL;
}

/* VMM mappings that touch one another are one range for copies. */
int fake_range_holds(CUdeviceptr p, size_t bytes, enum fake_mem *kind) {
  *kind = MEM_NONE;
  while (bytes) {
    fake_range *r = fake_range_of(p);
    if (!r) return *kind == MEM_NONE;
    size_t here = (size_t)(r->base + r->bytes - (char *)(uintptr_t)p);
    *kind = r->kind;
    if (here >= bytes) break;
    p += here;
    bytes -= here;
  }
  return 1;
}

int fake_is_device(enum fake_mem k) { return k != MEM_NONE && k != MEM_HOST && k != MEM_REGISTERED; }

void fake_range_free(fake_range *r) {
  for (fake_range **p = &fake_ranges; *p; p = &(*p)->next)
    if (*p == r) {
      *p = r->next;
      break;
    }
  if (r->kind != MEM_REGISTERED) munmap(r->base, r->mapped);
  if (r->fd >= 0) close(r->fd);
  if (r->kind == MEM_DEVICE || r->kind == MEM_POOL || r->kind == MEM_MANAGED) fake_count(r->device, -(long long)r->mapped);
  free(r);
}

void fake_memory_of_ctx_gone(CUcontext c) {
  for (fake_range *r = fake_ranges; r;) {
    fake_range *next = r->next;
    if (r->ctx == c && r->kind != MEM_VMM) fake_range_free(r);
    r = next;
  }
}

/* --- device --- */

static CUresult allocate(CUcontext ctx, CUdeviceptr *out, size_t bytes, enum fake_mem kind) {
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  size_t whole = fake_round(bytes, FAKE_PAGE);
  CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&fake_lock);
  int fd = whole >= bytes ? fake_file_new(whole, ctx->device, kind == MEM_DEVICE, NULL) : -1;
  void *p = fd >= 0 ? mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (p != MAP_FAILED) {
    int k = kind == MEM_MANAGED ? 0 : fake_memory_key();
    if (k > 0) pkey_mprotect(p, whole, PROT_READ | PROT_WRITE, k);
    fake_range_add(kind, p, bytes, fd, ctx);
    *out = (CUdeviceptr)(uintptr_t)p;
    rc = CUDA_SUCCESS;
  } else if (fd >= 0) {
    close(fd);
    fake_count(ctx->device, -(long long)whole);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemAlloc(CUdeviceptr *out, size_t bytes) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemAlloc_v2", IN_CONTEXT | UNSAFE, &ctx);
  return rc == CUDA_SUCCESS ? allocate(ctx, out, bytes, MEM_DEVICE) : rc;
}

CUresult fake_MemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemAllocManaged", IN_CONTEXT | UNSAFE, &ctx);
  (void)flags;
  return rc == CUDA_SUCCESS ? allocate(ctx, out, bytes, MEM_MANAGED) : rc;
}

/* cuMemFree waits until nothing runs on the device any more (measured: it blocks while any stream of the context waits). */
CUresult fake_MemFree(CUdeviceptr p) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemFree_v2", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS || !p) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  if (!r || r->base != (char *)(uintptr_t)p || (r->kind != MEM_DEVICE && r->kind != MEM_MANAGED && r->kind != MEM_POOL)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    fake_await_idle(r->ctx, "cuMemFree");
    fake_range_free(r);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuMemAllocAsync", handle, &s);
  if (rc == CUDA_SUCCESS && s->capture) rc = CUDA_ERROR_NOT_SUPPORTED; /* memory nodes: not modelled */
  return rc == CUDA_SUCCESS ? allocate(s->ctx, out, bytes, MEM_POOL) : rc;
}

CUresult fake_MemFreeAsync(CUdeviceptr p, CUstream handle) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuMemFreeAsync", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  if (!r || r->base != (char *)(uintptr_t)p || (r->kind != MEM_POOL && r->kind != MEM_DEVICE)) rc = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&fake_lock);
  if (rc != CUDA_SUCCESS) return rc;
  return fake_submit(s, (fake_work){.kind = DO_FREE, .call = "cuMemFreeAsync", .free = p}, NULL);
}

CUresult fake_MemGetInfo(size_t *free_bytes, size_t *total) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemGetInfo_v2", IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  *total = fake_device_bytes();
  *free_bytes = *total - (size_t)used[ctx->device];
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

CUresult fake_MemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
  CUresult rc = fake_enter("cuMemGetAddressRange_v2", IN_CONTEXT, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of(p);
  if (!r || !fake_is_device(r->kind)) {
    rc = CUDA_ERROR_NOT_FOUND;
  } else {
    if (base) *base = (CUdeviceptr)(uintptr_t)r->base;
    if (bytes) *bytes = r->bytes;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* --- host --- */

CUresult fake_MemHostAlloc(void **out, size_t bytes, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemHostAlloc", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || !bytes || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  void *p = mmap(NULL, fake_round(bytes, FAKE_PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&fake_lock);
  fake_range_add(MEM_HOST, p, bytes, -1, ctx);
  pthread_mutex_unlock(&fake_lock);
  *out = p;
  return CUDA_SUCCESS;
}

static CUresult host_end(const char *call, void *at, enum fake_mem kind, CUresult unknown) {
  CUresult rc = fake_enter(call, IN_CONTEXT | UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of((CUdeviceptr)(uintptr_t)at);
  if (!r || r->base != at || r->kind != kind) {
    rc = unknown;
  } else {
    fake_await_idle(r->ctx, call); /* both block while any stream of the context waits */
    fake_range_free(r);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemFreeHost(void *p) { return host_end("cuMemFreeHost", p, MEM_HOST, CUDA_ERROR_INVALID_VALUE); }
CUresult fake_MemHostUnregister(void *p) {
  return host_end("cuMemHostUnregister", p, MEM_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult fake_MemHostRegister(void *p, size_t bytes, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuMemHostRegister_v2", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!p || !bytes || flags & ~15u) return CUDA_ERROR_INVALID_VALUE;
  /* The pages must be there. */
  uintptr_t first = (uintptr_t)p & ~(uintptr_t)(FAKE_PAGE - 1);
  if (msync((void *)first, (uintptr_t)p + bytes - first, MS_ASYNC)) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  for (fake_range *r = fake_ranges; r; r = r->next)
    if (r->base < (char *)p + bytes && (char *)p < r->base + r->bytes) rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (rc == CUDA_SUCCESS) fake_range_add(MEM_REGISTERED, p, bytes, -1, ctx);
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemHostGetDevicePointer(CUdeviceptr *out, void *p, unsigned flags) {
  CUresult rc = fake_enter("cuMemHostGetDevicePointer_v2", IN_CONTEXT, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of((CUdeviceptr)(uintptr_t)p);
  if (!r || fake_is_device(r->kind)) rc = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&fake_lock);
  if (rc == CUDA_SUCCESS) *out = (CUdeviceptr)(uintptr_t)p;
  return rc;
}
