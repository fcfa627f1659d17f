/* Capture and graphs. */
#include <pthread.h>

#include "fc.h"

static CUgraph end(CUstream s) {
  CUgraph g = NULL;
  OK(cu.StreamEndCapture(s, &g));
  return g;
}

static size_t nodes(CUgraph g) {
  size_t n = 0;
  OK(cu.GraphGetNodes(g, NULL, &n));
  return n;
}

static int status_of(CUstream s) {
  int st = -1;
  OK(cu.StreamIsCapturing(s, &st));
  return st;
}

void case_capture(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream(), t = fc_stream();
  CUevent fork = NULL, join = NULL;
  OK(cu.EventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cu.EventCreate(&join, CU_EVENT_DISABLE_TIMING));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.StreamBeginCapture(NULL, 0));
  OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  IS(CUDA_ERROR_ILLEGAL_STATE, cu.StreamBeginCapture(s, 0));
  IS(1, status_of(s));
  IS(0, status_of(t));
  OK(cu.StreamWriteValue32(s, fc_at(&w[0]), 1, 0));
  OK(cu.EventRecord(fork, s));
  OK(cu.StreamWaitEvent(t, fork, 0));
  IS(1, status_of(t));
  OK(cu.StreamWriteValue32(t, fc_at(&w[1]), 2, 0));
  OK(cu.EventRecord(join, t));
  OK(cu.StreamWaitEvent(s, join, 0));
  OK(cu.StreamWriteValue32(s, fc_at(&w[2]), 3, 0));
  int st = 0;
  uint64_t id = 0;
  size_t n = 0;
  const CUgraphNode *at = NULL;
  CUgraph inside = NULL;
  OK(cu.StreamGetCaptureInfo(s, &st, &id, &inside, &at, &n));
  TRUE(st == 1 && id != 0 && inside && n == 1 && at && at[0]);
  CUgraphNode before = at[0];
  IS(CUDA_ERROR_INVALID_VALUE, cu.GraphDestroy(inside)); /* it belongs to the capture */
  OK(cu.StreamWriteValue32(s, fc_at(&w[3]), 4, 0));
  OK(cu.StreamUpdateCaptureDependencies(s, &before, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  OK(cu.StreamGetCaptureInfo(s, &st, &id, &inside, &at, &n));
  IS(2, n);
  CUgraph g = end(s);
  IS(4, nodes(g));
  TRUE(g == inside);
  IS(0, status_of(s));
  IS(0, status_of(t));
  IS(0, atomic_load(&w[2])); /* nothing has run */
  CUgraphExec x = NULL;
  OK(cu.GraphInstantiate(&x, g, 0));
  OK(cu.GraphDestroy(g));
  IS(CUDA_ERROR_INVALID_VALUE, cu.GraphDestroy(g));
  OK(cu.GraphLaunch(x, s));
  OK(cu.StreamSynchronize(s));
  TRUE(atomic_load(&w[0]) == 1 && atomic_load(&w[1]) == 2 && atomic_load(&w[2]) == 3 && atomic_load(&w[3]) == 4);
  OK(cu.GraphExecDestroy(x));
  IS(CUDA_ERROR_INVALID_VALUE, cu.GraphLaunch(x, s));
}

static CUresult begin_and(CUstream s, int mode, CUresult (*call)(void)) {
  CUgraph g = NULL;
  OK(cu.StreamBeginCapture(s, mode));
  CUresult rc = call();
  int broken = status_of(s) == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  IS(broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS, cu.StreamEndCapture(s, &g));
  TRUE(broken == !g);
  if (g) OK(cu.GraphDestroy(g));
  IS(0, status_of(s));
  return rc;
}

static struct {
  _Atomic uint32_t *w;
  CUevent e;
  CUstream s, blocking;
  CUdeviceptr d;
} b;

static CUresult do_alloc(void) {
  CUdeviceptr p;
  return cu.MemAlloc(&p, 16);
}
static CUresult do_relaxed_alloc(void) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr p;
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  CUresult rc = cu.MemAlloc(&p, 16);
  if (rc == CUDA_SUCCESS) rc = cu.MemFree(p);
  OK(cu.ThreadExchangeStreamCaptureMode(&mode));
  return rc;
}
static CUresult do_query_event(void) { return cu.EventQuery(b.e); }
static CUresult do_query_stream(void) { return cu.StreamQuery(b.s); }
static CUresult do_sync(void) { return cu.CtxSynchronize(); }
static CUresult do_wait_uncaptured(void) { return cu.StreamWaitEvent(b.s, b.e, 0); }
static CUresult do_unload(void) {
  CUmodule m;
  return cu.ModuleLoadData(&m, ".version 8.0");
}
static CUresult do_legacy(void) { return cu.StreamWriteValue32(NULL, fc_at(b.w), 1, 0); }
static CUresult do_unjoined(void) {
  CUstream t = fc_stream();
  CUevent e;
  CUgraph g = (void *)1;
  OK(cu.EventCreate(&e, 0));
  OK(cu.EventRecord(e, b.s));
  OK(cu.StreamWaitEvent(t, e, 0));
  OK(cu.StreamWriteValue32(t, fc_at(b.w), 1, 0));
  IS(CUDA_ERROR_CAPTURED_EVENT, cu.EventQuery(e));
  IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.StreamWriteValue32(t, fc_at(b.w), 1, 0));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cu.StreamEndCapture(t, &g));
  return CUDA_SUCCESS;
}
static void *elsewhere(void *arg) {
  CUresult (*call)(void) = *(CUresult(**)(void))arg;
  OK(cu.CtxSetCurrent(fc_ctx));
  return (void *)(intptr_t)call();
}
static CUresult (*what)(void);
static CUresult in_other_thread(void) {
  pthread_t t;
  void *rc;
  pthread_create(&t, NULL, elsewhere, (void *)&what);
  pthread_join(t, &rc);
  return (CUresult)(intptr_t)rc;
}
static CUresult do_end(void) {
  CUgraph g;
  return cu.StreamEndCapture(b.s, &g);
}

