/* Events: a count of records, and how many of them their streams have passed. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

enum { DISABLE_TIMING = 2, KNOWN_FLAGS = 7 }; /* cudaEventBlockingSync 1, DisableTiming 2, Interprocess 4 */

struct CUevent_st {
  struct CUevent_st *next; /* in the list of live events */
  pthread_mutex_t lock;
  pthread_cond_t passed;
  uint64_t recorded, done;
  struct timespec when; /* of done */
  unsigned flags;
  int refs; /* the handle, and work that is enqueued */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaEvent_t list;

/* Takes a reference to a live event; NULL if it is none. take: the handle ends. */
static cudaEvent_t get(cudaEvent_t want, int take) {
  cudaEvent_t e = NULL;
  pthread_mutex_lock(&list_lock);
  for (cudaEvent_t *p = &list; *p; p = &(*p)->next)
    if (*p == want) {
      e = want;
      if (take) *p = e->next;
      break;
    }
  if (e && !take) __atomic_add_fetch(&e->refs, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&list_lock);
  return e;
}

static void put(cudaEvent_t e) {
  if (__atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL)) return;
  pthread_mutex_destroy(&e->lock);
  pthread_cond_destroy(&e->passed);
  free(e);
}

typedef struct {
  cudaEvent_t event;
  uint64_t number;
} mark;

static void await(cudaEvent_t e, uint64_t number) {
  pthread_mutex_lock(&e->lock);
  while (e->done < number) pthread_cond_wait(&e->passed, &e->lock);
  pthread_mutex_unlock(&e->lock);
}

static void run_mark(void *arg) {
  mark m = *(mark *)arg;
  free(arg);
  pthread_mutex_lock(&m.event->lock);
  if (m.event->done < m.number) {
    m.event->done = m.number;
    clock_gettime(CLOCK_MONOTONIC, &m.event->when);
    pthread_cond_broadcast(&m.event->passed);
  }
  pthread_mutex_unlock(&m.event->lock);
  put(m.event);
}

static void run_wait(void *arg) {
  mark m = *(mark *)arg;
  free(arg);
  await(m.event, m.number);
  put(m.event);
}

CUDART_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  if (!out || flags & ~(unsigned)KNOWN_FLAGS) return cudart_set(ERR_INVALID_VALUE);
  cudaEvent_t e = calloc(1, sizeof *e);
  if (!e) return cudart_set(ERR_MEMORY);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->passed, NULL);
  e->flags = flags;
  e->refs = 1;
  pthread_mutex_lock(&list_lock);
  e->next = list;
  list = e;
  pthread_mutex_unlock(&list_lock);
  *out = e;
  return OK;
}

CUDART_API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

CUDART_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  cudaEvent_t e = get(handle, 1);
  if (!e) return cudart_set(ERR_HANDLE);
  put(e);
  return OK;
}

CUDART_API cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t s) {
  cudaEvent_t e = get(handle, 0);
  if (!e) return cudart_set(ERR_HANDLE);
  mark *m = malloc(sizeof *m);
  if (!m) return put(e), cudart_set(ERR_MEMORY);
  pthread_mutex_lock(&e->lock);
  *m = (mark){e, ++e->recorded};
  pthread_mutex_unlock(&e->lock);
  cudaError_t rc = cudart_enqueue(s, run_mark, m);
  if (rc != OK) run_mark(m); /* a bad stream: nothing waits for a record that will not come */
  return rc;
}

CUDART_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags) {
  return flags ? cudart_set(ERR_NOT_SUPPORTED) : cudaEventRecord(e, s);
}

static uint64_t recorded(cudaEvent_t e, int *ready) {
  pthread_mutex_lock(&e->lock);
  uint64_t n = e->recorded;
  if (ready) *ready = e->done >= n;
  pthread_mutex_unlock(&e->lock);
  return n;
}

CUDART_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  cudaEvent_t e = get(handle, 0);
  if (!e) return cudart_set(ERR_HANDLE);
  int ready;
  recorded(e, &ready);
  put(e);
  return ready ? OK : ERR_NOT_READY;
}

CUDART_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  cudaEvent_t e = get(handle, 0);
  if (!e) return cudart_set(ERR_HANDLE);
  await(e, recorded(e, NULL));
  put(e);
  return OK;
}

CUDART_API cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t handle, unsigned flags) {
  if (flags) return cudart_set(ERR_NOT_SUPPORTED); /* cudaEventWaitExternal is for captures */
  cudaEvent_t e = get(handle, 0);
  if (!e) return cudart_set(ERR_HANDLE);
  mark *m = malloc(sizeof *m);
  if (!m) return put(e), cudart_set(ERR_MEMORY);
  *m = (mark){e, recorded(e, NULL)};
  cudaError_t rc = cudart_enqueue(s, run_wait, m);
  if (rc != OK) free(m), put(e);
  return rc;
}

CUDART_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  if (!ms) return cudart_set(ERR_INVALID_VALUE);
  cudaEvent_t e[2] = {get(from, 0), get(to, 0)};
  struct timespec t[2];
  cudaError_t rc = OK;
  for (int i = 0; i < 2; i++) {
    if (!e[i] || e[i]->flags & DISABLE_TIMING) {
      rc = cudart_set(ERR_HANDLE);
      continue;
    }
    pthread_mutex_lock(&e[i]->lock);
    if (!e[i]->recorded)
      rc = cudart_set(ERR_HANDLE);
    else if (e[i]->done < e[i]->recorded && rc == OK)
      rc = ERR_NOT_READY;
    t[i] = e[i]->when;
    pthread_mutex_unlock(&e[i]->lock);
  }
  for (int i = 0; i < 2; i++)
    if (e[i]) put(e[i]);
  if (rc == OK) *ms = (float)((double)(t[1].tv_sec - t[0].tv_sec) * 1e3 + (double)(t[1].tv_nsec - t[0].tv_nsec) / 1e6);
  return rc;
}

CUDART_API cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t from, cudaEvent_t to) { return cudaEventElapsedTime(ms, from, to); }
