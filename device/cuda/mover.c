/* The mover of a GIN object (device/layout/mover.h): copies by a stream of its own, from device to pinned memory to device, which need no
 * multiprocessor; small values and the word that says how far it has come by stream writes, in one call. Nothing here waits for a kernel: what is under way
 * in the stream is bounded, so that the driver's queue of it is never full. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../layout/mover.h"
#include "memory.h"

enum {
  ROOM = 256 << 10, /* a copy's pieces; in one stream they follow one another, so that one room is enough */
  CALLS = 32,       /* of the driver, behind one mark */
  AHEAD = 8,        /* marks under way: with CALLS a quarter of the 1024 entries that a stream's queue was seen to have */
  VALUES = 64,      /* in one call, with the mark: 129 operations were seen to work */
  SLOTS = 512       /* of values that go by a copy: more than can be under way */
};
static const uint64_t STUCK_NS = 30000000000u, CLOSE_NS = 5000000000u;

_Static_assert((CALLS + 1) * (AHEAD + 1) <= SLOTS, "a slot is used again when its copy is done");

typedef struct {
  gccl_mover base;
  gccl_cuda_context *cx;
  gccl_cuda_comm *comm;
  CUstream stream;
  /* Pinned. */
  char *room, (*slot)[GCCL_MOVER_VALUE];
  uint64_t *word;
  uint32_t *mark;
  uint32_t slots;
  unsigned calls, nops;
  int called, entered, mode, on_device, adopted;
  pthread_t by; /* who has adopted it */
  CUcontext before;
  CUresult error;
  uint32_t seen;
  uint64_t seen_ns;
  char text[GCCL_MOVER_TEXT];
  CUstreamBatchMemOpParams op[VALUES + 1];
} mover;

static void check(mover *v, CUresult e) {
  if (!v->error) v->error = e;
}

/* Whether the driver may be called once more before the next mark, in the right context. */
static int ready(mover *v) {
  if (v->error || v->calls >= CALLS || v->base.marks - __atomic_load_n(v->mark, __ATOMIC_RELAXED) >= AHEAD) return 0;
  if (v->entered || (v->adopted && pthread_equal(v->by, pthread_self()))) return v->called = 1;
  v->mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* captures of the program must not forbid what is done here */
  check(v, gccl_cuda_enter(v->cx, &v->before));
  if (v->error) return 0;
  gccl_cu.ThreadExchangeStreamCaptureMode(&v->mode);
  v->entered = 1;
  return v->called = 1;
}

static void submit_values(mover *v) {
  if (v->nops && !v->error) check(v, gccl_cu.StreamBatchMemOp(v->stream, v->nops, v->op, 0));
  v->nops = 0;
}

static void add(mover *v, uint64_t to, int wide, uint64_t value) {
  CUstreamBatchMemOpParams *p = &v->op[v->nops++];
  memset(p, 0, sizeof *p);
  p->value.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  p->value.address = to;
  p->value.value64 = value;
}

static void adopt(gccl_mover *m) {
  mover *v = (mover *)m;
  CUcontext before;
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (gccl_cuda_enter(v->cx, &before)) return; /* each call tries again, and says why */
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  v->by = pthread_self();
  v->adopted = 1;
}

static void begin(gccl_mover *m) {
  ((mover *)m)->calls = 0;
  ((mover *)m)->called = 0;
}

/* One call for all of it. */
static uint64_t copy_there(mover *v, uint64_t to, uint64_t from, uint64_t n) {
  if (!ready(v)) return 0;
  submit_values(v);
  check(v, gccl_cu.MemcpyAsync(to, from, n, v->stream));
  v->calls++;
  return n;
}

static int bounce(gccl_mover *m, uint64_t to, uint64_t from, uint64_t n) { return copy_there((mover *)m, to, from, n) == n; }

