/* What kernels see of a communicator: the table of its windows and the windows themselves, in the GPU's memory, and the word that ends
 * their waits, in pinned host memory. A program's ncclWindow_t points to the GPU's structure, as NCCL's does. */
#include <stdio.h>

#include "../../include/gccl_device/impl/mlx5.h"
#include "memory.h"

enum { WINDOWS = sizeof((struct ncclComm *)0)->windows / sizeof((struct ncclComm *)0)->windows[0] };

typedef struct {
  struct ncclDevCommWindowTable table[WINDOWS / 32];
  struct gcclWindow_device window[WINDOWS];
  gccl_gdaki_mem keys[WINDOWS];
  uint32_t rkeys[]; /* of each window, by rank */
} view;

static CUdeviceptr table_at(const gccl_cuda_comm *d, int i) {
  return d->view + offsetof(view, table) + (uint64_t)i * sizeof(struct ncclDevCommWindowTable);
}
static CUdeviceptr entry_at(const gccl_cuda_comm *d, int slot) {
  return table_at(d, slot / 32) + (uint64_t)(slot % 32) * sizeof(struct ncclDevCommWindowTable_Entry);
}

/* The GPU's memory of a communicator's view, made for its first window; of the virtual memory interface, because cuMemFree waits for
 * streams that wait (tried on driver 580). Preconditions: guard is held. */
static int make(gccl_cuda_comm *d, char *text, size_t max) {
  void *at = NULL;
  if (d->view) return 0;
  int rc = gccl_cuda_memory_new(d, sizeof(view) + (uint64_t)WINDOWS * (uint64_t)d->nranks * sizeof(uint32_t), &at, text, max);
  if (rc) return rc;
  d->view = (CUdeviceptr)(uintptr_t)at;
  for (int i = 0; i + 1 < WINDOWS / 32 && !rc; i++) {
    CUdeviceptr next = table_at(d, i + 1);
    rc = gccl_cuda_write(d->cx, table_at(d, i) + offsetof(struct ncclDevCommWindowTable, next), &next, sizeof next, text, max);
  }
  if (rc) gccl_cuda_view_drop(d);
  return rc;
}

/* The keys of a window for send queues, which net/gin has given it. */
static int show_keys(gccl_cuda_comm *d, const gccl_window *w, CUdeviceptr *out, char *text, size_t max) {
  gccl_gdaki_mem keys = *(const gccl_gdaki_mem *)w->dev.keys;
  uint64_t n = (uint64_t)d->nranks * sizeof *keys.rkeys;
  CUdeviceptr rkeys = d->view + offsetof(view, rkeys) + (uint64_t)w->id * n;
  *out = d->view + offsetof(view, keys) + (uint64_t)w->id * sizeof keys;
  int rc = gccl_cuda_write(d->cx, rkeys, keys.rkeys, n, text, max);
  keys.rkeys = (uint32_t *)(uintptr_t)rkeys;
  return rc ? rc : gccl_cuda_write(d->cx, *out, &keys, sizeof keys, text, max);
}

int gccl_cuda_show(gccl_cuda_comm *d, gccl_window *w, char *text, size_t max) {
  if (!w->flat) return 0; /* kernels cannot use it */
  pthread_mutex_lock(&d->guard);
  int rc = make(d, text, max);
  pthread_mutex_unlock(&d->guard);
  if (rc) return rc;
  CUdeviceptr at = d->view + offsetof(view, window) + (uint64_t)w->id * sizeof w->dev;
  struct ncclDevCommWindowTable_Entry entry = {(uintptr_t)w->user, w->size, (struct ncclWindow_vidmem *)(uintptr_t)at};
  struct gcclWindow_device dev = w->dev;
  CUdeviceptr keys = 0;
  rc = w->dev.keys ? show_keys(d, w, &keys, text, max) : 0;
  dev.keys = (void *)(uintptr_t)keys;
  if (!rc) rc = gccl_cuda_write(d->cx, at, &dev, sizeof dev, text, max);
  if (!rc && !w->resource) rc = gccl_cuda_write(d->cx, entry_at(d, w->id), &entry, sizeof entry, text, max);
  if (!rc) atomic_store(&d->comm->handles[w->id], w->handle = (void *)(uintptr_t)at);
  return rc;
}

void gccl_cuda_hide(gccl_cuda_comm *d, const gccl_window *w) {
  char text[256];
  struct ncclDevCommWindowTable_Entry none = {0};
  if (d->view && w->flat && !w->resource) /* where this fails no kernel will look any more */
    (void)gccl_cuda_write(d->cx, entry_at(d, w->id), &none, sizeof none, text, sizeof text);
}

void gccl_cuda_view_drop(gccl_cuda_comm *d) {
  if (d->view) gccl_cuda_mem_free((void *)(uintptr_t)d->view);
  d->view = 0;
}

/* A word of a page of the context, never used again: nobody knows which kernels still look at it. */
static uint32_t *abort_word(gccl_cuda_context *x, CUresult *e) {
  CUcontext before;
  uint32_t *at = NULL;
  enum { WORDS = 1024 };
  if ((*e = gccl_cuda_enter(x, &before))) return NULL;
  pthread_mutex_lock(&x->service.lock);
  if (x->service.aborts_left == 0 &&
      !(*e = gccl_cu.MemHostAlloc((void **)&x->service.aborts, WORDS * sizeof *at, CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP)))
    x->service.aborts_left = WORDS;
  if (!*e) {
    at = x->service.aborts + --x->service.aborts_left;
    *at = 0;
  }
  pthread_mutex_unlock(&x->service.lock);
  gccl_cuda_leave(x, before);
  return at;
}

uint32_t *gccl_cuda_abort_word(gccl_cuda_comm *d, CUresult *e) {
  struct ncclComm *c = d->comm;
  *e = CUDA_SUCCESS;
  pthread_mutex_lock(&d->guard);
  uint32_t *word = atomic_load(&c->gpu_abort);
  if (!word && (word = abort_word(d->cx, e))) {
    atomic_store(&c->gpu_abort, word);
    if (atomic_load(&c->kernel_abort)) *word = 1; /* whoever raised it may not have seen the word */
  }
  pthread_mutex_unlock(&d->guard);
  return word;
}

int gccl_cuda_kernel_view(gccl_cuda_comm *d, struct ncclDevCommWindowTable **table, uint32_t **abort_flag, char *text, size_t max) {
  CUresult e = CUDA_SUCCESS;
  pthread_mutex_lock(&d->guard);
  int rc = make(d, text, max);
  pthread_mutex_unlock(&d->guard);
  uint32_t *word = rc ? NULL : gccl_cuda_abort_word(d, &e);
  if (rc) return rc;
  if (e) {
    snprintf(text, max, "a word of pinned memory that ends the waits of kernels: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  *table = (struct ncclDevCommWindowTable *)(uintptr_t)table_at(d, 0);
  *abort_flag = word; /* with unified addresses memory of cuMemHostAlloc has one address */
  return 0;
}
