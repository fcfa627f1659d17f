/* Communicators of GPUs whose ranks are on several hosts: buffers pass through pinned host memory, and the host executor does the
 * operation there, over the same areas and the same network as ranks of the host device.
 *
 *   the caller's stream    copies what the rank sends to host memory; stores a number in `ready`
 *   the worker thread      waits for that number, drives the operations, stores another in `done`
 *   the caller's stream    waits for that number; copies back what the rank receives
 *
 * A large operation is copied in chunks, the same share of every part of its buffers at a time, each with a number of its own. The
 * executor takes and makes parts from their beginning (gccl_flow), so copies, network and copies back of one operation overlap.
 *
 * An operation begins when the communicator's last one has ended in its stream, so all launches use the same host memory. Nothing
 * here waits for the device. Numbers are compared by their difference (cuStreamWaitValue32: CU_STREAM_WAIT_VALUE_GEQ is cyclic).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch.h"

enum {
  ALIGN = 256,
  FIRST = 1 << 20,
  CHUNK = 1 << 20, /* a copy of this much costs several times what starting it does */
  CHUNKS = 16,     /* of an operation, at most */
  COPIES = 64,     /* of an operation each way, at most: parts of a chunk are copied one by one */
};

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

/* An operation in chunks; none: its buffers are copied as wholes. */
typedef struct {
  gccl_flow base;
  gccl_cuda_staging *launch;
  uint64_t part, step; /* elements of a part, and of it in a chunk */
  uint32_t chunks, out, back;
  uint32_t ready;      /* number behind the first chunk out */
  uint32_t made, told; /* chunks that are final; that the stream knows of */
} flow;

/* A launch. Numbers of `ready`: begin behind the whole copies, then those of chunks. Numbers of `done`: from begin on those of chunks, in
 * the order in which the stream waits for them; end. */
