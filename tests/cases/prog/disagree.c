/* disagree.c: ranks whose calls do not fit each other. Nobody waits for ever, and the texts show both sides. */
#include "cases.h"

static void expect(struct team *t, ncclResult_t rc, const char *a, const char *b) {
  int me = t->first;
  TRUE(me, rc == ncclInvalidUsage || rc == ncclRemoteError); /* seen here, or heard from a rank that saw it first */
  says(me, a, "a call that differs between ranks");
  says(me, b, "a call that differs between ranks");
}

static void finish(struct team *t) {
  OK(t->first, ncclCommAbort(t->comm[0]));
  t->comm[0] = NULL;
}

/* Rank 1 passes another count: small and large calls. Every rank sees it. */
void disagree(struct team *t) {
  int me = t->first;
  static int32_t a[100001], b[100001];
  ncclComm_t second;
  if (!team_init(t, &second, NULL)) return;
  conf_at(me, "an all-reduce of 10 or 11");
  expect(t, ncclAllReduce(a, b, me == 1 ? 11 : 10, ncclInt32, ncclSum, t->comm[0], NULL), "10 int32", "11 int32");
  finish(t);
  conf_at(me, "an all-reduce of 100000 or 100001");
  expect(t, ncclAllReduce(a, b, me == 1 ? 100001 : 100000, ncclInt32, ncclSum, second, NULL), "100000 int32", "100001 int32");
  OK(me, ncclCommAbort(second));
}

/* In a small broadcast only the leaf can see that its count is not the root's; the others hear of it. */
void disagree_root(struct team *t) {
  int me = t->first;
  int32_t x[20] = {0};
  ncclResult_t rc = ncclBroadcast(x, x, me == 1 ? 11 : 10, ncclInt32, 0, t->comm[0], NULL);
  if (me == 1) expect(t, rc, "10 int32", "11 int32");
  /* the others go on and wait for rank 1, which takes part no more */
  double start = conf_now();
  for (int i = 0; i < 100000 && rc == ncclSuccess && conf_now() - start < 10; i++)
    rc = ncclAllReduce(x, x, 1, ncclInt32, ncclSum, t->comm[0], NULL);
  if (me != 1) {
    conf_rc(me, ncclRemoteError, rc, "an all-reduce with a rank that has failed", __FILE__, __LINE__);
    says(me, "rank 1", "an all-reduce with a rank that has failed");
  }
  finish(t);
}

/* A message whose sides have other sizes. */
void disagree_message(struct team *t) {
  int me = t->first;
  static int32_t x[4096];
  ncclResult_t rc = me == 0 ? ncclSend(x, 1000, ncclInt32, 1, t->comm[0], NULL) : ncclRecv(x, 1001, ncclInt32, 0, t->comm[0], NULL);
  if (me == 1)
    expect(t, rc, "4000 bytes", "4004 bytes");
  else
    TRUE(me, rc == ncclInvalidUsage || rc == ncclRemoteError);
  finish(t);
}
