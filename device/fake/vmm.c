/* Virtual memory management: physical memory by handle, reserved addresses, mappings, export and import as descriptors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

typedef struct fake_share {
  struct fake_share *next;
  CUmemGenericAllocationHandle handle;
  int fd, device, types, refs, imported;
  size_t bytes;
  uint64_t id;
} fake_share;
static fake_share *shares;

typedef struct reserved {
  struct reserved *next;
  char *base;
  size_t bytes;
} reserved;
static reserved *reservations;

static fake_share *share_of(CUmemGenericAllocationHandle h) {
  for (fake_share *s = shares; s; s = s->next)
    if (s->handle == h && s->refs > 0) return s;
  return NULL;
}

static fake_share *share_add(int fd, int device, int types, size_t bytes, int imported) {
  static CUmemGenericAllocationHandle last = 0x1000;
  fake_share *s = calloc(1, sizeof *s);
  *s = (fake_share){shares, ++last, fd, device, types, 1, imported, bytes, fake_next_id()};
  shares = s;
  return s;
}

static void share_unref(fake_share *s) {
  if (--s->refs) return;
  close(s->fd);
  if (!s->imported) fake_count(s->device, -(long long)s->bytes);
  for (fake_share **p = &shares; *p; p = &(*p)->next)
    if (*p == s) {
      *p = s->next;
      break;
    }
  free(s);
}

static CUresult check_prop(const CUmemAllocationProp *p) {
  if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (p->location.id < 0 || p->location.id >= fake_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  /* No fabric here: CUDA_ERROR_NOT_SUPPORTED or NOT_PERMITTED on such machines. */
  return p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult fake_MemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *p, int option) {
  CUresult rc = fake_enter("cuMemGetAllocationGranularity", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || option < 0 || option > 1) return CUDA_ERROR_INVALID_VALUE;
  rc = check_prop(p);
  if (rc == CUDA_SUCCESS) *out = FAKE_GRANULARITY;
  return rc;
}

