/* Events. */
#include "fake.h"

static int event_ok(CUevent e) { return e && e->magic == MAGIC_EVENT && !e->dead; }

CUresult fake_EventCreate(CUevent *out, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuEventCreate", IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  if (flags & 4) return CUDA_ERROR_NOT_SUPPORTED; /* between processes: not modelled */
  CUevent e = calloc(1, sizeof *e);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->magic = MAGIC_EVENT;
  e->ctx = ctx;
  e->flags = flags;
  *out = e;
  return CUDA_SUCCESS;
}

static void forget(CUevent e) {
  if (e->capture) fake_capture_unref(e->capture);
  e->capture = NULL;
  free(e->at);
  e->at = NULL;
  e->nat = 0;
}

/* Events are not freed: records may be queued, and stale handles stay recognisable. */
CUresult fake_EventDestroy(CUevent e) {
  CUresult rc = fake_enter("cuEventDestroy_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (event_ok(e)) {
    forget(e);
    e->dead = 1;
  } else {
    rc = CUDA_ERROR_INVALID_HANDLE;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* In a capture a record marks a place in the graph. */
static void mark(CUevent e, CUstream s) {
  forget(e);
  e->capture = s->capture;
  e->capture->refs++;
  e->nat = s->nat;
  e->at = malloc((s->nat + 1) * sizeof *e->at);
  if (s->nat) memcpy(e->at, s->at, s->nat * sizeof *e->at);
}

static CUresult record(const char *call, CUevent e, CUstream handle, unsigned flags) {
  CUstream s;
  CUresult rc = fake_enter_stream(call, handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (!event_ok(e)) return CUDA_ERROR_INVALID_HANDLE;
  if (e->ctx != s->ctx) return CUDA_ERROR_INVALID_HANDLE;
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (s->capture && !flags) {
    rc = s->capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (rc == CUDA_SUCCESS) mark(e, s);
    pthread_mutex_unlock(&fake_lock);
    return rc;
  }
  int capturing = s->capture != NULL;
  if (!capturing) forget(e);
  uint64_t generation = capturing ? e->generation : ++e->generation;
  pthread_mutex_unlock(&fake_lock);
  fake_point p;
  rc = fake_submit(s, (fake_work){.kind = DO_RECORD, .call = call, .record = {e, generation}}, &p);
  pthread_mutex_lock(&fake_lock);
  if (rc == CUDA_SUCCESS && !capturing) e->point = p;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_EventRecord(CUevent e, CUstream s) { return record("cuEventRecord", e, s, 0); }
CUresult fake_EventRecordWithFlags(CUevent e, CUstream s, unsigned flags) { return record("cuEventRecordWithFlags", e, s, flags); }

/* Adds nodes to what the stream's next captured operation comes after. */
static void come_after(CUstream s, CUgraphNode *at, size_t n) {
  CUgraphNode *all = malloc((s->nat + n + 1) * sizeof *all);
  size_t total = 0;
  for (size_t i = 0; i < s->nat + n; i++) {
    CUgraphNode x = i < s->nat ? s->at[i] : at[i - s->nat];
    size_t k = 0;
    while (k < total && all[k] != x) k++;
    if (k == total) all[total++] = x;
  }
  free(s->at);
  s->at = all;
  s->nat = total;
}

/* Joins the stream to the event's capture, or its capture to the event. With the lock. */
static CUresult wait_captured(CUstream s, CUevent e) {
  fake_capture *c = e->capture;
  if (!c) { /* the capture would depend on work outside it */
    fake_capture_break(s->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (c->status == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_CAPTURED_EVENT; /* that capture has ended */
  if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s == s->ctx->legacy) {
    fake_capture_break(c);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (s->capture && s->capture != c) {
    fake_capture_break(c);
    fake_capture_break(s->capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!s->capture) {
    s->capture = c;
    c->refs++;
    free(s->at);
    s->at = NULL;
    s->nat = 0;
  }
  come_after(s, e->at, e->nat);
  return CUDA_SUCCESS;
}

CUresult fake_StreamWaitEvent(CUstream handle, CUevent e, unsigned flags) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuStreamWaitEvent", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (!event_ok(e)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags) return CUDA_ERROR_NOT_SUPPORTED; /* external waits: not modelled */
  pthread_mutex_lock(&fake_lock);
  if (s->capture && s->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (s->capture || e->capture) {
    rc = wait_captured(s, e);
  } else if (!fake_reached(e->point)) {
    fake_issue(s, (fake_work){.kind = DO_NOTHING, .call = "cuStreamWaitEvent"}, &e->point, 1);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* A look at an event is unsafe while somebody captures, and one that was recorded in a capture never happens. */
static CUresult look(const char *call, CUevent e, int wait) {
  CUresult rc = fake_enter(call, 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!event_ok(e)) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&fake_lock);
  if (e->capture) {
    if (e->capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) fake_capture_break(e->capture);
    rc = CUDA_ERROR_CAPTURED_EVENT;
  } else if ((rc = fake_capture_forbids()) == CUDA_SUCCESS) {
    if (wait) fake_await(e->point, call);
    rc = e->ctx->sticky ? e->ctx->sticky : fake_reached(e->point) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_EventQuery(CUevent e) { return look("cuEventQuery", e, 0); }
CUresult fake_EventSynchronize(CUevent e) { return look("cuEventSynchronize", e, 1); }

CUresult fake_EventElapsedTime(float *ms, CUevent a, CUevent b) {
  CUresult rc = fake_enter("cuEventElapsedTime", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!ms) return CUDA_ERROR_INVALID_VALUE;
  if (!event_ok(a) || !event_ok(b) || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !a->point.stream || !b->point.stream)
    return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&fake_lock);
  if (!fake_reached(a->point) || !fake_reached(b->point))
    rc = CUDA_ERROR_NOT_READY;
  else
    *ms = (float)((double)(b->when.tv_sec - a->when.tv_sec) * 1e3 + (double)(b->when.tv_nsec - a->when.tv_nsec) * 1e-6);
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_EventElapsedTime2(float *ms, CUevent a, CUevent b) { return fake_EventElapsedTime(ms, a, b); }