/* What a capture does not allow. */
void case_broken(void) {
  fc_start();
  b.w = fc_words();
  b.s = fc_stream();
  OK(cu.StreamCreate(&b.blocking, 0));
  OK(cu.EventCreate(&b.e, 0));
  OK(cu.EventRecord(b.e, b.blocking));
  OK(cu.CtxSynchronize());
  enum { GLOBAL, THREAD, RELAXED };
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, GLOBAL, do_alloc));
  IS(CUDA_SUCCESS, begin_and(b.s, RELAXED, do_alloc));
  IS(CUDA_SUCCESS, begin_and(b.s, GLOBAL, do_relaxed_alloc));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, THREAD, do_query_event));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, RELAXED, do_query_stream));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, GLOBAL, do_sync));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, GLOBAL, do_unload));
  IS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, begin_and(b.s, RELAXED, do_wait_uncaptured));
  IS(CUDA_SUCCESS, begin_and(b.s, RELAXED, do_legacy)); /* a non-blocking stream is not touched by the legacy one */
  IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, begin_and(b.blocking, RELAXED, do_legacy));
  IS(CUDA_SUCCESS, begin_and(b.s, RELAXED, do_unjoined));
  /* Other threads: a global capture forbids them too, the others do not. */
  what = do_query_event;
  IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, begin_and(b.s, GLOBAL, in_other_thread));
  IS(CUDA_SUCCESS, begin_and(b.s, THREAD, in_other_thread));
  what = do_relaxed_alloc;
  IS(CUDA_SUCCESS, begin_and(b.s, GLOBAL, in_other_thread));
  what = do_end;
  IS(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, begin_and(b.s, GLOBAL, in_other_thread));
  /* Work that was not joined, and a capture that ended in the wrong stream. */
  CUstream t = fc_stream();
  CUevent e;
  CUgraph g = (void *)1;
  OK(cu.EventCreate(&e, 0));
  OK(cu.StreamBeginCapture(b.s, GLOBAL));
  OK(cu.EventRecord(e, b.s));
  OK(cu.StreamWaitEvent(t, e, 0));
  OK(cu.StreamWriteValue32(t, fc_at(b.w), 1, 0));
  IS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cu.StreamEndCapture(b.s, &g));
  TRUE(!g);
  IS(0, status_of(t));
  IS(CUDA_ERROR_CAPTURED_EVENT, cu.StreamWaitEvent(t, e, 0)); /* of a capture that is over */
  /* Two captures do not meet. */
  OK(cu.StreamBeginCapture(b.s, GLOBAL));
  OK(cu.StreamBeginCapture(t, GLOBAL));
  OK(cu.EventRecord(e, b.s));
  IS(CUDA_ERROR_STREAM_CAPTURE_MERGE, cu.StreamWaitEvent(t, e, 0));
  IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(b.s, &g));
  IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(t, &g));
}

