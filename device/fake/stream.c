/* Streams: handles, order between streams, issue, and waits of the host. */
#define _GNU_SOURCE
#include <errno.h>

#include "fake.h"

static CUstream find(CUcontext c, CUstream handle) {
  for (CUstream s = c->streams; s; s = s->next)
    if (s == handle) return s->dead || s->inner ? NULL : s;
  return NULL;
}

static CUstream per_thread(CUcontext c) {
  const void *me = fake_thread();
  for (CUstream s = c->streams; s; s = s->next)
    if (s->thread == me && !s->dead) return s;
  CUstream s = fake_stream_new(c, 0);
  if (s) s->thread = me;
  return s;
}

CUstream fake_stream_of(CUcontext ctx, CUstream handle) {
  if (!handle || handle == CU_STREAM_LEGACY) return ctx->legacy;
  if (handle == CU_STREAM_PER_THREAD) return per_thread(ctx);
  for (CUcontext c = fake_contexts(); c; c = c->next) {
    CUstream s = c->dead ? NULL : find(c, handle);
    if (s) return s;
  }
  return NULL;
}

CUstream fake_stream_new(CUcontext c, unsigned flags) {
  CUstream s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->magic = MAGIC_STREAM;
  s->ctx = c;
  s->flags = flags;
  /* In turn, as new streams were seen to share the queues on an H200: the ninth waits behind the first. */
  s->queue = &c->queue[c->next_queue++ % c->nqueues];
  s->next = c->streams;
  c->streams = s;
  return s;
}

/* Streams are not freed: what is queued refers to them, and stale handles stay recognisable. */
void fake_stream_end(CUstream s) {
  if (s->capture) {
    fake_capture_break(s->capture);
    fake_capture_leave(s);
  }
  s->dead = 1;
}

int fake_reached(fake_point p) { return !p.stream || p.stream->done >= p.seq; }

/* One turn of a wait of the host; after some seconds it says what it waits for, again and again. */
static void turn(const char *call, CUstream s, int *seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  if (pthread_cond_timedwait(&fake_changed, &fake_lock, &until) != ETIMEDOUT) return;
  if (++*seconds % 5 == 0)
    fake_say("%s has waited for %d s: stream %p is at operation %llu of %llu, %s", call, *seconds, (void *)s,
             (unsigned long long)s->done + 1, (unsigned long long)s->issued, s->doing ? s->doing : "not begun: its queue is blocked");
}

void fake_await(fake_point p, const char *call) {
  int seconds = 0;
  while (!fake_reached(p) && !p.stream->ctx->sticky) turn(call, p.stream, &seconds);
}

void fake_await_idle(CUcontext c, const char *call) {
  int seconds = 0;
  for (CUstream s = c->streams; s;) {
    if (s->done < s->issued && !c->sticky) {
      turn(call, s, &seconds);
      s = c->streams; /* others may have got work meanwhile */
    } else {
      s = s->next;
    }
  }
}

fake_work fake_work_copy(const fake_work *w) {
  fake_work c = *w;
  if (w->kind == DO_MEMOPS) {
    c.memops.list = malloc(w->memops.n * sizeof *w->memops.list);
    memcpy(c.memops.list, w->memops.list, w->memops.n * sizeof *w->memops.list);
  }
  if (w->kind == DO_KERNEL) {
    c.kernel.param = malloc(4096);
    memcpy(c.kernel.param, w->kernel.param, 4096);
  }
  return c;
}

void fake_work_free(fake_work *w) {
  if (w->kind == DO_MEMOPS) free(w->memops.list);
  if (w->kind == DO_KERNEL) free(w->kernel.param);
  w->kind = DO_NOTHING;
}

fake_point fake_issue(CUstream s, fake_work w, const fake_point *points, int npoints) {
  fake_op *op = calloc(1, sizeof *op);
  op->stream = s;
  op->work = w;
  op->seq = ++s->issued;
  int room = npoints;
  if (s == s->ctx->legacy || !(s->flags & CU_STREAM_NON_BLOCKING))
    for (CUstream o = s->ctx->streams; o; o = o->next) room++;
  op->points = calloc((size_t)room + 1, sizeof *op->points);
  for (int i = 0; i < npoints; i++)
    if (!fake_reached(points[i])) op->points[op->npoints++] = points[i];
  /* The legacy stream waits for all blocking streams, and they for it (CUDA Driver API, stream synchronization behavior). */
  if (s == s->ctx->legacy) {
    for (CUstream o = s->ctx->streams; o; o = o->next)
      if (o != s && !o->inner && !(o->flags & CU_STREAM_NON_BLOCKING) && o->done < o->issued)
        op->points[op->npoints++] = (fake_point){o, o->issued};
  } else if (!s->inner && !(s->flags & CU_STREAM_NON_BLOCKING) && s->ctx->legacy->done < s->ctx->legacy->issued) {
    op->points[op->npoints++] = (fake_point){s->ctx->legacy, s->ctx->legacy->issued};
  }
  fake_queue_push(s->queue, op);
  return (fake_point){s, op->seq};
}

