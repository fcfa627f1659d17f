/* Stream capture: what it collects, what it forbids, and how it breaks (CUDA C++ Programming Guide, creating a graph using stream
 * capture; CUDA Driver API, cuThreadExchangeStreamCaptureMode). */
#include "fake.h"

static fake_capture *running[64]; /* captures that have begun and not ended */
static __thread int thread_mode;  /* CU_STREAM_CAPTURE_MODE_GLOBAL at first */

CUresult fake_ThreadExchangeStreamCaptureMode(int *mode) {
  CUresult rc = fake_enter("cuThreadExchangeStreamCaptureMode", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!mode || *mode < 0 || *mode > 2) return CUDA_ERROR_INVALID_VALUE;
  int old = thread_mode;
  thread_mode = *mode;
  *mode = old;
  return CUDA_SUCCESS;
}

CUresult fake_capture_forbids(void) {
  CUresult rc = CUDA_SUCCESS;
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return rc;
  for (int i = 0; i < 64; i++) {
    fake_capture *c = running[i];
    if (!c || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    int mine = c->thread == fake_thread();
    if (!mine && (c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL || thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL)) continue;
    fake_capture_break(c);
    rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return rc;
}

void fake_capture_break(fake_capture *c) {
  if (c->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) c->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

void fake_capture_unref(fake_capture *c) {
  if (--c->refs == 0) free(c);
}

void fake_capture_leave(CUstream s) {
  if (s->capture) fake_capture_unref(s->capture);
  s->capture = NULL;
  free(s->at);
  s->at = NULL;
  s->nat = 0;
}

CUresult fake_capture_looked_at(CUstream s) {
  if (!s->capture) return CUDA_SUCCESS;
  if (s->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  fake_capture_break(s->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult fake_capture_add(CUstream s, fake_work w) {
  fake_capture *c = s->capture;
  if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    fake_work_free(&w);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUgraphNode n = fake_graph_add(c->graph, w, s->at, s->nat);
  free(s->at);
  s->at = malloc(sizeof *s->at);
  s->at[0] = n;
  s->nat = 1;
  return CUDA_SUCCESS;
}

CUresult fake_StreamBeginCapture(CUstream handle, int mode) {
  static uint64_t last_id;
  CUstream s;
  CUresult rc = fake_enter_stream("cuStreamBeginCapture_v2", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  int slot = 0;
  while (slot < 63 && running[slot]) slot++;
  if (s == s->ctx->legacy) {
    rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else if (s->capture || running[slot]) {
    rc = CUDA_ERROR_ILLEGAL_STATE;
  } else {
    fake_capture *c = calloc(1, sizeof *c);
    *c = (fake_capture){++last_id, CU_STREAM_CAPTURE_STATUS_ACTIVE, mode, 2, fake_thread(), s, fake_graph_new()};
    c->graph->captured = 1;
    running[slot] = s->capture = c;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

static void reach(char *seen, CUgraphNode n) {
  if (seen[n->index]) return;
  seen[n->index] = 1;
  for (size_t i = 0; i < n->nafter; i++) reach(seen, n->after[i]);
}

/* Whether everything that other streams captured is followed by the origin. */
static int joined(const fake_capture *c) {
  CUstream s = c->origin;
  char *seen = calloc((size_t)c->graph->n + 1, 1);
  for (size_t i = 0; i < s->nat; i++) reach(seen, s->at[i]);
  int all = 1;
  for (int i = 0; i < c->graph->n; i++) all &= seen[i];
  free(seen);
  return all;
}

CUresult fake_StreamEndCapture(CUstream handle, CUgraph *out) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuStreamEndCapture", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  pthread_mutex_lock(&fake_lock);
  fake_capture *c = s->capture;
  if (!c) {
    rc = CUDA_ERROR_ILLEGAL_STATE;
  } else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != fake_thread()) {
    rc = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  } else if (c->origin != s) {
    fake_capture_break(c);
    rc = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  } else {
    if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
      rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(c))
      rc = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    c->graph->captured = 0;
    if (rc == CUDA_SUCCESS)
      *out = c->graph;
    else
      fake_graph_free(c->graph);
    c->graph = NULL;
    c->status = CU_STREAM_CAPTURE_STATUS_NONE;
    for (int i = 0; i < 64; i++)
      if (running[i] == c) {
        running[i] = NULL;
        fake_capture_unref(c);
        break;
      }
    /* The origin last: the capture lives as long as somebody refers to it. */
    for (CUcontext x = fake_contexts(); x; x = x->next)
      for (CUstream o = x->streams; o; o = o->next)
        if (o->capture == c && o != s) fake_capture_leave(o);
    fake_capture_leave(s);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* Both leave a capture as it is; only the legacy stream beside one is an error. */
static CUresult status(const char *call, CUstream handle, CUstream *s) {
  CUcontext ctx;
  CUresult rc = fake_enter(call, IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  *s = fake_stream_of(ctx, handle);
  if (!*s) rc = CUDA_ERROR_INVALID_HANDLE;
  if (*s && *s == (*s)->ctx->legacy)
    for (CUstream o = (*s)->ctx->streams; o; o = o->next)
      if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING)) rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_StreamIsCapturing(CUstream handle, int *out) {
  CUstream s;
  CUresult rc = out ? status("cuStreamIsCapturing", handle, &s) : CUDA_ERROR_INVALID_VALUE;
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  *out = s->capture ? s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

CUresult fake_StreamGetCaptureInfo(CUstream handle, int *out, uint64_t *id, CUgraph *graph, const CUgraphNode **at, size_t *n) {
  CUstream s;
  CUresult rc = out ? status("cuStreamGetCaptureInfo_v2", handle, &s) : CUDA_ERROR_INVALID_VALUE;
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  *out = s->capture ? s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
  int active = *out == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id && active) *id = s->capture->id;
  if (graph && active) *graph = s->capture->graph;
  if (at && active) *at = s->at;
  if (n && active) *n = s->nat;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

CUresult fake_StreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *at, size_t n, unsigned flags) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuStreamUpdateCaptureDependencies", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if ((n && !at) || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (!s->capture)
    rc = CUDA_ERROR_ILLEGAL_STATE;
  else if (s->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (size_t i = 0; i < n && rc == CUDA_SUCCESS; i++)
    if (!at[i] || at[i]->magic != MAGIC_NODE || at[i]->graph != s->capture->graph) rc = CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS) {
    size_t keep = flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES ? s->nat : 0;
    CUgraphNode *all = malloc((keep + n + 1) * sizeof *all);
    if (keep) memcpy(all, s->at, keep * sizeof *all);
    if (n) memcpy(all + keep, at, n * sizeof *all);
    free(s->at);
    s->at = all;
    s->nat = keep + n;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}
