/* Ranks that an operation waits for: who they are, for the report of a late one, and whether one of them has left the communicator (it has
 * destroyed or aborted it), so that the wait has no end. A process that ends is found by others (comm/obituaries.go).
 *
 * A rank marks the areas of its peers when it leaves, after all that it has ever said in them: who sees the mark first and then that
 * something is missing knows that it will not come.
 */
#include <stdio.h>

#include "launch.h"

static int has_left(const struct ncclComm *c, int q) {
  const uint64_t *mark = (const uint64_t *)(c->self.area + c->geo.signals + (uint64_t)q * GCCL_LINE) + 1; /* gccl_ctl_left_mark */
  return __atomic_load_n(mark, __ATOMIC_ACQUIRE) != 0;
}

/* Whether this rank waits on the host for rank q's call. Preconditions: it waits for one. */
static int absent(const gccl_op *x, int q) {
  const gccl_cuda_comm *d = gccl_cuda_of(x->comm);
  int executor = executor_of(x);
  if (q == d->rank) return 0;
  if (x->kind == GCCL_DO_WAIT_SIGNAL) return q == x->root;
  if (executor != d->rank) return q == executor && !gccl_cuda_is_taken(gccl_cuda_record_of(d, x, d->rank));
  if (x->kind != GCCL_DO_COLL && q != x->root) return 0;
  return gccl_load(&gccl_cuda_record_of(d, x, q)->seq) != x->seq;
}

void gccl_cuda_absent(const gccl_op *x, char *text, size_t max) {
  enum { NAMED = 16 };
  int n = 0, first = 0;
  for (int q = 0; q < x->comm->nranks; q++)
    if (absent(x, q) && n++ == 0) first = q;
  if (n < 2) {
    snprintf(text, max, "rank %d", n ? first : x->blocked_on);
    return;
  }
  int at = snprintf(text, max, "%d ranks: ", n), named = 0;
  for (int q = 0; q < x->comm->nranks && named < NAMED && (size_t)at < max; q++)
    if (absent(x, q)) at += snprintf(text + at, max - (size_t)at, "%s%d", named++ ? ", " : "", q);
  if (n > named && (size_t)at < max) snprintf(text + at, max - (size_t)at, " and %d more", n - named);
}

static void gone(struct ncclComm *c, int q, const char *what) {
  gccl_comm_latch(
      c, GCCL_RC_REMOTE,
      "rank %d of %d has left the communicator without taking part in %s, for which rank %d waits: all ranks must make the same "
      "calls before they destroy or abort it",
      q, c->nranks, what, c->rank);
}

void gccl_cuda_left(const gccl_op *x) {
  struct ncclComm *c = x->comm;
  if (x->kind == GCCL_DO_WAIT_SIGNAL) return; /* its signals may have come: gccl_cuda_look */
  for (int q = 0; q < c->nranks; q++)
    if (has_left(c, q) && absent(x, q)) {
      char what[96];
      snprintf(what, sizeof what, "%s of %llu %s", x->kind == GCCL_DO_COLL ? gccl_coll_names[x->coll] : "a message",
               (unsigned long long)x->count, gccl_type_names[x->dtype]);
      gone(c, q, what);
      return;
    }
}

static int waits(const gccl_cuda_record *ring, int n) {
  for (int i = 0; i < n; i++)
    if (gccl_load(&ring[i].seq) && !gccl_cuda_is_taken(&ring[i])) return 1;
  return 0;
}

/* The last collective that a rank has come to. Its records are in a ring. */
static uint64_t come_to(const struct ncclComm *c, int q) {
  uint64_t last = 0;
  for (uint64_t k = 1; k <= GCCL_RECORDS; k++) {
    uint64_t seq = gccl_load(&gccl_record_of(c, q, k)->seq);
    if (seq > last) last = seq;
  }
  return last;
}

static void say_late(struct ncclComm *c, uint64_t seq, int turn, uint64_t waited) {
  char what[96] = "a collective";
  const gccl_call *call = gccl_call_of(c, c->rank, seq);
  if (gccl_load(&gccl_record_of(c, c->rank, seq)->seq) == seq)
    snprintf(what, sizeof what, "%s of %llu %s", gccl_coll_names[call->coll], (unsigned long long)call->count,
             gccl_type_names[call->dtype]);
  c->late(c, seq, turn, what, waited);
}

/* Kernels of this rank that wait on the GPU: for a rank that has left, or too long. */
static void look_at_kernels(struct ncclComm *c, gccl_cuda_lanes *l) {
  gccl_cuda_comm *d = gccl_cuda_of(c);
  static const unsigned after[] = {1, 6, 30}; /* times GCCL_LATE, as for other waits */
  uint32_t ended = __atomic_load_n(&eager_words(d, d->rank, d->rank)->done, __ATOMIC_ACQUIRE);
  pthread_mutex_lock(&d->guard);
  int waits = !d->tail.capture && d->tail.executor == d->rank && !launch_done(d, d->rank, d->tail.number);
  uint64_t called = d->tail.seq, now = gccl_now_ns();
  pthread_mutex_unlock(&d->guard);
  if (!waits || !l->looked.since || ended != l->looked.number) {
    l->looked.number = ended;
    l->looked.turn = 0;
    l->looked.since = waits ? now : 0;
    return;
  }
  uint64_t first = called;
  for (int q = 0; q < d->nranks; q++) {
    int left = has_left(c, q); /* before what it has said */
    uint64_t last = come_to(c, q);
    if (last >= called) continue;
    if (left) gone(c, q, "a collective");
    if (last + 1 < first) first = last + 1;
  }
  if (c->late_ns && l->looked.turn < 3 && now - l->looked.since >= after[l->looked.turn] * c->late_ns && c->late)
    say_late(c, first, ++l->looked.turn, now - l->looked.since);
}

void gccl_cuda_look(struct ncclComm *c) {
  const gccl_cuda_comm *d = gccl_cuda_of(c);
  if (!atomic_load(&d->met) || d->nranks == 1 || d->stage) return;
  if (d->ll_bytes) look_at_kernels(c, d->lanes);
  char *own = d->peer[d->rank].shared;
  for (int q = 0; q < d->nranks; q++) {
    if (q == d->rank || !has_left(c, q)) continue;
    const gccl_cuda_record *messages = (const gccl_cuda_record *)(own + d->layout.messages) + (size_t)q * GCCL_CUDA_MESSAGES;
    if (q == d->leader && waits((const gccl_cuda_record *)(own + d->layout.colls), GCCL_CUDA_COLLS)) gone(c, q, "a collective");
    if (waits(messages, GCCL_CUDA_MESSAGES)) gone(c, q, "a message to it");
    const gccl_cuda_signal *s = gccl_cuda_signal_at(d, q, d->rank);
    uint64_t want = __atomic_load_n(&c->signals_waited[q], __ATOMIC_RELAXED);
    if (d->peer[q].same_process ? gccl_load(&s->issued) < want
                                : (int32_t)(__atomic_load_n(&s->count, __ATOMIC_ACQUIRE) - (uint32_t)want) < 0)
      gone(c, q, "a signal");
  }
}
