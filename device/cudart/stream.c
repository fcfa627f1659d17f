/* Streams: host streams of libgccl, so that collectives and copies of one stream run in order. */
#include <pthread.h>
#include <stdlib.h>

#include "cudart.h"

typedef struct entry {
  struct entry *next;
  cudaStream_t stream;
  int device, priority;
  unsigned flags;
} entry;

enum { NON_BLOCKING = 1 }; /* cudaStreamNonBlocking */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;

int cudart_is_null(cudaStream_t s) { return (uintptr_t)s <= 2; } /* cudaStreamLegacy is 1, cudaStreamPerThread 2 */

void cudart_drain(int device, int all) {
  for (size_t skip = 0;; skip++) { /* one at a time: no lock is held while a stream works */
    cudaStream_t s = NULL;
    size_t seen = 0;
    pthread_mutex_lock(&lock);
    for (entry *e = entries; e && !s; e = e->next)
      if (e->device == device && (all || !(e->flags & NON_BLOCKING)) && seen++ == skip) s = e->stream;
    pthread_mutex_unlock(&lock);
    if (!s) return;
    gcclStreamSynchronize(s); /* one that has just been destroyed is empty */
  }
}

cudaError_t cudart_enqueue(cudaStream_t s, void (*fn)(void *), void *arg) {
  if (cudart_is_null(s)) cudart_drain(cudart_current(), 0);
  return cudart_of(gcclStreamLaunchHostFunc(s, fn, arg));
}

static cudaError_t create(cudaStream_t *s, unsigned flags, int priority) {
  if (!s || flags > NON_BLOCKING) return cudart_set(ERR_INVALID_VALUE);
  entry *e = malloc(sizeof *e);
  if (!e) return cudart_set(ERR_MEMORY);
  *e = (entry){NULL, NULL, cudart_current(), priority, flags};
  cudaError_t rc = cudart_of(gcclStreamCreate(&e->stream));
  if (rc != OK) return free(e), rc;
  *s = e->stream;
  pthread_mutex_lock(&lock);
  e->next = entries;
  entries = e;
  pthread_mutex_unlock(&lock);
  return OK;
}

/* A copy of the entry of a stream; 0 if there is none. take: the entry goes. */
static int look(cudaStream_t s, entry *out, int take) {
  entry *found = NULL;
  pthread_mutex_lock(&lock);
  for (entry **e = &entries; *e; e = &(*e)->next)
    if ((*e)->stream == s) {
      found = *e;
      *out = *found;
      if (take) *e = found->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (take) free(found);
  return found != NULL;
}

CUDART_API cudaError_t cudaStreamCreate(cudaStream_t *s) { return create(s, 0, 0); }
CUDART_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) { return create(s, flags, 0); }
CUDART_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority) { return create(s, flags, priority); }

CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = 0;
  return OK;
}

/* Returns when the work is done: CUDA lets it go on. */
CUDART_API cudaError_t cudaStreamDestroy(cudaStream_t s) {
  entry e;
  if (cudart_is_null(s) || !look(s, &e, 1)) return cudart_set(ERR_HANDLE);
  return cudart_of(gcclStreamDestroy(s));
}

CUDART_API cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (cudart_is_null(s)) return cudart_drain(cudart_current(), 0), OK;
  return cudart_of(gcclStreamSynchronize(s));
}

CUDART_API cudaError_t cudaStreamQuery(cudaStream_t s) { return cudart_of(gcclStreamQuery(s)); }

CUDART_API cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags) {
  entry e = {0};
  if (!flags) return cudart_set(ERR_INVALID_VALUE);
  if (!cudart_is_null(s) && !look(s, &e, 0)) return cudart_set(ERR_HANDLE);
  *flags = e.flags;
  return OK;
}

CUDART_API cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority) {
  entry e = {0};
  if (!priority) return cudart_set(ERR_INVALID_VALUE);
  if (!cudart_is_null(s) && !look(s, &e, 0)) return cudart_set(ERR_HANDLE);
  *priority = e.priority;
  return OK;
}

CUDART_API cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*fn)(void *), void *arg) {
  return fn ? cudart_enqueue(s, fn, arg) : cudart_set(ERR_INVALID_VALUE);
}

typedef struct {
  void (*fn)(cudaStream_t, cudaError_t, void *);
  cudaStream_t stream;
  void *arg;
} callback;

static void run_callback(void *arg) {
  callback c = *(callback *)arg;
  free(arg);
  c.fn(c.stream, OK, c.arg);
}

CUDART_API cudaError_t cudaStreamAddCallback(cudaStream_t s, void (*fn)(cudaStream_t, cudaError_t, void *), void *arg, unsigned flags) {
  if (!fn || flags) return cudart_set(ERR_INVALID_VALUE);
  callback *c = malloc(sizeof *c);
  if (!c) return cudart_set(ERR_MEMORY);
  *c = (callback){fn, s, arg};
  cudaError_t e = cudart_enqueue(s, run_callback, c);
  if (e != OK) free(c);
  return e;
}

/* ---- Capture: not here --------------------------------------------------------------------------------------------- */

CUDART_API cudaError_t cudaStreamIsCapturing(cudaStream_t s, int *status) {
  (void)s;
  if (!status) return cudart_set(ERR_INVALID_VALUE);
  *status = 0; /* cudaStreamCaptureStatusNone */
  return OK;
}

CUDART_API cudaError_t cudaStreamBeginCapture(cudaStream_t s, int mode) { return (void)s, (void)mode, cudart_set(ERR_NOT_SUPPORTED); }
