/* selfsend.c: C13 messages to oneself, C14 sends before receives without a group. */
#include "cases.h"

void c13(struct team *t) {
  int me = t->first;
  ncclComm_t c = t->comm[0];
  size_t cap = (size_t)8 << 20;
  unsigned char *a = malloc(cap), *b = malloc(cap);
  for (size_t j = 0; j < cap; j++) a[j] = (unsigned char)(j * 7 + (j >> 12) + (size_t)me);
  for (size_t n = 1; n <= cap; n = n * 8) {
    memset(b, 0, cap);
    OK(me, ncclGroupStart());
    OK(me, ncclSend(a, n, ncclUint8, me, c, NULL));
    OK(me, ncclRecv(b, n, ncclUint8, me, c, NULL));
    OK(me, ncclGroupEnd());
    TRUE(me, memcmp(a, b, n) == 0 && (n == cap || b[n] == 0));
  }
  /* Two pairs of different length, receives first; order within the pair of ranks holds. */
  memset(b, 0, 5000);
  OK(me, ncclGroupStart());
  OK(me, ncclRecv(b, 100, ncclUint8, me, c, NULL));
  OK(me, ncclRecv(b + 200, 3000, ncclUint8, me, c, NULL));
  OK(me, ncclSend(a + 1, 100, ncclUint8, me, c, NULL));
  OK(me, ncclSend(a + 777, 3000, ncclUint8, me, c, NULL));
  OK(me, ncclGroupEnd());
  TRUE(me, memcmp(b, a + 1, 100) == 0 && b[100] == 0 && memcmp(b + 200, a + 777, 3000) == 0 && b[3200] == 0);
  /* The same address: dropped, unchanged. */
  OK(me, ncclGroupStart());
  OK(me, ncclSend(a, 64, ncclUint8, me, c, NULL));
  OK(me, ncclRecv(a, 64, ncclUint8, me, c, NULL));
  OK(me, ncclGroupEnd());
  for (size_t j = 0; j < 64; j++)
    if (!TRUE(me, a[j] == (unsigned char)(j * 7 + (size_t)me))) break;
  free(a);
  free(b);
}

/* A send to oneself that nobody receives: invalid usage, alone and in a group, and the communicator goes on. */
void c13_lone(struct team *t) {
  int me = t->first;
  char x[4] = "abc";
  RC(me, ncclInvalidUsage, ncclSend(x, 4, ncclInt8, me, t->comm[0], NULL));
  OK(me, ncclGroupStart());
  ncclResult_t call = ncclSend(x, 4, ncclInt8, me, t->comm[0], NULL);
  conf_rc_any(me, call, "ncclSend to oneself in a group", 2, ncclSuccess, ncclInvalidUsage);
  RC(me, ncclInvalidUsage, ncclGroupEnd());
  conf_barrier(t);
  coll_alive(t, t->comm);
}

struct watch {
  int rank;
  ncclComm_t comm;
  atomic_int done;
  int aborted;
};

static void *watch_main(void *arg) {
  struct watch *w = arg;
  double end = conf_now() + 3;
  while (!atomic_load(&w->done) && conf_now() < end) conf_sleep(0.01);
  if (atomic_load(&w->done)) return NULL;
  w->aborted = 1;
  double start = conf_now();
  ncclResult_t rc = ncclCommAbort(w->comm);
  conf_rc(w->rank, ncclSuccess, rc, "ncclCommAbort of a cycle of sends", __FILE__, __LINE__);
  if (conf_now() - start > 5) conf_fail(w->rank, "abort of a cycle of sends took %.1f s", conf_now() - start);
  return NULL;
}

/* C14: all ranks send in a ring and only then receive. Abort from another thread ends it in bounded time; the caller
 * looks for the circle in the log. */
void c14(struct team *t) {
  int me = t->first, n = t->nranks;
  size_t bytes = (size_t)32 << 20;
  unsigned char *a = calloc(1, bytes), *b = calloc(1, bytes);
  memset(a, me + 1, bytes);
  struct watch w = {.rank = me, .comm = t->comm[0]};
  pthread_t th;
  if (!TRUE(me, pthread_create(&th, NULL, watch_main, &w) == 0)) return;
  conf_at(me, "a send of 32 MiB before its receive");
  ncclResult_t rc = ncclSend(a, bytes, ncclInt8, (me + 1) % n, w.comm, NULL);
  if (rc == ncclSuccess) rc = ncclRecv(b, bytes, ncclInt8, (me + n - 1) % n, w.comm, NULL);
  atomic_store(&w.done, 1);
  pthread_join(th, NULL);
  if (rc == ncclSuccess)
    TRUE(me, b[0] == (me + n - 1) % n + 1 && b[bytes - 1] == b[0]);
  else if (!w.aborted)
    TRUE(me, ncclGetLastError(NULL)[0] != 0);
  if (me == 0)
    conf_note("a ring of sends before receives: %s", rc == ncclSuccess ? "completes" : w.aborted ? "waits until abort" : "is reported");
  if (w.aborted)
    t->comm[0] = NULL;
  else if (rc != ncclSuccess) {
    OK(me, ncclCommAbort(t->comm[0]));
    t->comm[0] = NULL;
  }
  free(a);
  free(b);
}
