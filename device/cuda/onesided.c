/* One-sided operations: a put is a copy of the caller's stream into the peer's window, a signal stands behind it, a wait orders the
 * waiter's stream behind signals.
 *
 * Ranks of one process order their streams by events, after the waiter has seen on the host that the signals are in the sender's
 * stream: value waits of several streams of one context can hang (tried on driver 580). Between processes the sender's stream
 * writes a count into a pinned word of the receiver, and the receiver's stream waits for it.
 *
 * Graphs have signals of their own, which captured waits alone take, because a replay is not seen from here and a captured wait
 * compares a constant. Between processes all graphs of a pair use one word that is full or empty: a signal waits until it is empty and
 * fills it, a wait for n signals waits n times until it is full and empties it. So the count is right however often which graph is
 * replayed; but the second signal waits until the first one is taken. In one process events order both ends inside of one capture.
 */
#include "launch.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* events and captures in signals of this process */

enum { MOST_CAPTURED = 4096 }; /* signals of one captured wait: a guess at what no program needs */

static CUdeviceptr signal_line(const gccl_cuda_comm *d, int from, int to) {
  return d->peer[to].words - d->layout.words + d->layout.signals + (uint64_t)from * sizeof(gccl_cuda_signal);
}
static CUdeviceptr signal_word(const gccl_cuda_comm *d, int from, int to) {
  return signal_line(d, from, to) + offsetof(gccl_cuda_signal, count);
}
static CUdeviceptr graph_word(const gccl_cuda_comm *d, int from, int to) {
  return signal_line(d, from, to) + offsetof(gccl_cuda_signal, graph);
}

int gccl_cuda_signalled(const gccl_cuda_batch *b, const gccl_op *x) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  if (d->nranks == 1 || !d->peer[x->root].same_process) return 1;
  const gccl_cuda_signal *s = gccl_cuda_signal_at(d, x->root, d->rank);
  if (b->capture) return gccl_load(&s->captured) >= d->taken[x->root] + x->count;
  return gccl_load(&s->issued) >= d->comm->signals_waited[x->root] + x->count;
}

/* Takes the event in a place, with a reference; puts there next, which has one. */
static gccl_cuda_event *exchange(uint64_t *place, gccl_cuda_event *next) {
  gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)*place;
  if (next)
    *place = (uint64_t)(uintptr_t)next;
  else if (v)
    atomic_fetch_add(&v->refs, 1);
  return v;
}

void gccl_cuda_signals_drop(gccl_cuda_comm *d, int from) {
  gccl_cuda_signal *s = gccl_cuda_signal_at(d, from, d->rank);
  pthread_mutex_lock(&lock);
  gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)s->event, *w = (gccl_cuda_event *)(uintptr_t)s->captured_event;
  s->event = s->captured_event = 0;
  pthread_mutex_unlock(&lock);
  gccl_cuda_event_unref(v);
  gccl_cuda_event_unref(w);
}

/* A rank of this process. */
static CUresult signal_here(gccl_cuda_batch *b, int to) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  gccl_cuda_signal *s = gccl_cuda_signal_at(d, d->rank, to);
  gccl_cuda_event *v = gccl_cuda_event_get(d->cx), *old;
  if (!v) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&v->refs, 1);
  CUresult e = gccl_cu.EventRecord(v->event, b->stream);
  if (e) {
    gccl_cuda_event_unref(v);
    return e;
  }
  pthread_mutex_lock(&lock);
  if (b->capture) s->capture = b->capture;
  old = exchange(b->capture ? &s->captured_event : &s->event, v);
  pthread_mutex_unlock(&lock);
  gccl_cuda_event_unref(old);
  /* Acquired in gccl_cuda_signalled. */
  if (b->capture)
    gccl_store(&s->captured, s->captured + 1);
  else
    gccl_store(&s->issued, ++b->comm->signals_sent[to]);
  return CUDA_SUCCESS;
}

