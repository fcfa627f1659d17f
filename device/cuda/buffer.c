/* Buffers: what the driver knows about a pointer, and how an executor in another process reaches it.
 *
 * A buffer's identity is the driver's BUFFER_ID, asked at every call (0.12 µs), once for an allocation: addresses are used again after a
 * free, and a mapping kept by address would silently be another buffer's. A process maps a peer's allocation once, for all its communicators, and keeps it
 * until the last of them goes. What legacy IPC has mapped ends before when its owner shows another allocation at that place: the
 * driver does not map that beside the old one (error 208, tried on driver 580).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

typedef struct {
  unsigned type;
  int ordinal;
  uint64_t id;
  CUdeviceptr base;
  size_t size;
  unsigned ipc;
} facts;

/* The driver answers for pointers that it does not know with zeros. */
static CUresult ask(const void *ptr, facts *f) {
  static int what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                       CU_POINTER_ATTRIBUTE_BUFFER_ID,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                       CU_POINTER_ATTRIBUTE_RANGE_SIZE,  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  void *to[] = {&f->type, &f->ordinal, &f->id, &f->base, &f->size, &f->ipc};
  memset(f, 0, sizeof *f);
  return gccl_cu.PointerGetAttributes(sizeof what / sizeof *what, what, to, (CUdeviceptr)(uintptr_t)ptr);
}

/* What a thread has asked for the call that it makes: of the allocations of its send and receive buffer. */
static __thread facts asked[2] __attribute__((tls_model("initial-exec")));

void gccl_cuda_forget(void) { asked[0].size = asked[1].size = 0; }

static CUresult ask_once(const void *ptr, facts *f) {
  for (int i = 0; i < 2; i++) {
    if ((uint64_t)(uintptr_t)ptr - asked[i].base >= asked[i].size) continue;
    *f = asked[i];
    return CUDA_SUCCESS;
  }
  CUresult e = ask(ptr, f);
  if (e) return e;
  asked[0] = asked[1];
  asked[1] = *f;
  return e;
}

/* --- the owner's side --- */

/* Handles of allocations that have been exported, by id. */
enum { EXPORTS = 256 };
static struct {
  uint64_t id;
  CUipcMemHandle handle;
} exports[EXPORTS];
static pthread_mutex_t exports_lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult export_handle(const facts *f, char out[64]) {
  CUresult e = CUDA_SUCCESS;
  pthread_mutex_lock(&exports_lock);
  unsigned at = (unsigned)(f->id % EXPORTS);
  if (exports[at].id != f->id) {
    e = gccl_cu.IpcGetMemHandle(&exports[at].handle, f->base);
    exports[at].id = e ? 0 : f->id;
  }
  memcpy(out, &exports[at].handle, 64);
  pthread_mutex_unlock(&exports_lock);
  return e;
}

