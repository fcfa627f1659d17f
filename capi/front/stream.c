/* Host streams: a worker thread with a FIFO of launches. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "front.h"

struct gccl_stream {
  uint64_t magic;
  gccl_stream *next; /* in the list of live streams */
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  gccl_task *first, **last;
  int busy, closing;
  pthread_t thread;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static gccl_stream *list;

static void *worker(void *arg) {
  gccl_stream *s = arg;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first && !s->closing) pthread_cond_wait(&s->work, &s->lock);
    gccl_task *t = s->first;
    if (!t) break;
    s->first = t->next;
    if (!s->first) s->last = &s->first;
    s->busy = 1;
    pthread_mutex_unlock(&s->lock);
    gccl_task_run(t);
    pthread_mutex_lock(&s->lock);
    s->busy = 0;
    if (!s->first) pthread_cond_broadcast(&s->idle);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

gccl_stream *gccl_stream_new(void) {
  gccl_stream *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->idle, NULL);
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, 512 << 10);
  int bad = pthread_create(&s->thread, &a, worker, s);
  pthread_attr_destroy(&a);
  if (bad) {
    free(s);
    return NULL;
  }
  return s;
}

void gccl_stream_push(gccl_stream *s, gccl_task *t) {
  t->next = NULL;
  pthread_mutex_lock(&s->lock);
  *s->last = t;
  s->last = &t->next;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
}

ncclResult_t gccl_stream_drain(gccl_stream *s) {
  pthread_mutex_lock(&s->lock);
  while (s->first || s->busy) {
    if (!gccl_interrupt_self.ask) {
      pthread_cond_wait(&s->idle, &s->lock);
      continue;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    if (pthread_cond_timedwait(&s->idle, &s->lock, &until) == 0) continue;
    pthread_mutex_unlock(&s->lock); /* the program's function does not run under our lock */
    if (gccl_interrupted()) return ncclInProgress;
    pthread_mutex_lock(&s->lock);
  }
  pthread_mutex_unlock(&s->lock);
  return ncclSuccess;
}

void gccl_stream_free(gccl_stream *s) {
  pthread_mutex_lock(&s->lock);
  s->closing = 1;
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->work);
  pthread_cond_destroy(&s->idle);
  free(s);
}

static int listed(gccl_stream *want) {
  for (gccl_stream *s = list; s; s = s->next)
    if (s == want) return 1;
  return 0;
}

ncclResult_t gccl_stream_find(cudaStream_t stream, gccl_stream **out, const char *call) {
  *out = NULL;
  if ((uintptr_t)stream <= 2) return ncclSuccess; /* cudaStreamLegacy is 1, cudaStreamPerThread 2 (driver_types.h) */
  gccl_stream *s = (gccl_stream *)stream;
  pthread_mutex_lock(&list_lock);
  int ok = listed(s);
  pthread_mutex_unlock(&list_lock);
  if (!ok)
    return gccl_fail(ncclInvalidArgument, "%s: stream %p is not a live host stream: in host mode pass NULL or a stream of gcclStreamCreate",
                     call, (void *)stream);
  *out = s;
  return ncclSuccess;
}

static ncclResult_t find_own(cudaStream_t stream, gccl_stream **out, const char *call) {
  *out = NULL;
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open(call);
  return gccl_stream_find(stream, out, call);
}

GCCL_OWN_API ncclResult_t gcclStreamCreate(cudaStream_t *stream) {
  if (!stream) return gccl_fail(ncclInvalidArgument, "gcclStreamCreate: stream is NULL");
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open("gcclStreamCreate");
  gccl_stream *s = gccl_stream_new();
  if (!s) return gccl_fail(ncclSystemError, "gcclStreamCreate: cannot start a thread: check the limits on processes and memory");
  pthread_mutex_lock(&list_lock);
  s->next = list;
  list = s;
  pthread_mutex_unlock(&list_lock);
  *stream = (cudaStream_t)s;
  return ncclSuccess;
}

GCCL_OWN_API ncclResult_t gcclStreamSynchronize(cudaStream_t stream) {
  gccl_stream *s;
  ncclResult_t rc = find_own(stream, &s, "gcclStreamSynchronize");
  return rc == ncclSuccess && s ? gccl_stream_drain(s) : rc;
}

GCCL_OWN_API ncclResult_t gcclStreamQuery(cudaStream_t stream) {
  gccl_stream *s;
  ncclResult_t rc = find_own(stream, &s, "gcclStreamQuery");
  if (rc != ncclSuccess || !s) return rc;
  pthread_mutex_lock(&s->lock);
  int busy = s->first || s->busy;
  pthread_mutex_unlock(&s->lock);
  return busy ? ncclInProgress : ncclSuccess;
}

GCCL_OWN_API ncclResult_t gcclStreamDestroy(cudaStream_t stream) {
  gccl_stream *s;
  ncclResult_t rc = find_own(stream, &s, "gcclStreamDestroy");
  if (rc != ncclSuccess) return rc;
  if (!s) return ncclSuccess; /* the caller itself: nothing to take down */
  pthread_mutex_lock(&list_lock);
  for (gccl_stream **p = &list; *p; p = &(*p)->next)
    if (*p == s) {
      *p = s->next;
      break;
    }
  pthread_mutex_unlock(&list_lock);
  gccl_stream_free(s);
  return ncclSuccess;
}

GCCL_OWN_API ncclResult_t gcclStreamLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg) {
  gccl_stream *s;
  ncclResult_t rc = find_own(stream, &s, "gcclStreamLaunchHostFunc");
  if (rc != ncclSuccess) return rc;
  if (!fn) return gccl_fail(ncclInvalidArgument, "gcclStreamLaunchHostFunc: fn is NULL");
  if (!s) {
    fn(arg);
    return ncclSuccess;
  }
  gccl_task *t = gccl_task_call(fn, arg);
  if (!t) return gccl_fail(ncclSystemError, "gcclStreamLaunchHostFunc: out of memory");
  gccl_stream_push(s, t);
  return ncclSuccess;
}