static uint64_t copy(gccl_mover *m, uint64_t to, uint64_t from, uint64_t n) {
  mover *v = (mover *)m;
  uint64_t at = 0;
  CUdeviceptr room = (CUdeviceptr)(uintptr_t)v->room;
  if (v->on_device && n) return copy_there(v, to, from, n);
  while (at < n && ready(v)) {
    size_t part = n - at < ROOM ? n - at : ROOM;
    submit_values(v);
    check(v, gccl_cu.MemcpyAsync(room, from + at, part, v->stream));
    check(v, gccl_cu.MemcpyAsync(to + at, room, part, v->stream));
    v->calls += 2;
    at += part;
  }
  return at;
}

static int value(gccl_mover *m, uint64_t to, const void *from, uint32_t n) {
  mover *v = (mover *)m;
  unsigned unit = (to | n) % 8 == 0 ? 8 : (to | n) % 4 == 0 ? 4 : 0;
  if (n == 0) return 1;
  if (!ready(v)) return 0;
  if (unit && v->nops + n / unit > VALUES) {
    submit_values(v);
    v->calls++;
  }
  for (uint32_t i = 0; unit && i < n; i += unit) {
    uint64_t word = 0;
    memcpy(&word, (const char *)from + i, unit);
    add(v, to + i, unit == 8, word);
  }
  if (unit) return 1;
  char *slot = v->slot[v->slots++ % SLOTS];
  memcpy(slot, from, n);
  submit_values(v);
  check(v, gccl_cu.MemcpyAsync(to, (CUdeviceptr)(uintptr_t)slot, n, v->stream));
  v->calls++;
  return 1;
}

static const uint64_t *fetch(gccl_mover *m, uint64_t from) {
  mover *v = (mover *)m;
  if (!ready(v)) return NULL;
  submit_values(v);
  check(v, gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)v->word, from, sizeof *v->word, v->stream));
  v->calls++;
  return v->word;
}

static void end(gccl_mover *m) {
  mover *v = (mover *)m;
  if (!v->called) return;
  /* Behind a system-wide fence over all before it, which is the default of such writes. After an error the mark is never passed. */
  add(v, (uint64_t)(uintptr_t)v->mark, 0, ++v->base.marks);
  submit_values(v);
  if (!v->entered) return;
  gccl_cu.ThreadExchangeStreamCaptureMode(&v->mode);
  gccl_cuda_leave(v->cx, v->before);
  v->entered = 0;
}

static const char *trouble(gccl_mover *m) {
  mover *v = (mover *)m;
  uint32_t done = __atomic_load_n(v->mark, __ATOMIC_ACQUIRE);
  uint64_t now = gccl_now_ns();
  CUcontext before;
  if (!v->error && done == v->base.marks) return NULL;
  if (!v->error && !gccl_cuda_enter(v->cx, &before)) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    CUresult e = gccl_cu.StreamQuery(v->stream);
    if (e != CUDA_ERROR_NOT_READY) check(v, e);
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    gccl_cuda_leave(v->cx, before);
  }
  if (v->error) {
    snprintf(v->text, sizeof v->text, "a copy for kernels on device %d: error %d (%s)", v->cx->ordinal, v->error, gccl_cuda_text(v->error));
    return v->text;
  }
  if (v->seen != done || !v->seen_ns) {
    v->seen = done;
    v->seen_ns = now;
  }
  if (now - v->seen_ns < STUCK_NS) return NULL;
  snprintf(v->text, sizeof v->text,
           "a copy for kernels on device %d has not been done for 30 s: does its queue of the device wait for a kernel that waits for "
           "the copy, or for a copy behind that? Set CUDA_DEVICE_MAX_CONNECTIONS=32 or GCCL_GIN_SM_COPY=1",
           v->cx->ordinal);
  return v->text;
}

static void *pinned(gccl_mover *m, uint64_t bytes) { return gccl_cuda_pinned(((mover *)m)->cx, bytes); }
static void unpin(gccl_mover *m, void *at) { gccl_cuda_pinned_free(((mover *)m)->cx, at); }