int gccl_cuda_check_buffer(const gccl_cuda_comm *d, const void *ptr, uint64_t bytes, const char *what, int *hidden, char *text,
                           size_t max) {
  facts f;
  CUresult e = ask_once(ptr, &f);
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  if (e) {
    snprintf(text, max, "%s %p: cuPointerGetAttributes: error %d (%s)", what, ptr, e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  if (f.type == 0 && f.id == 0) {
    snprintf(text, max,
             "%s %p is no memory that device %d knows: it is ordinary host memory or has been freed: pass memory of cudaMalloc, "
             "cudaMallocAsync or ncclMemAlloc",
             what, ptr, d->cx->ordinal);
    return GCCL_RC_ARGUMENT;
  }
  if (f.type == CU_MEMORYTYPE_DEVICE && f.ordinal >= 0 && f.ordinal != d->cx->ordinal) {
    snprintf(text, max,
             "%s %p is memory of device %d, and the communicator was made for device %d: call cudaSetDevice before the allocation and "
             "before ncclCommInitRank",
             what, ptr, f.ordinal, d->cx->ordinal);
    return GCCL_RC_ARGUMENT;
  }
  if (f.size && (at < f.base || bytes > f.base + f.size - at)) {
    snprintf(text, max, "%s %p: %llu bytes end past its allocation of %llu bytes at 0x%llx: check count and type", what, ptr,
             (unsigned long long)bytes, (unsigned long long)f.size, f.base);
    return GCCL_RC_ARGUMENT;
  }
  *hidden = !f.ipc && !gccl_cuda_mem_owns(f.id);
  return 0;
}

int gccl_cuda_describe(gccl_cuda_comm *d, const void *ptr, int local, gccl_cuda_ref *out) {
  facts f;
  out->addr = (uint64_t)(uintptr_t)ptr;
  out->kind = GCCL_CUDA_LOCAL;
  if (local) return 0;
  CUresult e = ask_once(ptr, &f);
  if (e) return gccl_cuda_failed(d->comm, e, "cuPointerGetAttributes");
  out->base = f.base;
  out->size = f.size;
  out->id = f.id;
  out->device = f.ordinal;
  out->kind = gccl_cuda_mem_owns(f.id) ? GCCL_CUDA_HANDLE : GCCL_CUDA_IPC;
  if (out->kind == GCCL_CUDA_IPC && (e = export_handle(&f, out->handle))) return gccl_cuda_failed(d->comm, e, "cuIpcGetMemHandle");
  return 0;
}

/* --- the executor's side --- */

/* A mapping of this process. */
typedef struct import {
  struct import *next;
  const gccl_cuda_context *cx;
  uint64_t owner, id, base, bytes; /* the process, and what the allocation is there */
  int kind, refs;                  /* communicators that have it */
  _Atomic(int) replaced;           /* closed: the owner has freed it */
  CUdeviceptr at;
  size_t size; /* of a handle's mapping */
} import;

/* A communicator's hold of a mapping. */
struct gccl_cuda_import {
  gccl_cuda_import *next;
  import *of;
};

static import *imports;
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;

int (*gccl_cuda_fetch)(struct ncclComm *, int rank, uint64_t id, uint64_t *size, char *text);

static CUresult open_ipc(import *i, const gccl_cuda_ref *r) {
  CUipcMemHandle h;
  memcpy(&h, r->handle, sizeof h);
  return gccl_cu.IpcOpenMemHandle(&i->at, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static CUresult open_handle(gccl_cuda_comm *d, int peer, import *i, const gccl_cuda_ref *r, char *text) {
  CUmemGenericAllocationHandle h;
  CUresult e = gccl_cuda_import_handle(d, peer, r->id, &h, &i->size, text);
  if (e) return e;
  e = gccl_cuda_map_handle(h, i->size, d->cx->ordinal, &i->at);
  gccl_cuda_drop_handle(h); /* the mapping keeps the memory */
  return e;
}

/* Preconditions of this and the next three: imports_lock is held. */
static void unmap(import *i) {
  if (i->kind == GCCL_CUDA_IPC)
    gccl_cu.IpcCloseMemHandle(i->at);
  else
    gccl_cuda_unmap(i->at, i->size);
}

/* Closes what the owner has freed: another of its allocations stands there now. Its operations had ended before that. */
static void close_replaced(const gccl_cuda_context *cx, uint64_t owner, const gccl_cuda_ref *r) {
  for (import *i = imports; i; i = i->next) {
    if (i->kind != GCCL_CUDA_IPC || i->cx != cx || i->owner != owner || atomic_load(&i->replaced)) continue;
    if (i->base >= r->base + r->size || r->base >= i->base + i->bytes) continue;
    unmap(i);
    atomic_store(&i->replaced, 1);
  }
}

static void release_import(import *i) {
  if (--i->refs > 0) return;
  for (import **p = &imports; *p; p = &(*p)->next)
    if (*p == i) {
      *p = i->next;
      break;
    }
  if (!atomic_load(&i->replaced)) unmap(i);
  free(i);
}

static import *find_import(const gccl_cuda_comm *d, uint64_t owner, uint64_t id) {
  import *i = imports;
  while (i && (i->cx != d->cx || i->owner != owner || i->id != id || atomic_load(&i->replaced))) i = i->next;
  return i;
}

/* Maps the allocation of r, or finds its mapping; the hold is d's. */
static CUresult hold(gccl_cuda_comm *d, int peer, const gccl_cuda_ref *r, gccl_cuda_import *h, char *why) {
  uint64_t owner = d->peer[peer].owner;
  CUresult e = CUDA_SUCCESS;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  pthread_mutex_lock(&imports_lock);
  import *i = find_import(d, owner, r->id);
  if (!i && !(i = calloc(1, sizeof *i))) e = CUDA_ERROR_OUT_OF_MEMORY;
  if (!e && !i->refs) {
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    if (r->kind == GCCL_CUDA_IPC) close_replaced(d->cx, owner, r);
    *i = (import){.next = imports, .cx = d->cx, .owner = owner, .id = r->id, .base = r->base, .bytes = r->size, .kind = r->kind};
    e = r->kind == GCCL_CUDA_IPC ? open_ipc(i, r) : open_handle(d, peer, i, r, why);
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    if (e) {
      free(i);
      i = NULL;
    } else {
      imports = i;
    }
  }
  if (i) i->refs++;
  pthread_mutex_unlock(&imports_lock);
  h->of = i;
  return e;
}

CUdeviceptr gccl_cuda_import_ref(gccl_cuda_comm *d, int peer, const gccl_cuda_ref *r, char *text, size_t max) {
  uint64_t owner = d->peer[peer].owner;
  for (gccl_cuda_import **p = &d->imports, *h; (h = *p);) {
    if (atomic_load_explicit(&h->of->replaced, memory_order_relaxed)) {
      *p = h->next;
      pthread_mutex_lock(&imports_lock);
      release_import(h->of);
      pthread_mutex_unlock(&imports_lock);
      free(h);
      continue;
    }
    if (h->of->owner == owner && h->of->id == r->id) return h->of->at + (r->addr - r->base);
    p = &h->next;
  }
  char why[512] = "";
  gccl_cuda_import *h = calloc(1, sizeof *h);
  CUresult e = h ? hold(d, peer, r, h, why) : CUDA_ERROR_OUT_OF_MEMORY;
  if (e) {
    snprintf(text, max, "rank %d of %d: memory 0x%llx of rank %d cannot be mapped: %s: error %d (%s)%s%s", d->rank, d->nranks,
             (unsigned long long)r->addr, peer, r->kind == GCCL_CUDA_IPC ? "cuIpcOpenMemHandle" : "importing its handle", e,
             gccl_cuda_text(e), why[0] ? ": " : "", why);
    free(h);
    return 0;
  }
  h->next = d->imports;
  d->imports = h;
  return h->of->at + (r->addr - r->base);
}

CUdeviceptr gccl_cuda_reach(gccl_cuda_comm *d, int peer, const gccl_cuda_ref *r) {
  struct ncclComm *c = d->comm;
  char text[512] = "";
  if (r->kind == GCCL_CUDA_LOCAL) return r->addr;
  CUdeviceptr at = gccl_cuda_import_ref(d, peer, r, text, sizeof text);
  if (!at) gccl_comm_latch(c, GCCL_RC_CUDA, "%s", text);
  return at;
}

void gccl_cuda_imports_drop(gccl_cuda_comm *d) {
  while (d->imports) {
    gccl_cuda_import *h = d->imports;
    d->imports = h->next;
    pthread_mutex_lock(&imports_lock);
    release_import(h->of);
    pthread_mutex_unlock(&imports_lock);
    free(h);
  }
}