struct gccl_cuda_staging {
  struct ncclComm *comm;
  uint32_t begin, end;
  uint32_t done; /* stored last */
  int at, n;     /* of the flows, the first whose chunks are not all told */
  flow flow[];
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

static char *send_at(const place *p, char *at) { return p->from ? at + (p->send - p->from) : at; }
static char *recv_at(const place *p, char *at) { return p->from ? at + (p->recv - p->from) : at + gccl_align(p->send_bytes, ALIGN); }

static CUresult copy(CUstream s, uint64_t device, char *host, uint64_t bytes, int out) {
  CUdeviceptr h = (CUdeviceptr)(uintptr_t)host;
  return bytes == 0 ? CUDA_SUCCESS : out ? gccl_cu.MemcpyAsync(h, device, bytes, s) : gccl_cu.MemcpyAsync(device, h, bytes, s);
}

/* Chunk k of a buffer: its share of every part. */
static CUresult copy_chunk(const flow *f, uint32_t k, CUstream s, uint64_t device, char *host, uint64_t bytes, uint64_t esize, int out) {
  uint64_t from = k * f->step, to = from + f->step < f->part ? from + f->step : f->part;
  CUresult e = CUDA_SUCCESS;
  for (uint64_t part = 0; part * esize < bytes && !e; part += f->part) {
    uint64_t a = (part + from) * esize, b = (part + to) * esize < bytes ? (part + to) * esize : bytes;
    if (a < b) e = copy(s, device + a, host + a, b - a, out);
  }
  return e;
}

static CUresult word(const gccl_cuda_comm *d, CUstream s, int operation, size_t offset, uint32_t value) {
  CUdeviceptr at = d->stage_words + offset;
  if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) return gccl_cu.StreamWaitValue32(s, at, value, CU_STREAM_WAIT_VALUE_GEQ);
  return gccl_cu.StreamWriteValue32(s, at, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}
static CUresult ready(const gccl_cuda_comm *d, CUstream s, uint32_t number) {
  return word(d, s, CU_STREAM_MEM_OP_WRITE_VALUE_32, offsetof(struct gccl_cuda_stage, ready), number);
}
static CUresult wait_done(const gccl_cuda_comm *d, CUstream s, uint32_t number) {
  return word(d, s, CU_STREAM_MEM_OP_WAIT_VALUE_32, offsetof(struct gccl_cuda_stage, done), number);
}

static void await_number(struct ncclComm *c, uint32_t number) {
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

/* Release: the device reads what the operation has written. */
static void tell_done(struct ncclComm *c, uint32_t number) {
  atomic_store_explicit(&gccl_cuda_of(c)->stage->done, number, memory_order_release);
}

/* May block: copies out wait for nothing that the worker does in this launch. */
static void flow_await(gccl_flow *base, struct ncclComm *c, uint64_t elements) {
  flow *f = (flow *)base;
  uint64_t k = (elements + f->step - 1) / f->step;
  if (k > f->chunks) k = f->chunks;
  if (f->out && k) await_number(c, f->ready + (uint32_t)k - 1);
}

static void flow_made(gccl_flow *base, struct ncclComm *c, uint64_t elements) {
  flow *f = (flow *)base;
  gccl_cuda_staging *s = f->launch;
  uint32_t before = s->done;
  f->made = elements >= f->part ? f->chunks : (uint32_t)(elements / f->step);
  for (; s->at < s->n; s->at++) {
    flow *g = &s->flow[s->at];
    if (!g->back) continue;
    s->done += g->made - g->told;
    g->told = g->made;
    if (g->told < g->chunks) break;
  }
  if (s->done != before) tell_done(c, s->done);
}

/* Whether an operation is worth chunks, and which. */
static void divide(flow *f, const gccl_op *x, const place *p) {
  uint64_t most = p->send_bytes > p->recv_bytes ? p->send_bytes : p->recv_bytes, k = most / CHUNK, parts;
  if (x->kind == GCCL_DO_COPY || k < 2) return;
  f->part = gccl_part_of(x);
  parts = (most / gccl_dtype_size(x->dtype) + f->part - 1) / f->part;
  if (k > CHUNKS) k = CHUNKS;
  if (k > COPIES / parts) k = COPIES / parts;
  if (k < 2) return;
  f->step = (f->part + k - 1) / k;
  f->chunks = (uint32_t)((f->part + f->step - 1) / f->step);
  f->out = p->send_bytes ? f->chunks : 0;
  f->back = p->recv_bytes ? f->chunks : 0;
  f->base = (gccl_flow){flow_await, flow_made};
}

/* The launch of a batch, its operations divided and numbered; NULL without memory. */
static gccl_cuda_staging *staging_of(const gccl_cuda_batch *b) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  gccl_cuda_staging *s = calloc(1, sizeof *s + (size_t)b->nops * sizeof(flow));
  if (!s) return NULL;
  s->comm = b->comm;
  s->n = b->nops;
  s->done = d->staged;
  s->begin = d->staged + 1;
  uint32_t out = s->begin, back = d->staged;
  for (int i = 0; i < b->nops; i++) {
    flow *f = &s->flow[i];
    place p = place_of(&b->ops[i]);
    divide(f, &b->ops[i], &p);
    f->launch = s;
    f->ready = out + 1;
    out += f->out;
    back += f->back;
  }
  s->end = d->staged = (out > back ? out : back) + 1;
  return s;
}

/* Makes the host's operations from the device's, and enqueues what the stream does before them: whole buffers first. */
static CUresult copies_out(gccl_cuda_batch *b, gccl_op *host, gccl_cuda_staging *s, char *at, char *scalar) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  CUresult e = CUDA_SUCCESS;
  for (int chunks = 0; chunks < 2 && !e; chunks++) {
    char *next = at;
    for (int i = 0; i < b->nops && !e; i++) {
      const gccl_op *x = &b->ops[i];
      gccl_op *h = &host[i];
      flow *f = &s->flow[i];
      place p = place_of(x);
      uint64_t esize = gccl_dtype_size(x->dtype);
      char *send = send_at(&p, next);
      if (chunks) {
        for (uint32_t k = 0; k < f->out && !e; k++) {
          e = copy_chunk(f, k, b->stream, p.send, send, p.send_bytes, esize, 1);
          if (!e) e = ready(d, b->stream, f->ready + k);
        }
      } else {
        *h = *x;
        h->send = x->send ? send : NULL;
        h->recv = x->recv ? recv_at(&p, next) : NULL;
        h->flow = f->chunks ? &f->base : NULL;
        if (!f->out) e = copy(b->stream, p.send, send, p.send_bytes, 1);
        if (!e && x->red == GCCL_RED_USER && x->device_scalar) {
          h->scalar = scalar + (size_t)i * sizeof(uint64_t);
          e = copy(b->stream, (uint64_t)(uintptr_t)x->scalar, (char *)h->scalar, esize, 1);
        }
      }
      next += p.span;
    }
    if (!chunks && !e) e = ready(d, b->stream, s->begin);
  }
  return e;
}

