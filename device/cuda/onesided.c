/* One-sided operations: a put is a copy of the caller's stream into the peer's window, a signal stands behind it, a wait orders the
 * waiter's stream behind signals.
 *
 * Ranks of one process order their streams by events, after the waiter has seen on the host that the signals are in the sender's
 * stream: value waits of several streams of one context can hang (tried on driver 580). Between processes the sender's stream
 * writes a count into a pinned word of the receiver, and the receiver's stream waits for it.
 */
#include "launch.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* event fields of signals of this process */

static CUdeviceptr signal_word(const gccl_cuda_comm *d, int from, int to) {
  return d->peer[to].words - d->layout.words + d->layout.signals + (uint64_t)from * sizeof(gccl_cuda_signal) +
         offsetof(gccl_cuda_signal, count);
}

int gccl_cuda_signalled(const gccl_cuda_comm *d, const gccl_op *x) {
  if (d->nranks == 1 || !d->peer[x->root].same_process) return 1;
  return gccl_load(&gccl_cuda_signal_at(d, x->root, d->rank)->issued) >= d->comm->signals_waited[x->root] + x->count;
}

/* Takes the event behind a peer's last signal, with a reference; puts in its place next, which has one. */
static gccl_cuda_event *exchange(gccl_cuda_signal *s, gccl_cuda_event *next) {
  pthread_mutex_lock(&lock);
  gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)s->event;
  if (next)
    s->event = (uint64_t)(uintptr_t)next;
  else if (v)
    atomic_fetch_add(&v->refs, 1);
  pthread_mutex_unlock(&lock);
  return v;
}

void gccl_cuda_signals_drop(gccl_cuda_comm *d, int from) {
  gccl_cuda_signal *s = gccl_cuda_signal_at(d, from, d->rank);
  pthread_mutex_lock(&lock);
  gccl_cuda_event *v = (gccl_cuda_event *)(uintptr_t)s->event;
  s->event = 0;
  pthread_mutex_unlock(&lock);
  gccl_cuda_event_unref(v);
}

static CUresult signal_here(gccl_cuda_batch *b, int to) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  gccl_cuda_signal *s = gccl_cuda_signal_at(d, d->rank, to);
  gccl_cuda_event *v = gccl_cuda_event_get(d->cx);
  if (!v) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&v->refs, 1);
  CUresult e = gccl_cu.EventRecord(v->event, b->stream);
  if (e) {
    gccl_cuda_event_unref(v);
    return e;
  }
  gccl_cuda_event_unref(exchange(s, v));
  gccl_store(&s->issued, ++b->comm->signals_sent[to]); /* acquired in gccl_cuda_signalled */
  return CUDA_SUCCESS;
}

static CUresult wait_here(gccl_cuda_batch *b, int from) {
  gccl_cuda_event *v = exchange(gccl_cuda_signal_at(gccl_cuda_of(b->comm), from, b->comm->rank), NULL);
  CUresult e = v ? gccl_cu.StreamWaitEvent(b->stream, v->event, 0) : CUDA_SUCCESS;
  gccl_cuda_event_unref(v);
  return e;
}

int gccl_cuda_onesided(gccl_cuda_batch *b, gccl_op *x) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int here = c->nranks == 1 || d->peer[x->root].same_process;
  CUresult e = CUDA_SUCCESS;
  if (b->capture) {
    gccl_comm_latch(
        c, GCCL_RC_USAGE,
        "rank %d of %d: one-sided operations cannot be captured in this version: a captured wait compares a constant, and signals "
        "count: issue them outside the capture",
        c->rank, c->nranks);
    return GCCL_RC_USAGE;
  }
  if (x->kind == GCCL_DO_WAIT_SIGNAL) {
    if (c->nranks == 1) return 0;
    c->signals_waited[x->root] += x->count;
    if (here)
      e = wait_here(b, x->root);
    else
      e = gccl_cu.StreamWaitValue32(b->stream, signal_word(d, x->root, c->rank), (uint32_t)c->signals_waited[x->root],
                                    CU_STREAM_WAIT_VALUE_GEQ);
    return e ? gccl_cuda_failed(c, e, "waiting for a signal") : 0;
  }
  if (x->count) e = gccl_cu.MemcpyAsync((CUdeviceptr)(uintptr_t)x->recv, (CUdeviceptr)(uintptr_t)x->send, x->count * x->esize, b->stream);
  if (e) return gccl_cuda_failed(c, e, "cuMemcpyAsync");
  if (!x->signal || c->nranks == 1) return 0;
  if (here)
    e = signal_here(b, x->root);
  else
    e = gccl_cu.StreamWriteValue32(b->stream, signal_word(d, c->rank, x->root), (uint32_t)++c->signals_sent[x->root], 0);
  return e ? gccl_cuda_failed(c, e, "a signal") : 0;
}