static void *memory(gccl_mover *m, uint64_t bytes, char *text) {
  void *at = NULL;
  return gccl_cuda_memory_new(((mover *)m)->comm, bytes, &at, text, GCCL_MOVER_TEXT) ? NULL : at;
}
static void release(gccl_mover *m, void *at) {
  (void)m;
  gccl_cuda_mem_free(at);
}
static int store(gccl_mover *m, void *to, const void *from, uint64_t n, char *text) {
  return gccl_cuda_write(((mover *)m)->cx, (CUdeviceptr)(uintptr_t)to, from, n, text, GCCL_MOVER_TEXT);
}

static void drop(mover *v) {
  CUcontext before;
  if (v->stream && !gccl_cuda_enter(v->cx, &before)) {
    gccl_cu.StreamDestroy(v->stream);
    gccl_cuda_leave(v->cx, before);
  }
  gccl_cuda_pinned_free(v->cx, v->room);
  gccl_cuda_pinned_free(v->cx, v->slot);
  gccl_cuda_pinned_free(v->cx, v->word);
  gccl_cuda_pinned_free(v->cx, v->mark);
  gccl_cuda_context_put(v->cx);
  free(v);
}

static void close_mover(gccl_mover *m) {
  mover *v = (mover *)m;
  uint64_t start = gccl_now_ns();
  while (!v->error && !gccl_mover_reached(m, m->marks)) {
    if (gccl_now_ns() - start > CLOSE_NS) return; /* it stays: the device may still store there */
    nanosleep(&(struct timespec){0, 20000}, NULL);
  }
  if (!v->error) drop(v);
}

static gccl_mover *open_mover(struct ncclComm *c, int on_device, char *text) {
  static const gccl_mover_ops *const ops = &gccl_cuda_mover;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  CUcontext before;
  mover *v = calloc(1, sizeof *v);
  if (!v) {
    snprintf(text, GCCL_MOVER_TEXT, "out of memory");
    return NULL;
  }
  v->base.ops = ops;
  v->comm = d;
  v->on_device = on_device;
  v->cx = d->cx;
  gccl_cuda_context_ref(v->cx);
  v->room = gccl_cuda_pinned(v->cx, ROOM);
  v->slot = gccl_cuda_pinned(v->cx, SLOTS * sizeof *v->slot);
  v->word = gccl_cuda_pinned(v->cx, sizeof *v->word);
  v->base.done = v->mark = gccl_cuda_pinned(v->cx, sizeof *v->mark);
  CUresult e = v->room && v->slot && v->word && v->mark ? gccl_cuda_enter(v->cx, &before) : CUDA_ERROR_OUT_OF_MEMORY;
  if (!e) {
    /* Streams of one priority share hardware queues, in which ours would wait behind a kernel that is queued behind the one that waits for us.
     * Copies share them whatever their priority (tried on driver 580). */
    e = gccl_cu.StreamCreateWithPriority(&v->stream, CU_STREAM_NON_BLOCKING, CU_STREAM_FIRST);
    gccl_cuda_leave(v->cx, before);
  }
  if (!e) return &v->base;
  snprintf(text, GCCL_MOVER_TEXT, "no stream or pinned memory for copies for kernels on device %d: error %d (%s)", v->cx->ordinal, e,
           gccl_cuda_text(e));
  drop(v);
  return NULL;
}

const gccl_mover_ops gccl_cuda_mover = {
    .open = open_mover,
    .close = close_mover,
    .pinned = pinned,
    .unpin = unpin,
    .memory = memory,
    .release = release,
    .store = store,
    .adopt = adopt,
    .begin = begin,
    .copy = copy,
    .bounce = bounce,
    .value = value,
    .fetch = fetch,
    .end = end,
    .trouble = trouble,
};
