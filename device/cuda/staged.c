/* Communicators of GPUs whose ranks are on several hosts: buffers pass through pinned host memory, and the host executor does the
 * operation there, over the same areas and the same network as ranks of the host device.
 *
 *   the caller's stream    copies what the rank sends to host memory; stores the launch's number in `ready`
 *   the worker thread      waits for that number, drives the operations, stores the number in `done`
 *   the caller's stream    waits for that number; copies back what the rank receives
 *
 * An operation begins when the communicator's last one has ended in its stream, so all launches use the same host memory. Nothing
 * here waits for the device. Numbers are compared by their difference (cuStreamWaitValue32: CU_STREAM_WAIT_VALUE_GEQ is cyclic).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch.h"

enum { ALIGN = 256, FIRST = 1 << 20 };

struct gccl_cuda_stage {
  _Alignas(64) _Atomic(uint32_t) ready; /* the stream stores */
  _Alignas(64) _Atomic(uint32_t) done;  /* the worker stores */
};

/* Host memory of launches. What has become too small stays until the communicator goes: launches before this one may use it, and
 * cuMemFreeHost waits for streams that wait. */
struct gccl_cuda_stage_buffer {
  struct gccl_cuda_stage_buffer *older;
  char *at;
  uint64_t bytes;
};

int gccl_cuda_stage_new(gccl_cuda_comm *d, char *text, size_t max) {
  void *words;
  CUresult e = gccl_cu.MemHostAlloc(&words, sizeof *d->stage, CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP);
  if (!e) {
    memset(words, 0, sizeof *d->stage);
    d->stage = words;
    e = gccl_cu.MemHostGetDevicePointer(&d->stage_words, words, 0);
  }
  if (!e) return 0;
  snprintf(text, max, "pinned memory for ranks on other hosts: error %d (%s)", e, gccl_cuda_text(e));
  return GCCL_RC_CUDA;
}

void gccl_cuda_stage_free(gccl_cuda_comm *d) {
  while (d->buffers) {
    struct gccl_cuda_stage_buffer *b = d->buffers;
    d->buffers = b->older;
    gccl_cu.MemFreeHost(b->at);
    free(b);
  }
  if (d->stage) gccl_cu.MemFreeHost(d->stage);
  d->stage = NULL;
}

/* Host memory of at least so many bytes. */
static char *room(gccl_cuda_comm *d, uint64_t bytes) {
  if (d->buffers && d->buffers->bytes >= bytes) return d->buffers->at;
  uint64_t size = d->buffers ? 2 * d->buffers->bytes : FIRST;
  while (size < bytes) size *= 2;
  struct gccl_cuda_stage_buffer *b = calloc(1, sizeof *b);
  void *at = NULL;
  CUresult e = b ? gccl_cu.MemHostAlloc(&at, size, CU_MEMHOST_PORTABLE) : CUDA_ERROR_OUT_OF_MEMORY;
  if (e) {
    free(b);
    gccl_cuda_failed(d->comm, e, "pinned memory for buffers of ranks on several hosts (cuMemHostAlloc)");
    return NULL;
  }
  *b = (struct gccl_cuda_stage_buffer){.older = d->buffers, .at = at, .bytes = size};
  d->buffers = b;
  return at;
}

/* Where the buffers of an operation are: in the device's memory, and in the stage from `at` on. Buffers that overlap, as in
 * place, overlap there alike. */
typedef struct {
  uint64_t send, recv, send_bytes, recv_bytes, from, span;
} place;

static place place_of(const gccl_op *x) {
  uint64_t part = x->count * gccl_dtype_size(x->dtype);
  place p = {.send = (uint64_t)(uintptr_t)x->send, .recv = (uint64_t)(uintptr_t)x->recv};
  p.send_bytes = x->send && gccl_cuda_reads(x) ? part * gccl_cuda_parts(x, 0) : 0;
  p.recv_bytes = x->recv && gccl_cuda_writes(x) ? part * gccl_cuda_parts(x, 1) : 0;
  if (p.send_bytes && p.recv_bytes && p.send < p.recv + p.recv_bytes && p.recv < p.send + p.send_bytes) {
    uint64_t send_end = p.send + p.send_bytes, recv_end = p.recv + p.recv_bytes;
    p.from = p.send < p.recv ? p.send : p.recv;
    p.span = (send_end > recv_end ? send_end : recv_end) - p.from;
  } else {
    p.span = gccl_align(p.send_bytes, ALIGN) + p.recv_bytes;
  }
  p.span = gccl_align(p.span, ALIGN);
  return p;
}

