/* Buffers that other processes cannot open (memory of pools, of the virtual memory interface without our handle, managed and pinned
 * memory): their owner lends memory that the executor can map. What is sent is copied there before "ready", what is received is
 * copied back behind "done", both in the owner's stream.
 *
 * Operations of a communicator run one after another in its streams, so all of them use the same memory; each graph has its own, because
 * it may be replayed beside eager calls. Memory that has become too small stays until the communicator goes: launches before this one use it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "launch.h"
#include "memory.h"

enum { ALIGN = 256, FIRST = 2 << 20 };

struct gccl_cuda_lent {
  struct gccl_cuda_lent *older;
  char *at;
  uint64_t bytes;
};

typedef struct {
  uint64_t send_bytes, recv_bytes, scalar_bytes;
  uint64_t send, recv, scalar, end; /* offsets in the lent memory */
} place;

/* Of an operation from x->part on. */
static place place_of(const gccl_op *x) {
  uint64_t part = x->count * x->esize;
  place p = {.send = x->part};
  if (x->hidden & GCCL_CUDA_HIDDEN_SEND) p.send_bytes = part * gccl_cuda_parts(x, 0);
  if (x->hidden & GCCL_CUDA_HIDDEN_RECV) p.recv_bytes = part * gccl_cuda_parts(x, 1);
  if (x->hidden & GCCL_CUDA_HIDDEN_SCALAR) p.scalar_bytes = x->esize;
  p.recv = p.send + gccl_align(p.send_bytes, ALIGN);
  p.scalar = p.recv + gccl_align(p.recv_bytes, ALIGN);
  p.end = p.scalar + gccl_align(p.scalar_bytes, ALIGN);
  return p;
}

static int lends(const gccl_op *x) {
  const gccl_cuda_comm *d = gccl_cuda_of(x->comm);
  int executor = executor_of(x);
  return x->hidden && executor != d->rank && !d->peer[executor].same_process;
}

static char *room(gccl_cuda_batch *b, uint64_t bytes) {
  struct ncclComm *c = b->comm;
  struct gccl_cuda_lent **list = &gccl_cuda_of(c)->lent[b->slot], *l = *list;
  if (l && l->bytes >= bytes) return l->at;
  uint64_t size = l ? 2 * l->bytes : FIRST;
  while (size < bytes) size *= 2;
  char text[256];
  void *at;
  if (!(l = calloc(1, sizeof *l)) || gccl_cuda_mem_alloc(&at, size, text, sizeof text)) {
    gccl_comm_latch(c, GCCL_RC_CUDA,
                    "rank %d of %d: %llu bytes for buffers that other processes cannot open (memory of a pool, or of the virtual memory "
                    "interface): %s: use cudaMalloc or ncclMemAlloc, which need no copy",
                    c->rank, c->nranks, (unsigned long long)size, l ? text : "out of memory");
    free(l);
    return NULL;
  }
  *l = (struct gccl_cuda_lent){.older = *list, .at = at, .bytes = size};
  *list = l;
  return at;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes, CUstream s) {
  return bytes ? gccl_cu.MemcpyAsync(to, from, bytes, s) : CUDA_SUCCESS;
}

int gccl_cuda_lend(gccl_cuda_batch *b) {
  uint64_t bytes = 0;
  for (int i = 0; i < b->nops; i++) {
    gccl_op *x = &b->ops[i];
    if (!lends(x)) continue;
    x->part = bytes;
    bytes = place_of(x).end;
  }
  if (bytes == 0) return 0;
  char *lent = room(b, bytes);
  if (!lent) return GCCL_RC_CUDA;
  CUresult e = CUDA_SUCCESS;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)lent;
  for (int i = 0; i < b->nops && !e; i++) {
    const gccl_op *x = &b->ops[i];
    if (!lends(x)) continue;
    place p = place_of(x);
    e = copy(at + p.send, (CUdeviceptr)(uintptr_t)x->send, p.send_bytes, b->stream);
    if (!e) e = copy(at + p.scalar, (CUdeviceptr)(uintptr_t)x->scalar, p.scalar_bytes, b->stream);
  }
  b->lends = 1;
  return e ? gccl_cuda_failed(b->comm, e, "copying a buffer that other processes cannot open") : 0;
}

const void *gccl_cuda_lent_at(const gccl_cuda_batch *b, const gccl_op *x, const void *buffer, int which) {
  if (!(x->hidden & which) || !lends(x)) return buffer;
  place p = place_of(x);
  return gccl_cuda_of(b->comm)->lent[b->slot]->at + (which == GCCL_CUDA_HIDDEN_SEND   ? p.send
                                                     : which == GCCL_CUDA_HIDDEN_RECV ? p.recv
                                                                                      : p.scalar);
}

int gccl_cuda_take_back(gccl_cuda_batch *b) {
  CUresult e = CUDA_SUCCESS;
  if (!b->lends) return 0;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)gccl_cuda_of(b->comm)->lent[b->slot]->at;
  for (int i = 0; i < b->nops && !e; i++) {
    const gccl_op *x = &b->ops[i];
    if (!lends(x)) continue;
    place p = place_of(x);
    e = copy((CUdeviceptr)(uintptr_t)x->recv, at + p.recv, p.recv_bytes, b->stream);
  }
  return e ? gccl_cuda_failed(b->comm, e, "copying to a buffer that other processes cannot open") : 0;
}

void gccl_cuda_lent_free(gccl_cuda_comm *d) {
  for (int k = 0; k < GCCL_CUDA_SLOTS; k++)
    while (d->lent[k]) {
      struct gccl_cuda_lent *l = d->lent[k];
      d->lent[k] = l->older;
      gccl_cuda_mem_free(l->at); /* unmaps, which waits for nothing; who has mapped it keeps it */
      free(l);
    }
}