static CUresult wait_here(gccl_cuda_batch *b, int from, int *elsewhere) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  gccl_cuda_signal *s = gccl_cuda_signal_at(d, from, d->rank);
  pthread_mutex_lock(&lock);
  *elsewhere = b->capture && s->capture != b->capture;
  gccl_cuda_event *v = exchange(b->capture ? &s->captured_event : &s->event, NULL);
  pthread_mutex_unlock(&lock);
  CUresult e = v && !*elsewhere ? gccl_cu.StreamWaitEvent(b->stream, v->event, 0) : CUDA_SUCCESS;
  gccl_cuda_event_unref(v);
  return e;
}

/* A rank of another process. */
static CUresult signal_there(gccl_cuda_batch *b, int to) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  if (!b->capture) return gccl_cu.StreamWriteValue32(b->stream, signal_word(d, d->rank, to), (uint32_t)++b->comm->signals_sent[to], 0);
  gccl_cuda_memops m = {.n = 0};
  CUresult e = gccl_cuda_pass(&m, b->stream, graph_word(d, d->rank, to), GCCL_CUDA_SIGNAL_EMPTY, GCCL_CUDA_SIGNAL_FULL);
  return e ? e : gccl_cuda_memops_flush(&m, b->stream);
}

static CUresult wait_there(gccl_cuda_batch *b, int from, uint64_t n) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  if (!b->capture)
    return gccl_cu.StreamWaitValue32(b->stream, signal_word(d, from, d->rank), (uint32_t)b->comm->signals_waited[from],
                                     CU_STREAM_WAIT_VALUE_GEQ);
  gccl_cuda_memops m = {.n = 0};
  CUresult e = CUDA_SUCCESS;
  while (n-- && !e) e = gccl_cuda_pass(&m, b->stream, graph_word(d, from, d->rank), GCCL_CUDA_SIGNAL_FULL, GCCL_CUDA_SIGNAL_EMPTY);
  return e ? e : gccl_cuda_memops_flush(&m, b->stream);
}

static int wait_signal(gccl_cuda_batch *b, gccl_op *x) {
  struct ncclComm *c = b->comm;
  int here = gccl_cuda_of(c)->peer[x->root].same_process, elsewhere = 0;
  if (b->capture && x->count > MOST_CAPTURED) {
    gccl_comm_latch(c, GCCL_RC_USAGE,
                    "rank %d of %d: a captured ncclWaitSignal for %llu signals of rank %d: each is an operation of the graph, at most %d: "
                    "send one signal behind several puts",
                    c->rank, c->nranks, (unsigned long long)x->count, x->root, MOST_CAPTURED);
    return GCCL_RC_USAGE;
  }
  if (b->capture)
    gccl_cuda_of(c)->taken[x->root] += x->count;
  else
    c->signals_waited[x->root] += x->count;
  CUresult e = here ? wait_here(b, x->root, &elsewhere) : wait_there(b, x->root, x->count);
  if (elsewhere) {
    gccl_comm_latch(
        c, GCCL_RC_USAGE,
        "rank %d of %d: the signal of rank %d of the same process is in another capture: their graphs would wait for each other "
        "by words, which can hang in one process: capture the streams of both ranks into one graph (fork and join them by "
        "events), or give each rank a process",
        c->rank, c->nranks, x->root);
    return GCCL_RC_USAGE;
  }
  return e ? gccl_cuda_failed(c, e, "waiting for a signal") : 0;
}

int gccl_cuda_onesided(gccl_cuda_batch *b, gccl_op *x) {
  struct ncclComm *c = b->comm;
  CUresult e = CUDA_SUCCESS;
  if (x->kind == GCCL_DO_WAIT_SIGNAL) return c->nranks == 1 ? 0 : wait_signal(b, x);
  if (x->count) e = gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)x->recv, (CUdeviceptr)(uintptr_t)x->send, x->count * x->esize, b->stream);
  if (e) return gccl_cuda_failed(c, e, "cuMemcpyAsync");
  if (!x->signal || c->nranks == 1) return 0;
  e = gccl_cuda_of(c)->peer[x->root].same_process ? signal_here(b, x->root) : signal_there(b, x->root);
  return e ? gccl_cuda_failed(c, e, "a signal") : 0;
}