/* Makes the host's operation from the device's, and enqueues its copies: out (before it) or back. */
static CUresult copies(const place *p, const gccl_op *x, gccl_op *h, char *at, CUstream s, int out) {
  char *send = p->from ? at + (p->send - p->from) : at;
  char *recv = p->from ? at + (p->recv - p->from) : at + gccl_align(p->send_bytes, ALIGN);
  if (!out) return p->recv_bytes ? gccl_cu.MemcpyAsync(p->recv, (CUdeviceptr)(uintptr_t)recv, p->recv_bytes, s) : CUDA_SUCCESS;
  *h = *x;
  h->send = x->send ? send : NULL;
  h->recv = x->recv ? recv : NULL;
  return p->send_bytes ? gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)send, p->send, p->send_bytes, s) : CUDA_SUCCESS;
}

static CUresult word(const gccl_cuda_comm *d, CUstream s, int operation, size_t offset, uint32_t value) {
  CUdeviceptr at = d->stage_words + offset;
  if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) return gccl_cu.StreamWaitValue32(s, at, value, CU_STREAM_WAIT_VALUE_GEQ);
  return gccl_cu.StreamWriteValue32(s, at, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

/* Everything of a launch that the stream does. Preconditions: the context is current, d->order is held. */
static int enqueue(gccl_cuda_batch *b, gccl_op *host, uint32_t number) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  uint64_t bytes = 0, scalars = (uint64_t)b->nops * sizeof(uint64_t);
  for (int i = 0; i < b->nops; i++) bytes += place_of(&b->ops[i]).span;
  char *at = room(d, bytes + scalars), *scalar = at ? at + bytes : NULL;
  if (!at) return GCCL_RC_CUDA;
  int rc = gccl_cuda_begin(b);
  if (rc) return rc;
  CUresult e = CUDA_SUCCESS;
  char *next = at;
  for (int i = 0; i < b->nops && !e; i++) {
    const gccl_op *x = &b->ops[i];
    place p = place_of(x);
    e = copies(&p, x, &host[i], next, b->stream, 1);
    if (!e && x->red == GCCL_RED_USER && x->device_scalar) {
      host[i].scalar = scalar + (size_t)i * sizeof(uint64_t);
      e = gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)host[i].scalar, (CUdeviceptr)(uintptr_t)x->scalar, gccl_dtype_size(x->dtype),
                              b->stream);
    }
    next += p.span;
  }
  if (!e) e = word(d, b->stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, offsetof(struct gccl_cuda_stage, ready), number);
  if (!e) e = word(d, b->stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, offsetof(struct gccl_cuda_stage, done), number);
  next = at;
  for (int i = 0; i < b->nops && !e; i++) {
    place p = place_of(&b->ops[i]);
    e = copies(&p, &b->ops[i], NULL, next, b->stream, 0);
    next += p.span;
  }
  if (e) return gccl_cuda_failed(c, e, "copies through host memory");
  return gccl_cuda_end(b);
}

/* Why the operations cannot be done between hosts, or NULL. */
static const char *refused(const gccl_cuda_batch *b) {
  for (int i = 0; i < b->nops; i++) {
    int capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    if (b->ops[i].kind == GCCL_DO_PUT || b->ops[i].kind == GCCL_DO_WAIT_SIGNAL)
      return "one-sided operations on GPU memory need ranks of one host in this version";
    if (gccl_cu.StreamIsCapturing(b->streams[i], &capturing) == CUDA_SUCCESS && capturing)
      return "operations between hosts cannot be captured into a graph in this version: end the capture before the call";
  }
  return NULL;
}

int gccl_cuda_stage(gccl_cuda_batch *b, gccl_op *host, uint32_t *number, char *text, size_t max) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  CUcontext before;
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) return gccl_cuda_failed(c, e, "the context of the communicator cannot be made current");
  const char *why = refused(b);
  int rc = GCCL_RC_USAGE;
  if (why) {
    snprintf(text, max, "rank %d of %d: %s", c->rank, c->nranks, why);
  } else if ((rc = enqueue(b, host, *number = d->staged + 1))) {
    gccl_cuda_stage_done(c, *number); /* the stream may wait for it by now */
  } else {
    d->staged = *number;
  }
  gccl_cuda_leave(d->cx, before);
  return rc;
}

void gccl_cuda_stage_await(struct ncclComm *c, uint32_t number) {
  struct gccl_cuda_stage *s = gccl_cuda_of(c)->stage;
  for (unsigned looks = 0; (int32_t)(atomic_load_explicit(&s->ready, memory_order_acquire) - number) < 0; looks++) {
    if (atomic_load_explicit(&c->abort, memory_order_seq_cst)) return;
    struct timespec nap = {0, looks < 10000 ? 20000 : 200000}; /* the stream may be busy with the program's work for long */
    if (looks < 2000)
      gccl_relax();
    else
      nanosleep(&nap, NULL);
  }
}

void gccl_cuda_stage_done(struct ncclComm *c, uint32_t number) {
  /* Release: the device reads what the operation has written. Numbers only grow, also past one that failed. */
  atomic_store_explicit(&gccl_cuda_of(c)->stage->done, number, memory_order_release);
}
