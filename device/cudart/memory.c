/* Memory: every kind is ordinary memory; a list says what an address is, how much each device has given out, and refuses
 * to free what it does not know. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

enum { ALIGN = 512 }; /* cudaMalloc aligns to 256 at least (CUDA C++ programming guide) */

typedef struct block {
  struct block *next;
  char *at;
  size_t size;
  int device;
  enum memory_type type;
  int foreign; /* registered, not allocated here */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static uint64_t used[64];

static block **find(const void *p) {
  for (block **b = &blocks; *b; b = &(*b)->next)
    if ((const char *)p >= (*b)->at && (const char *)p < (*b)->at + (*b)->size) return b;
  return NULL;
}

enum memory_type cudart_memory_at(const void *p, int *device, void **base) {
  pthread_mutex_lock(&lock);
  block **b = find(p);
  enum memory_type type = b ? (*b)->type : MEM_UNKNOWN;
  if (device) *device = b ? (*b)->device : -1;
  if (base) *base = b ? (*b)->at : NULL;
  pthread_mutex_unlock(&lock);
  return type;
}

uint64_t cudart_memory_used(int device) {
  pthread_mutex_lock(&lock);
  uint64_t n = used[device];
  pthread_mutex_unlock(&lock);
  return n;
}

static cudaError_t add(char *at, size_t size, enum memory_type type, int foreign) {
  block *b = malloc(sizeof *b);
  if (!b) return cudart_set(ERR_MEMORY);
  int d = cudart_current();
  uint64_t most = cudart_memory();
  *b = (block){NULL, at, size, d, type, foreign};
  pthread_mutex_lock(&lock);
  int full = type != MEM_HOST && (size > most || used[d] > most - size);
  int twice = foreign && find(at);
  if (!full && !twice) {
    if (type != MEM_HOST) used[d] += size;
    b->next = blocks;
    blocks = b;
  }
  pthread_mutex_unlock(&lock);
  if (!full && !twice) return OK;
  free(b);
  return cudart_set(full ? ERR_MEMORY : ERR_REGISTERED);
}

static cudaError_t allocate(void **out, size_t size, enum memory_type type) {
  if (!out) return cudart_set(ERR_INVALID_VALUE);
  void *at = NULL;
  if (size) {
    if (size > SIZE_MAX / 2 || posix_memalign(&at, ALIGN, size)) return cudart_set(ERR_MEMORY);
    cudaError_t e = add(at, size, type, 0);
    if (e != OK) return free(at), e;
  }
  *out = at;
  return OK;
}

static cudaError_t release(void *p, int host, int foreign) {
  if (!p && !foreign) return OK;
  pthread_mutex_lock(&lock);
  block **at = find(p), *b = at ? *at : NULL;
  if (b && (b->at != p || b->foreign != foreign || (b->type == MEM_HOST) != host)) b = NULL;
  if (b) {
    *at = b->next;
    if (b->type != MEM_HOST) used[b->device] -= b->size;
  }
  pthread_mutex_unlock(&lock);
  if (!b) return cudart_set(foreign ? ERR_NOT_REGISTERED : ERR_INVALID_VALUE);
  if (!foreign) free(b->at);
  free(b);
  return OK;
}

CUDART_API cudaError_t cudaMalloc(void **p, size_t size) { return allocate(p, size, MEM_DEVICE); }
CUDART_API cudaError_t cudaMallocHost(void **p, size_t size) { return allocate(p, size, MEM_HOST); }
CUDART_API cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags) { return (void)flags, allocate(p, size, MEM_HOST); }
CUDART_API cudaError_t cudaMallocManaged(void **p, size_t size, unsigned flags) { return (void)flags, allocate(p, size, MEM_MANAGED); }

CUDART_API cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream) { return (void)stream, allocate(p, size, MEM_DEVICE); }

/* As in CUDA, freeing waits for the device: what is enqueued may still use the memory. */
CUDART_API cudaError_t cudaFree(void *p) {
  if (!p) return OK;
  int device;
  cudart_memory_at(p, &device, NULL);
  if (device >= 0) cudart_drain(device, 1);
  return release(p, 0, 0);
}

CUDART_API cudaError_t cudaFreeHost(void *p) {
  if (!p) return OK;
  int device;
  cudart_memory_at(p, &device, NULL);
  if (device >= 0) cudart_drain(device, 1);
  return release(p, 1, 0);
}

static void free_now(void *p) { release(p, 0, 0); }

CUDART_API cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
  if (!p) return OK;
  void *base;
  enum memory_type type = cudart_memory_at(p, NULL, &base);
  if (base != p || (type != MEM_DEVICE && type != MEM_MANAGED)) return cudart_set(ERR_INVALID_VALUE);
  return cudart_enqueue(stream, free_now, p);
}

CUDART_API cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags) {
  (void)flags;
  if (!p || !size) return cudart_set(ERR_INVALID_VALUE);
  return add(p, size, MEM_HOST, 1);
}

CUDART_API cudaError_t cudaHostUnregister(void *p) { return release(p, 1, 1); }

CUDART_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  if (!device || flags || cudart_memory_at(host, NULL, NULL) != MEM_HOST) return cudart_set(ERR_INVALID_VALUE);
  *device = host;
  return OK;
}

/* struct cudaPointerAttributes of 12; that of 13 goes on with reserved fields, which stay as they are: the call is the same in both. */
typedef struct {
  int type, device;
  void *device_pointer, *host_pointer;
} attributes;

CUDART_API cudaError_t cudaPointerGetAttributes(attributes *a, const void *p) {
  if (!a) return cudart_set(ERR_INVALID_VALUE);
  a->type = (int)cudart_memory_at(p, &a->device, NULL);
  a->device_pointer = a->type == MEM_UNKNOWN ? NULL : (void *)(uintptr_t)p;
  a->host_pointer = a->type == MEM_DEVICE ? NULL : (void *)(uintptr_t)p;
  return OK;
}
