/* running.c: faults while operations run. The frame destroys team->comm afterwards; NULL succeeds there. */
#include <signal.h>

#include "faults.h"

enum { N = 5000 };

static void after_loss(struct team *t, ncclResult_t rc, int victim) {
  int me = t->first;
  double late = conf_now() - atomic_load(&W->when);
  ncclResult_t state = ncclSuccess;
  conf_rc(me, ncclRemoteError, rc, "ncclAllReduce after a rank was killed", __FILE__, __LINE__);
  if (late > REPORT_SECONDS) conf_fail(me, "the loss of rank %d was reported after %.1f s", victim, late);
  OK(me, ncclCommGetAsyncError(t->comm[0], &state));
  TRUE(me, state == ncclRemoteError);
  names_rank(me, ncclGetLastError(t->comm[0]), victim, "last error of the communicator");
  /* Later calls give the latched failure; destroy gives it too and keeps the handle. */
  int x = 1, y = 0;
  RC(me, ncclRemoteError, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, t->comm[0], NULL));
  RC(me, ncclRemoteError, ncclCommDestroy(t->comm[0]));
  bounded_abort(me, t->comm[0]);
  t->comm[0] = NULL;
}

static void die(int me) {
  atomic_store(&W->doomed[me], 1);
  atomic_store(&W->when, conf_now());
  raise(SIGKILL);
}

void fault_coll_kill(struct team *t) {
  int me = t->first, victim = t->nranks - 2;
  static int32_t buf[N];
  ncclResult_t rc = ncclSuccess;
  double end = conf_now() + 20;
  for (int k = 0; rc == ncclSuccess && conf_now() < end; k++) {
    if (me == victim && k == 50) die(me);
    conf_at(me, "all-reduce %d", k);
    rc = ncclAllReduce(buf, buf, k % 2 ? N : 3, ncclInt32, ncclSum, t->comm[0], NULL);
  }
  after_loss(t, rc, victim);
}

/* The same with work on a stream: the call returned long ago, the asynchronous error tells. */
void fault_coll_kill_stream(struct team *t) {
  int me = t->first, victim = t->nranks - 2;
  static int32_t buf[N];
  cudaStream_t s;
  if (!OK(me, gcclStreamCreate(&s))) return;
  for (int k = 0; k < 5; k++) OK(me, ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, t->comm[0], s));
  OK(me, gcclStreamSynchronize(s));
  conf_barrier(t);
  if (me == victim) {
    conf_sleep(0.2); /* the others are in the middle of their operation */
    die(me);
  }
  ncclResult_t rc = ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, t->comm[0], s), state = ncclSuccess;
  conf_rc_any(me, rc, "ncclAllReduce on a stream", 2, ncclSuccess, ncclRemoteError);
  double end = conf_now() + 15;
  while (state == ncclSuccess && conf_now() < end) {
    if (!OK(me, ncclCommGetAsyncError(t->comm[0], &state))) break;
    conf_sleep(0.01);
  }
  after_loss(t, state, victim);
  OK(me, gcclStreamDestroy(s)); /* the stream is free again */
}

/* A stopped rank is no dead rank: the others wait until somebody aborts, and then at once they do not. */
void fault_coll_stop(struct team *t) {
  int me = t->first, victim = t->nranks - 2;
  static int32_t buf[N];
  static ncclComm_t comm;
  comm = t->comm[0];
  struct aborter a;
  if (me == victim) {
    for (int k = 0; k < 20; k++) OK(me, ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, comm, NULL));
    atomic_store(&W->doomed[me], 1);
    atomic_store(&W->note[0], 1);
    raise(SIGSTOP);
    conf_fail(me, "went on after SIGSTOP");
    return;
  }
  aborter_start(&a, me, &comm, 0, 1.5);
  ncclResult_t rc = ncclSuccess;
  for (int k = 0; rc == ncclSuccess && k < 1000; k++) {
    conf_at(me, "all-reduce %d", k);
    rc = ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, comm, NULL);
  }
  if (rc == ncclSuccess) conf_fail(me, "a thousand all-reduces went past a stopped rank");
  aborter_join(&a);
  t->comm[0] = NULL;
  if (atomic_fetch_add(&W->note[1], 1) == t->nranks - 2) kill(W->pid[victim], SIGKILL);
}

/* Rank 0 waits in a collective that nobody joins. */
static void waiting(struct team *t, int receive) {
  int me = t->first;
  static ncclComm_t comm[CONF_MAX_RANKS];
  int32_t x = 1, y = 2;
  comm[me] = t->comm[0];
  if (me == 0) {
    struct aborter a;
    atomic_store(&W->note[0], 1);
    aborter_start(&a, me, &comm[0], 0, 0.5);
    conf_at(me, "waiting in an operation that nobody joins");
    ncclResult_t rc = receive ? ncclRecv(&y, 1, ncclInt32, 1, comm[0], NULL) : ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, comm[0], NULL);
    if (rc == ncclSuccess) conf_fail(me, "the operation succeeded without a partner");
    aborter_join(&a);
    TRUE(me, y == 2);
    atomic_store(&W->note[1], 1);
  } else {
    conf_await(1, 1, 20);
    bounded_abort(me, t->comm[0]);
  }
  t->comm[0] = NULL;
}

void fault_abort_waiting(struct team *t) { waiting(t, 0); }
void fault_abort_recv(struct team *t) { waiting(t, 1); }
