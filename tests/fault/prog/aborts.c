/* aborts.c: aborts that meet operations at every point of their life. */
#include "faults.h"

/* One rank waits for a signal that only it could send. */
void fault_abort_alone(struct team *t) {
  static ncclComm_t comm;
  struct aborter a;
  ncclWaitSignalDesc_t d = {.opCnt = 1, .peer = 0};
  comm = t->comm[0];
  atomic_store(&W->note[0], 1);
  aborter_start(&a, t->first, &comm, 0, 0.3);
  if (ncclWaitSignal(1, &d, comm, NULL) == ncclSuccess) conf_fail(t->first, "a signal came from nowhere");
  aborter_join(&a);
  t->comm[0] = NULL;
}

struct late {
  int rank;
  double delay;
  ncclComm_t comm;
};

static void *abort_late(void *arg) {
  struct late *l = arg;
  conf_sleep(l->delay);
  OK(l->rank, ncclCommAbort(l->comm));
  return NULL;
}

/* A row of communicators, each aborted from another thread while calls come one after another: alone, in groups and on a
 * stream. Calls see an error or a destroyed communicator; nothing of it is touched after it is gone. */
void fault_abort_busy(struct team *t) {
  enum { ROUNDS = 30, N = 3000 };
  int me = t->first;
  static int32_t buf[CONF_MAX_RANKS][2][N];
  cudaStream_t s;
  if (!OK(me, gcclStreamCreate(&s))) return;
  for (int k = 0; k < ROUNDS; k++) {
    ncclComm_t comm[CONF_MAX_RANKS];
    if (!team_init(t, comm, NULL)) break;
    conf_at(me, "aborting communicator %d", k);
    struct late l = {me, 0.0001 * ((k * 7 + me * 3) % 40), comm[0]};
    pthread_t th;
    if (pthread_create(&th, NULL, abort_late, &l)) conf_fail(me, "pthread_create failed");
    ncclResult_t rc = ncclSuccess;
    int next = (me + 1) % t->nranks, prev = (me + t->nranks - 1) % t->nranks;
    for (int i = 0; rc == ncclSuccess && i < 100000; i++) {
      switch (k % 4) {
      case 0: rc = ncclAllReduce(buf[me][0], buf[me][1], 2, ncclInt32, ncclSum, l.comm, NULL); break;
      case 1: rc = ncclAllReduce(buf[me][0], buf[me][1], N, ncclInt32, ncclSum, l.comm, NULL); break;
      case 2:
        OK(me, ncclGroupStart());
        rc = ncclSend(buf[me][0], i % N, ncclInt32, next, l.comm, NULL);
        if (rc == ncclSuccess) rc = ncclRecv(buf[me][1], i % N, ncclInt32, prev, l.comm, NULL);
        ncclResult_t ended = ncclGroupEnd();
        if (rc == ncclSuccess) rc = ended;
        break;
      default:
        rc = ncclAllReduce(buf[me][0], buf[me][1], N, ncclInt32, ncclSum, l.comm, s);
        if (i % 8 == 0) OK(me, gcclStreamSynchronize(s));
      }
    }
    if (rc == ncclSuccess) conf_fail(me, "no call saw the abort of communicator %d", k);
    pthread_join(th, NULL);
    OK(me, gcclStreamSynchronize(s));
    conf_barrier(t);
  }
  OK(me, gcclStreamDestroy(s));
}

/* A communicator whose launch is queued behind another's that never ends is aborted first. */
void fault_abort_queued(struct team *t) {
  int me = t->first;
  static int32_t buf[CONF_MAX_RANKS][3];
  ncclComm_t stuck = t->comm[0], queued;
  cudaStream_t s[2];
  if (!OK(me, ncclCommSplit(stuck, 0, me, &queued, NULL))) return;
  for (int k = 0; k < 2; k++)
    if (!OK(me, gcclStreamCreate(&s[k]))) return;
  if (me == 0) { /* nobody joins this one */
    OK(me, ncclAllReduce(&buf[me][0], &buf[me][0], 1, ncclInt32, ncclSum, stuck, s[1]));
    OK(me, ncclGroupStart());
    OK(me, ncclAllReduce(&buf[me][1], &buf[me][1], 1, ncclInt32, ncclSum, queued, s[0]));
    OK(me, ncclAllReduce(&buf[me][2], &buf[me][2], 1, ncclInt32, ncclSum, queued, s[1]));
    OK(me, ncclGroupEnd());
    bounded_abort(me, queued);
    RC(me, ncclInvalidArgument, ncclAllReduce(&buf[me][1], &buf[me][1], 1, ncclInt32, ncclSum, queued, NULL));
    /* Behind the stuck launch on its very stream not even the turn comes: the communicator stays as it is, and nothing crashes. */
    bounded_abort(me, stuck);
    for (int k = 0; k < 2; k++) OK(me, gcclStreamSynchronize(s[k]));
    conf_barrier(t);
  } else {
    conf_barrier(t);
    bounded_abort(me, queued);
    bounded_abort(me, stuck);
  }
  for (int k = 0; k < 2; k++) OK(me, gcclStreamDestroy(s[k]));
  t->comm[0] = NULL;
}
