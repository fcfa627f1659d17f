/* interrupt.c: gcclSetInterrupt: who is asked, what an answer ends, and what the peers hear. */
#include "suites.h"

enum { ASKED = 1, ENDED = 2 }; /* words of W->note */

/* Lets the wait go on, and tells the peers that it has been asked. */
static int go_on(void *arg) {
  atomic_fetch_add((atomic_llong *)arg, 1);
  return 0;
}

static int end_it(void *arg) {
  (void)arg;
  return 1;
}

/* A function that answers 0 changes nothing: the peers come when it has been asked. */
static void patient(struct team *t, ncclComm_t comm) {
  int64_t v = t->first, want = (int64_t)t->nranks * (t->nranks - 1) / 2;
  if (t->first == 0) {
    OK(0, gcclSetInterrupt(go_on, &W->note[ASKED]));
    OK(0, ncclAllReduce(&v, &v, 1, ncclInt64, ncclSum, comm, NULL));
    OK(0, gcclSetInterrupt(NULL, NULL));
  } else {
    TRUE(t->first, conf_await(ASKED, 1, 20));
    OK(t->first, ncclAllReduce(&v, &v, 1, ncclInt64, ncclSum, comm, NULL));
  }
  TRUE(t->first, v == want);
}

/* An answer of 1 ends the wait of rank 0; the others learn why. */
static void ended(struct team *t, ncclComm_t comm) {
  int64_t v = 0;
  if (t->first == 0) {
    OK(0, gcclSetInterrupt(end_it, NULL));
    RC(0, ncclSystemError, ncclAllReduce(&v, &v, 1, ncclInt64, ncclSum, comm, NULL));
    TRUE(0, strstr(ncclGetLastError(comm), "gcclSetInterrupt") != NULL);
    OK(0, gcclSetInterrupt(NULL, NULL));
    atomic_store(&W->note[ENDED], 1);
  } else {
    TRUE(t->first, conf_await(ENDED, 1, 20));
    /* What rank 0 had published may be all that the first call needs; the second waits for it. */
    if (ncclAllReduce(&v, &v, 1, ncclInt64, ncclSum, comm, NULL) == ncclSuccess)
      RC(t->first, ncclRemoteError, ncclAllReduce(&v, &v, 1, ncclInt64, ncclSum, comm, NULL));
    TRUE(t->first, strstr(ncclGetLastError(comm), "gcclSetInterrupt") != NULL);
  }
  OK(t->first, ncclCommAbort(comm));
}

/* Creation and a group that waits for ranks which never come, and a stream whose work goes on. */
static void alone(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL, both[2] = {NULL, NULL};
  OK(0, gcclSetInterrupt(end_it, NULL));
  OK(0, ncclGetUniqueId(&id));
  RC(0, ncclSystemError, ncclCommInitRank(&comm, 2, id, 0));
  OK(0, ncclCommAbort(comm));
  OK(0, ncclGetUniqueId(&id));
  OK(0, ncclGroupStart());
  for (int r = 0; r < 2; r++) OK(0, ncclCommInitRank(&both[r], 3, id, r));
  RC(0, ncclSystemError, ncclGroupEnd());
  for (int r = 0; r < 2; r++) OK(0, ncclCommAbort(both[r]));

  cudaStream_t s;
  ncclComm_t one;
  OK(0, ncclCommInitAll(&one, 1, NULL));
  OK(0, gcclStreamCreate(&s));
  ncclWaitSignalDesc_t self = {.opCnt = 1, .peer = 0};
  OK(0, ncclWaitSignal(1, &self, one, s));
  RC(0, ncclInProgress, gcclStreamSynchronize(s));
  OK(0, gcclSetInterrupt(NULL, NULL));
  OK(0, ncclCommAbort(one)); /* ends the work */
  OK(0, gcclStreamSynchronize(s));
  OK(0, gcclStreamDestroy(s));
}

void suite_interrupt(struct team *t) {
  ncclComm_t comm;
  if (t->nranks == 1) {
    alone();
    return;
  }
  if (!team_init(t, &comm, NULL)) return;
  patient(t, comm);
  ended(t, comm);
}