/* CUDA_LAUNCH_BLOCKING: work returns when it is done; waits, writes and records are no launches. */
static int launches_block(enum fake_kind kind) {
  return (kind == DO_KERNEL || kind == DO_COPY || kind == DO_SET) && fake_setting("CUDA_LAUNCH_BLOCKING", 0);
}

/* The legacy stream would wait for streams that are being captured. */
static CUresult legacy_meets_capture(CUstream s) {
  for (CUstream o = s->ctx->streams; o; o = o->next)
    if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING)) {
      fake_capture_break(o->capture);
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  return CUDA_SUCCESS;
}

CUresult fake_submit(CUstream s, fake_work w, fake_point *made) {
  CUresult rc = CUDA_SUCCESS;
  pthread_mutex_lock(&fake_lock);
  if (made) *made = (fake_point){0};
  if (s->capture) {
    rc = fake_capture_add(s, w);
  } else {
    if (s == s->ctx->legacy) rc = legacy_meets_capture(s);
    if (rc != CUDA_SUCCESS) {
      fake_work_free(&w);
    } else {
      fake_point p = fake_issue(s, w, NULL, 0);
      if (made) *made = p;
      if (launches_block(w.kind)) {
        fake_await(p, w.call);
        rc = s->ctx->sticky;
      }
    }
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_submit_and_wait(CUstream s, fake_work w) {
  fake_point p;
  CUresult rc = fake_submit(s, w, &p);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_await(p, w.call);
  rc = s->ctx->sticky;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* --- entry points --- */

static CUresult create(const char *call, CUstream *out, unsigned flags) {
  CUcontext ctx;
  CUresult rc = fake_enter(call, IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  CUstream s = fake_stream_new(ctx, flags);
  pthread_mutex_unlock(&fake_lock);
  if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = s;
  return CUDA_SUCCESS;
}

CUresult fake_StreamCreate(CUstream *out, unsigned flags) { return create("cuStreamCreate", out, flags); }

CUresult fake_StreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  (void)priority;
  return create("cuStreamCreateWithPriority", out, flags);
}

/* Does not wait: the work goes on, the handle is dead. */
CUresult fake_StreamDestroy(CUstream handle) {
  CUresult rc = fake_enter("cuStreamDestroy_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if ((uintptr_t)handle <= 2) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&fake_lock);
  CUstream s = fake_stream_of(NULL, handle);
  if (s)
    fake_stream_end(s);
  else
    rc = CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

static CUresult lookup(const char *call, CUstream handle, CUstream *s) {
  CUcontext ctx;
  CUresult rc = fake_enter(call, IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  *s = fake_stream_of(ctx, handle);
  pthread_mutex_unlock(&fake_lock);
  return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_StreamGetFlags(CUstream handle, unsigned *flags) {
  CUstream s;
  CUresult rc = lookup("cuStreamGetFlags", handle, &s);
  if (rc == CUDA_SUCCESS && !flags) rc = CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS) *flags = s->flags;
  return rc;
}

CUresult fake_StreamGetCtx(CUstream handle, CUcontext *out) {
  CUstream s;
  CUresult rc = lookup("cuStreamGetCtx", handle, &s);
  if (rc == CUDA_SUCCESS && !out) rc = CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS) *out = s->ctx;
  return rc;
}

static CUresult look(const char *call, CUstream handle, int wait) {
  CUstream s;
  CUresult rc = lookup(call, handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  rc = fake_capture_looked_at(s);
  if (rc == CUDA_SUCCESS && s == s->ctx->legacy) rc = legacy_meets_capture(s);
  if (rc == CUDA_SUCCESS) rc = fake_capture_forbids();
  if (rc == CUDA_SUCCESS) {
    fake_point p = {s, s->issued};
    if (s == s->ctx->legacy) /* it waits for the blocking streams too, once something is in it; so does a look at it */
      for (CUstream o = s->ctx->streams; o && wait; o = o->next)
        if (o != s && !o->inner && !(o->flags & CU_STREAM_NON_BLOCKING)) fake_await((fake_point){o, o->issued}, call);
    if (wait) fake_await(p, call);
    rc = s->ctx->sticky ? s->ctx->sticky : fake_reached(p) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_StreamSynchronize(CUstream handle) { return look("cuStreamSynchronize", handle, 1); }
CUresult fake_StreamQuery(CUstream handle) { return look("cuStreamQuery", handle, 0); }

CUresult fake_LaunchHostFunc(CUstream handle, CUhostFn fn, void *arg) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuLaunchHostFunc", handle, &s);
  if (rc == CUDA_SUCCESS && !fn) rc = CUDA_ERROR_INVALID_VALUE;
  if (rc != CUDA_SUCCESS) return rc;
  return fake_submit(s, (fake_work){.kind = DO_HOST, .call = "cuLaunchHostFunc", .host = {fn, arg}}, NULL);
}