CUresult fake_MemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *p, unsigned long long flags) {
  CUresult rc = fake_enter("cuMemCreate", UNSAFE, NULL);
  if (rc == CUDA_SUCCESS) rc = check_prop(p);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || !bytes || bytes % FAKE_GRANULARITY || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  int fd = fake_file_new(bytes, p->location.id, 0, NULL);
  if (fd < 0)
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  else
    *out = share_add(fd, p->location.id, p->requestedHandleTypes, bytes, 0)->handle;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemRelease(CUmemGenericAllocationHandle h) {
  CUresult rc = fake_enter("cuMemRelease", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_share *s = share_of(h);
  int mappings = 0;
  for (fake_range *r = fake_ranges; r && s; r = r->next) mappings += r->share == s;
  if (!s || s->refs <= mappings) /* as many releases as creates and retains */
    rc = CUDA_ERROR_INVALID_VALUE;
  else
    share_unref(s);
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
  CUresult rc = fake_enter("cuMemRetainAllocationHandle", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_range *r = fake_range_of((CUdeviceptr)(uintptr_t)address);
  if (!out || !r || r->kind != MEM_VMM) {
    rc = CUDA_ERROR_INVALID_VALUE; /* also for memory of cuMemAlloc (measured) */
  } else {
    r->share->refs++;
    *out = r->share->handle;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemGetAllocationProperties(CUmemAllocationProp *out, CUmemGenericAllocationHandle h) {
  CUresult rc = fake_enter("cuMemGetAllocationPropertiesFromHandle", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_share *s = share_of(h);
  if (!s || !out) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    memset(out, 0, sizeof *out);
    out->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    out->requestedHandleTypes = s->types;
    out->location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, s->device};
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* --- addresses --- */

CUresult fake_MemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  CUresult rc = fake_enter("cuMemAddressReserve", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || !bytes || bytes % FAKE_GRANULARITY || flags || (alignment & (alignment - 1))) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < FAKE_GRANULARITY) alignment = FAKE_GRANULARITY;
  (void)wish; /* only a hint */
  char *p = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char *base = (char *)fake_round((size_t)p, alignment);
  if (base > p) munmap(p, (size_t)(base - p));
  if (base + bytes < p + bytes + alignment) munmap(base + bytes, (size_t)(p + alignment - base));
  reserved *r = calloc(1, sizeof *r);
  pthread_mutex_lock(&fake_lock);
  *r = (reserved){reservations, base, bytes};
  reservations = r;
  pthread_mutex_unlock(&fake_lock);
  *out = (CUdeviceptr)(uintptr_t)base;
  return CUDA_SUCCESS;
}

static reserved **reservation_of(CUdeviceptr p, size_t bytes) {
  char *at = (char *)(uintptr_t)p;
  for (reserved **r = &reservations; *r; r = &(*r)->next)
    if (at >= (*r)->base && at + bytes <= (*r)->base + (*r)->bytes) return r;
  return NULL;
}

static int mapped_in(CUdeviceptr p, size_t bytes) {
  for (fake_range *r = fake_ranges; r; r = r->next)
    if (r->kind == MEM_VMM && r->base < (char *)(uintptr_t)p + bytes && (char *)(uintptr_t)p < r->base + r->bytes) return 1;
  return 0;
}

CUresult fake_MemAddressFree(CUdeviceptr p, size_t bytes) {
  CUresult rc = fake_enter("cuMemAddressFree", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  reserved **at = reservation_of(p, bytes), *r = at ? *at : NULL;
  if (!r || r->base != (char *)(uintptr_t)p || r->bytes != bytes || mapped_in(p, bytes)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    *at = r->next;
    munmap(r->base, r->bytes);
    free(r);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags) {
  CUresult rc = fake_enter("cuMemMap", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_share *s = share_of(h);
  if (!s || flags || !bytes || p % FAKE_GRANULARITY || bytes % FAKE_GRANULARITY || offset || bytes > s->bytes ||
      !reservation_of(p, bytes) || mapped_in(p, bytes)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else if (!fake_map_file(s->fd, bytes, (void *)(uintptr_t)p)) {
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    mprotect((void *)(uintptr_t)p, bytes, PROT_NONE); /* until cuMemSetAccess */
    fake_range *r = fake_range_add(MEM_VMM, (void *)(uintptr_t)p, bytes, -1, NULL);
    r->share = s;
    r->device = s->device;
    s->refs++;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* Does not wait for the device (measured); what still uses the memory then faults. */
CUresult fake_MemUnmap(CUdeviceptr p, size_t bytes) {
  CUresult rc = fake_enter("cuMemUnmap", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  rc = CUDA_ERROR_INVALID_VALUE;
  char *at = (char *)(uintptr_t)p, *end = at + bytes;
  /* Several whole mappings may be taken down at once. */
  while (at < end) {
    fake_range *r = fake_range_of((CUdeviceptr)(uintptr_t)at);
    if (!r || r->kind != MEM_VMM || r->base != at || at + r->bytes > end) break;
    at += r->bytes;
    fake_share *s = r->share;
    if (mmap(r->base, r->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    for (fake_range **q = &fake_ranges; *q; q = &(*q)->next)
      if (*q == r) {
        *q = r->next;
        break;
      }
    free(r);
    share_unref(s);
    if (at == end) rc = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *d, size_t n) {
  CUresult rc = fake_enter("cuMemSetAccess", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!d || !n || !bytes) return CUDA_ERROR_INVALID_VALUE;
  int some = 0;
  for (size_t i = 0; i < n; i++) {
    if (d[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || d[i].location.id < 0 || d[i].location.id >= fake_device_count())
      return CUDA_ERROR_INVALID_DEVICE;
    some |= d[i].flags;
  }
  enum fake_mem kind;
  pthread_mutex_lock(&fake_lock);
  if (!fake_range_holds(p, bytes, &kind) || kind != MEM_VMM) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    int prot = some == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE : some ? PROT_READ : PROT_NONE;
    int key = fake_memory_key();
    if (key > 0 ? pkey_mprotect((void *)(uintptr_t)p, bytes, prot, key) : mprotect((void *)(uintptr_t)p, bytes, prot))
      rc = CUDA_ERROR_UNKNOWN;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* --- between processes --- */

CUresult fake_MemExportToShareableHandle(void *out, CUmemGenericAllocationHandle h, int type, unsigned long long flags) {
  CUresult rc = fake_enter("cuMemExportToShareableHandle", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_lock(&fake_lock);
  fake_share *s = share_of(h);
  if (!out || flags || !s || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(s->types & type)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
      rc = CUDA_ERROR_OPERATING_SYSTEM;
    else
      *(int *)out = fd;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_MemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os, int type) {
  CUresult rc = fake_enter("cuMemImportFromShareableHandle", UNSAFE, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) return CUDA_ERROR_NOT_SUPPORTED;
  if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  fake_trailer t;
  int fd = (int)(intptr_t)os;
  if (fake_file_read(fd, &t) || t.device >= fake_device_count()) return CUDA_ERROR_INVALID_VALUE;
  int mine = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (mine < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  pthread_mutex_lock(&fake_lock);
  *out = share_add(mine, t.device, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, t.bytes, 1)->handle;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

CUresult fake_MemGetHandleForAddressRange(void *out, CUdeviceptr p, size_t bytes, int type, unsigned long long flags) {
  (void)out, (void)p, (void)bytes, (void)type, (void)flags;
  CUresult rc = fake_enter("cuMemGetHandleForAddressRange", IN_CONTEXT, NULL);
  return rc == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : rc; /* no dmabuf */
}
