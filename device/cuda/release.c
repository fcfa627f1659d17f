/* The end of a communicator's work, in order or not.
 *
 * A stream that waits for a word of a rank which will never write it is freed by a store of a CPU into that pinned word, and by nothing
 * else. After a failure a thread of ours does that until nothing of the communicator waits any more; a replay of a graph is not
 * seen from here, so while graphs are alive the thread goes on.
 */
#include <time.h>

#include "launch.h"

/* Lets every stream of this process go on that waits for a word: a wait is for a 1, for a launch, or for more signals. Launches that
 * begin meanwhile are let go the next time. */
void gccl_cuda_free_waits(gccl_cuda_comm *d) {
  if (d->stage) return; /* streams wait for the worker, whose operations end */
  gccl_cuda_words *mine = (gccl_cuda_words *)(d->peer[d->rank].shared + d->layout.words);
  for (int q = 0; q < d->nranks; q++) {
    if (!d->peer[q].words || q == d->rank) continue;
    gccl_cuda_words *theirs = (gccl_cuda_words *)(d->peer[q].shared + d->layout.words);
    __atomic_store_n(&eager_words(d, d->rank, q)->done, (uint32_t)__atomic_load_n(&d->launches[q], __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    __atomic_store_n(&eager_words(d, q, d->rank)->ready, (uint32_t)__atomic_load_n(&d->served[q].launch, __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
    for (int k = 1; k < GCCL_CUDA_SLOTS; k++) {
      if (!atomic_load_explicit(&d->slot[k], memory_order_relaxed)) continue;
      /* As executor this rank waits for the peers' pairs, whose slots are theirs to choose: all of them. */
      __atomic_store_n(&mine[q * GCCL_CUDA_SLOTS + k].done, 1, __ATOMIC_RELEASE);
    }
    for (int k = 1; k < GCCL_CUDA_SLOTS; k++) __atomic_store_n(&theirs[d->rank * GCCL_CUDA_SLOTS + k].ready, 1, __ATOMIC_RELEASE);
    gccl_cuda_signal *s = gccl_cuda_signal_at(d, q, d->rank);
    __atomic_store_n(&s->count, __atomic_load_n(&s->count, __ATOMIC_RELAXED) + 0x10000000u, __ATOMIC_RELEASE);
    /* Of the words of graphs the bit that this rank's streams wait for, at either end. */
    __atomic_fetch_or(&s->graph, GCCL_CUDA_SIGNAL_FULL, __ATOMIC_RELEASE);
    __atomic_fetch_or(&gccl_cuda_signal_at(d, d->rank, q)->graph, GCCL_CUDA_SIGNAL_EMPTY, __ATOMIC_RELEASE);
  }
}

/* After an error in the context nothing runs any more, and no kernel writes its word. Preconditions: the context is current. */
static int context_dead(void) {
  CUevent v;
  CUresult e = gccl_cu.EventCreate(&v, CU_EVENT_DISABLE_TIMING);
  if (e) return 1;
  e = gccl_cu.EventQuery(v);
  gccl_cu.EventDestroy(v);
  return e != CUDA_SUCCESS;
}

/* Whether the last eager operation has ended in its stream. */
int gccl_cuda_idle(gccl_cuda_comm *d) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED, done = 1;
  CUcontext before;
  pthread_mutex_lock(&d->guard);
  int known = d->tail.event ? d->tail.capture != 0 : d->tail.executor < 0 || launch_done(d, d->tail.executor, d->tail.number);
  if (!known && gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS) {
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    done = d->tail.event ? gccl_cu.EventQuery(d->tail.event->event) != CUDA_ERROR_NOT_READY : context_dead();
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    gccl_cuda_leave(d->cx, before);
  }
  pthread_mutex_unlock(&d->guard);
  return done;
}

static void nap(unsigned naps) {
  struct timespec t = {0, naps < 100 ? 20000 : 1000000};
  nanosleep(&t, NULL);
}

static void *run(void *arg) {
  gccl_cuda_comm *d = arg;
  /* A little longer than the last operation that is known: the thread that issued it may be at the next. */
  for (unsigned naps = 0, quiet = 0; !atomic_load(&d->stop) && quiet < 20; naps++) {
    gccl_cuda_free_waits(d);
    quiet = gccl_cuda_idle(d) && !gccl_cuda_graphs(d) ? quiet + 1 : 0;
    nap(naps);
  }
  atomic_store(&d->releasing, 0);
  gccl_cuda_comm_unref(d);
  return NULL;
}

void gccl_cuda_release(struct ncclComm *c) {
  gccl_cuda_comm *d = gccl_cuda_of(c);
  pthread_t thread;
  if (!d || !atomic_load(&d->met) || d->nranks == 1 || atomic_exchange(&d->releasing, 1)) return;
  atomic_fetch_add(&d->refs, 1);
  if (pthread_create(&thread, NULL, run, d) == 0) {
    pthread_detach(thread);
    return;
  }
  atomic_store(&d->releasing, 0); /* then an abort does it, in quiesce */
  gccl_cuda_comm_unref(d);
}

int gccl_cuda_release_end(gccl_cuda_comm *d) {
  if (atomic_load(&d->releasing) && gccl_cuda_graphs(d)) return 1;
  atomic_store(&d->stop, 1);
  for (unsigned naps = 0; atomic_load(&d->releasing); naps++) nap(naps);
  return 0;
}

int gccl_cuda_quiesce(struct ncclComm *c, uint64_t timeout_ns) {
  gccl_cuda_comm *d = gccl_cuda_of(c);
  uint64_t start = gccl_now_ns();
  int r = gccl_order_quiesce(c, timeout_ns);
  if (r != GCCL_DONE) return r;
  for (unsigned naps = 0; !gccl_cuda_idle(d); naps++) {
    if (atomic_load(&c->abort) && d->peer) gccl_cuda_free_waits(d);
    if (timeout_ns && gccl_now_ns() - start > timeout_ns) return GCCL_RC_TIMEOUT;
    nap(naps);
  }
  return GCCL_DONE;
}