/* What the stream does behind them: chunks as they are made, then whole buffers. */
static CUresult copies_back(gccl_cuda_batch *b, const gccl_cuda_staging *s, char *at) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  uint32_t number = s->begin;
  CUresult e = CUDA_SUCCESS;
  for (int whole = 0; whole < 2 && !e; whole++) {
    char *next = at;
    if (whole) e = wait_done(d, b->stream, s->end);
    for (int i = 0; i < b->nops && !e; i++) {
      const flow *f = &s->flow[i];
      place p = place_of(&b->ops[i]);
      char *recv = recv_at(&p, next);
      for (uint32_t k = 0; !whole && k < f->back && !e; k++) {
        e = wait_done(d, b->stream, number++);
        if (!e) e = copy_chunk(f, k, b->stream, p.recv, recv, p.recv_bytes, gccl_dtype_size(b->ops[i].dtype), 0);
      }
      if (whole && !f->back) e = copy(b->stream, p.recv, recv, p.recv_bytes, 0);
      next += p.span;
    }
  }
  return e;
}

/* Everything of a launch that the stream does. Preconditions: the context is current, d->order is held. */
static int enqueue(gccl_cuda_batch *b, gccl_op *host, gccl_cuda_staging *s) {
  struct ncclComm *c = b->comm;
  uint64_t bytes = 0, scalars = (uint64_t)b->nops * sizeof(uint64_t);
  for (int i = 0; i < b->nops; i++) bytes += place_of(&b->ops[i]).span;
  char *at = room(gccl_cuda_of(c), bytes + scalars);
  if (!at) return GCCL_RC_CUDA;
  int rc = gccl_cuda_begin(b);
  if (rc) return rc;
  CUresult e = copies_out(b, host, s, at, at + bytes);
  if (!e) e = copies_back(b, s, at);
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

int gccl_cuda_stage(gccl_cuda_batch *b, gccl_op *host, gccl_cuda_staging **out, char *text, size_t max) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  CUcontext before;
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) return gccl_cuda_failed(c, e, "the context of the communicator cannot be made current");
  const char *why = refused(b);
  gccl_cuda_staging *s = why ? NULL : staging_of(b);
  int rc = why ? GCCL_RC_USAGE : GCCL_RC_SYSTEM;
  if (!s)
    snprintf(text, max, "rank %d of %d: %s", c->rank, c->nranks, why ? why : "out of memory");
  else if ((rc = enqueue(b, host, s)))
    gccl_cuda_stage_done(s); /* the stream may wait for it by now */
  else
    *out = s;
  gccl_cuda_leave(d->cx, before);
  return rc;
}

void gccl_cuda_stage_await(gccl_cuda_staging *s) { await_number(s->comm, s->begin); }

/* Numbers only grow, also past a launch that failed. */
void gccl_cuda_stage_done(gccl_cuda_staging *s) {
  tell_done(s->comm, s->end);
  free(s);
}