static _Atomic uint32_t destroyed;
static void count(void *arg) { atomic_fetch_add(&destroyed, *(uint32_t *)arg); }

void case_graphs(void) {
  fc_start();
  static uint32_t one = 1;
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream();
  CUgraph g;
  CUgraphExec x = NULL;
  CUuserObject o = NULL;
  CUfunction add = fc_function("add_value");
  struct {
    uint64_t word;
    uint32_t value, pad;
    uint64_t started;
  } p = {fc_at(&w[0]), 1, 0, 0};
  void *params[] = {&p};
  OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  /* The capture takes the parameters as they are now. */
  OK(cu.LaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
  p.value = 100;
  int st;
  CUgraph inside = NULL;
  OK(cu.StreamGetCaptureInfo(s, &st, NULL, &inside, NULL, NULL));
  OK(cu.UserObjectCreate(&o, &one, count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(cu.GraphRetainUserObject(inside, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
  g = end(s);
  OK(cu.GraphInstantiate(&x, g, 0));
  OK(cu.GraphDestroy(g));
  for (int i = 0; i < 50; i++) OK(cu.GraphLaunch(x, s));
  OK(cu.StreamSynchronize(s));
  IS(50, atomic_load(&w[0]));
  /* Destroyed while it waits to run: it runs, then the object goes. */
  OK(cu.StreamWaitValue32(s, fc_at(&w[1]), 1, 0));
  OK(cu.GraphLaunch(x, s));
  OK(cu.GraphExecDestroy(x));
  TRUE(fc_stays(&destroyed, 0));
  atomic_store(&w[1], 1);
  OK(cu.StreamSynchronize(s));
  IS(51, atomic_load(&w[0]));
  TRUE(fc_becomes(&destroyed, 1));
}

/* Branches run side by side: one waits for what the other writes. Launches of one graph follow one another in any streams. */
void case_branches(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream(), t = fc_stream();
  CUevent fork, join;
  CUgraphExec x = NULL;
  OK(cu.EventCreate(&fork, 0));
  OK(cu.EventCreate(&join, 0));
  OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu.EventRecord(fork, s));
  OK(cu.StreamWaitEvent(t, fork, 0));
  OK(cu.StreamWaitValue32(s, fc_at(&w[0]), 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cu.StreamWriteValue32(s, fc_at(&w[0]), 0, 0)); /* reset by the consumer: replays work */
  OK(cu.StreamWriteValue32(t, fc_at(&w[0]), 1, 0));
  OK(cu.EventRecord(join, t));
  OK(cu.StreamWaitEvent(s, join, 0));
  CUgraph g = end(s);
  IS(3, nodes(g));
  OK(cu.GraphInstantiate(&x, g, 0));
  for (int i = 0; i < 20; i++) OK(cu.GraphLaunch(x, i % 2 ? s : t));
  OK(cu.CtxSynchronize());
  IS(0, atomic_load(&w[0]));
  OK(cu.GraphExecDestroy(x));
  OK(cu.GraphDestroy(g));
}
