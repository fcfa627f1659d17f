/* waits.c: an executor waits on the host for the other ranks' calls. What ends that wait other than these calls: an abort or a revoke by
 * another thread, a rank that leaves the communicator; and a wait that is late is reported. */
#include "gpu.h"

enum { N = 1000 };

struct ender {
  pthread_t thread;
  ncclComm_t comm;
  ncclResult_t (*end)(ncclComm_t);
  ncclResult_t rc;
};

static ncclResult_t revoked(ncclComm_t c) { return ncclCommRevoke(c, NCCL_REVOKE_DEFAULT); }

static void *end_soon(void *arg) {
  struct ender *e = arg;
  conf_sleep(0.3);
  e->rc = e->end(e->comm);
  return NULL;
}

/* Rank 0 waits, nobody else calls, and another thread of its process ends it. */
static void ended(struct team *t, ncclResult_t (*end)(ncclComm_t), const char *what) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct sums v;
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, N)) return;
  if (t->first == 0) {
    struct ender e = {.comm = comm[0], .end = end};
    pthread_create(&e.thread, NULL, end_soon, &e);
    conf_at(0, "a call that waits for the others, until %s", what);
    double start = conf_now();
    mem_rank(0);
    ncclResult_t rc = sums_call(&v, 0, comm[0], NULL);
    if (gpu_spins()) cu.StreamSynchronize(NULL); /* there the kernel waits */
    double took = conf_now() - start;
    pthread_join(e.thread, NULL);
    if (rc == ncclSuccess && !gpu_spins()) conf_fail(0, "%s: a call that no other rank makes succeeds", what);
    if (took > 3) conf_fail(0, "%s ended the call after %.1f s", what, took);
    if (e.rc != ncclSuccess) conf_fail(0, "%s: result %d", what, e.rc);
    if (end != ncclCommAbort) OK(0, ncclCommAbort(comm[0]));
  }
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++)
    if (t->first + i > 0) OK(t->first + i, ncclCommAbort(comm[i]));
  sums_free(&v, t);
}

/* A rank destroys the communicator; another one has made a call that it takes no part in. */
static void left(struct team *t, int leaver, int waiter, int message) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct sums v;
  void *s = NULL;
  int me = t->first;
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, N) || !CU(me, cu.StreamCreate(&s, CU_NON_BLOCKING))) return;
  if (me == leaver) {
    conf_sleep(0.3);
    OK(me, ncclCommDestroy(comm[0]));
  }
  if (me == waiter) {
    double start = conf_now();
    conf_at(me, "%s with rank %d, which leaves", message ? "a message" : "an all-reduce", leaver);
    ncclResult_t rc = !message         ? sums_call(&v, 0, comm[0], s)
                      : message == 'r' ? ncclRecv(v.buf[0].at, N, ncclInt32, leaver, comm[0], s)
                                       : ncclSend(v.buf[0].at, N, ncclInt32, leaver, comm[0], s);
    ncclResult_t state = rc;
    while (state == ncclSuccess && conf_now() - start < 8) {
      conf_sleep(0.02);
      OK(me, ncclCommGetAsyncError(comm[0], &state));
    }
    if (state != ncclRemoteError) conf_fail(me, "rank %d has left: result %d, state %d", leaver, rc, state);
    if (conf_now() - start > 5) conf_fail(me, "that rank %d has left was noticed after %.1f s", leaver, conf_now() - start);
    char name[64];
    snprintf(name, sizeof name, "rank %d of %d has left", leaver, t->nranks);
    if (!strstr(ncclGetLastError(comm[0]), name)) conf_fail(me, "the text does not say that: \"%s\"", ncclGetLastError(comm[0]));
    OK(me, ncclCommAbort(comm[0]));
    cu.StreamSynchronize(s); /* it is free */
  }
  conf_barrier(t);
  if (me != leaver && me != waiter) OK(me, ncclCommAbort(comm[0]));
  conf_barrier(t);
  CU(me, cu.StreamDestroy(s));
  sums_free(&v, t);
}

/* A revoked communicator has nothing to wait for: that its executor leaves is no failure, and the others can be shrunk from it. */
static void left_revoked(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS], child = NULL;
  struct sums v;
  void *s = NULL;
  int me = t->first, gone = 0, n = 0;
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, N) || !CU(me, cu.StreamCreate(&s, CU_NON_BLOCKING))) return;
  if (me != 0) { /* these calls return at once: rank 0 would execute them */
    OK(me, sums_call(&v, 0, comm[0], s));
    OK(me, ncclCommRevoke(comm[0], NCCL_REVOKE_DEFAULT));
    cu.StreamSynchronize(s); /* it is free */
  }
  conf_barrier(t);
  if (me == 0) OK(0, ncclCommAbort(comm[0]));
  conf_sleep(2.5); /* the watchdog looks every second */
  if (me != 0) {
    const char *text = ncclGetLastError(comm[0]);
    if (strstr(text, "has left")) conf_fail(me, "a revoked communicator fails because of a rank that leaves: \"%s\"", text);
    OK(me, ncclCommShrink(comm[0], &gone, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
    if (child) {
      OK(me, ncclCommCount(child, &n));
      TRUE(me, n == t->nranks - 1);
      OK(me, ncclCommDestroy(child));
    }
    OK(me, ncclCommAbort(comm[0]));
  }
  conf_barrier(t);
  CU(me, cu.StreamDestroy(s));
  sums_free(&v, t);
}

void suite_waits(struct team *t) {
  int last = t->nranks - 1;
  if (last == 0) {
    conf_note("one rank waits for nobody");
    return;
  }
  ended(t, ncclCommAbort, "ncclCommAbort of another thread");
  ended(t, revoked, "ncclCommRevoke of another thread");
  if (t->nlocal > 1) return; /* one thread is all ranks */
  left(t, last, 0, 0);
  left(t, last, 0, 'r');
  left(t, 0, last, 0);
  left(t, 0, last, 's');
  if (W->launch == LAUNCH_PROCS) left_revoked(t);
}

/* Rank 0 waits long enough for a report; then the others come and all is well. */
void suite_tardy(struct team *t) {
  struct sums v;
  if (!sums_new(&v, t, N)) return;
  sums_put(&v, t, 7);
  conf_barrier(t);
  if (t->first != 0) conf_sleep(gpu_spins() ? 4 : 1.6); /* kernels that wait are looked at once a second */
  EACH(t, "ncclAllReduce", sums_call(&v, i, t->comm[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(NULL));
  }
  sums_check(&v, t, 7, "after a late call");
  sums_free(&v, t);
}
