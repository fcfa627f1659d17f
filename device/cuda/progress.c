/* How far the streams are, for whoever looks from outside (gccl-top, a signal). On the way of an operation there are two stores into host
 * memory and no call of the driver; whoever asks pays.
 *
 * The end of the last operation is known anyway (tail). The ends before it are kept as marks, at most MARKS of them: when they are full,
 * every other one goes and only every second end from then on is kept. So the answer lags by at most 1/8 of what was called since the
 * last look, and is exact when nothing is under way. Captured operations count as finished: a replay is not seen from here.
 */
#include "launch.h"

/* Whether what ends with a tail is done; -1: only the driver knows, who is asked in the context. */
static int known(const gccl_cuda_comm *d, const gccl_cuda_tail *t) {
  if (t->capture || (!t->event && t->executor < 0)) return 1;
  if (t->event) return -1;
  return launch_done(d, t->executor, t->number);
}

/* This rank has come to a collective: its peers, and their processes, see which. */
void gccl_cuda_joined(gccl_cuda_comm *d, const gccl_op *x) {
  struct ncclComm *c = d->comm;
  if (d->stage) return; /* the host executor does */
  gccl_record *r = gccl_record_of(c, d->rank, x->seq);
  gccl_call *call = gccl_call_of(c, d->rank, x->seq);
  gccl_store(&r->seq, 0);
  atomic_thread_fence(memory_order_release); /* before the call; the reader looks at seq before and after it (control.c) */
  call->count = x->count;
  call->coll = x->coll;
  call->dtype = x->dtype;
  call->op = x->red;
  call->root = x->root;
  gccl_store(&r->seq, x->seq);
}

/* The last operation has become the one before. Preconditions: guard is held. */
void gccl_cuda_tail_replace(gccl_cuda_comm *d, const gccl_cuda_tail *t) {
  gccl_cuda_marks *m = &d->marks;
  gccl_cuda_tail old = d->tail;
  d->tail = *t;
  if (old.capture || (!old.event && old.executor < 0) || ++m->skipped < m->stride) {
    gccl_cuda_event_unref(old.event);
    return;
  }
  m->skipped = 0;
  if (m->n == GCCL_CUDA_MARKS) {
    for (int i = 0; i < m->n; i++)
      if (i % 2 == 0) gccl_cuda_event_unref(m->at[i].event);
    for (int i = 0; i < m->n / 2; i++) m->at[i] = m->at[2 * i + 1];
    m->n /= 2;
    m->stride *= 2;
  }
  m->at[m->n++] = old; /* with its reference */
}

void gccl_cuda_marks_drop(gccl_cuda_comm *d) {
  for (int i = 0; i < d->marks.n; i++) gccl_cuda_event_unref(d->marks.at[i].event);
  d->marks = (gccl_cuda_marks){.stride = 1};
}

/* Forgets the first n marks, which are done; without any left the next ends are kept again, each. */
static void forget(gccl_cuda_marks *m, int n) {
  for (int i = 0; i < n; i++) gccl_cuda_event_unref(m->at[i].event);
  for (int i = n; i < m->n; i++) m->at[i - n] = m->at[i];
  m->n -= n;
  if (m->n == 0) m->stride = 1;
}

/* Preconditions: guard is held; the context is current, if need be. */
static int done(const gccl_cuda_comm *d, const gccl_cuda_tail *t) {
  int k = known(d, t);
  return k >= 0 ? k : gccl_cu.EventQuery(t->event->event) == CUDA_SUCCESS;
}

static void look(gccl_cuda_comm *d) {
  gccl_cuda_marks *m = &d->marks;
  if (done(d, &d->tail)) {
    d->finished = d->tail.seq;
    forget(m, m->n);
    return;
  }
  int i = m->n;
  while (i > 0 && !done(d, &m->at[i - 1])) i--;
  if (i > 0) d->finished = m->at[i - 1].seq;
  forget(m, i);
}

uint64_t gccl_cuda_progress(gccl_cuda_comm *d, uint64_t *called) {
  struct ncclComm *c = d->comm;
  gccl_area *mine = d->nranks > 1 ? gccl_area_of(c, d->rank) : NULL;
  if (d->stage) { /* the host executor works */
    uint64_t p = gccl_load(&mine->progress) >> GCCL_STEP_BITS;
    *called = gccl_load(&c->seq);
    return p ? p - 1 : 0;
  }
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* a capture of any thread must not forbid what is done here */
  CUcontext before;
  if (gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS) {
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    pthread_mutex_lock(&d->guard);
    look(d);
    pthread_mutex_unlock(&d->guard);
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    gccl_cuda_leave(d->cx, before);
  }
  if (mine) gccl_store(&mine->progress, (d->finished + 1) << GCCL_STEP_BITS);
  *called = gccl_load(&d->colls);
  return d->finished;
}
