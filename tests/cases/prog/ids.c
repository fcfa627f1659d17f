/* ids.c: C02 nonblocking init, C03 misuse of unique ids, C04 wrong ranks and sizes. GCCL_INIT_TIMEOUT is 3 s. */
#include <limits.h>

#include "cases.h"

ncclResult_t try_init(struct team *t, const ncclUniqueId *id, int nranks, int rank, ncclComm_t *comm, double *took) {
  double start = conf_now();
  conf_at(t->first, "ncclCommInitRank as %d of %d", rank, nranks);
  *comm = NULL;
  ncclResult_t rc = ncclCommInitRank(comm, nranks, *id, rank);
  *took = conf_now() - start;
  if (*took > 12) conf_fail(t->first, "ncclCommInitRank took %.1f s", *took);
  return rc;
}

int says(int rank, const char *word, const char *where) {
  const char *text = ncclGetLastError(NULL);
  if (strstr(text, word)) return 1;
  return conf_fail(rank, "%s: the text does not say \"%s\": \"%s\"", where, word, text);
}

int64_t sum_of(int rank, ncclComm_t comm, int64_t value) {
  int64_t sum = -1;
  return OK(rank, ncclAllReduce(&value, &sum, 1, ncclInt64, ncclSum, comm, NULL)) ? sum : -1;
}

/* Init returns at once although the other rank is not there, bare and in a group; polling and abort do not block;
 * once the rank came, a group runs at once. */
void c02(struct team *t) {
  int me = t->first, n = t->nranks;
  ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
  cfg.blocking = 0;
  for (int grouped = 0; grouped < 2; grouped++) {
    ncclUniqueId lonely, id;
    ncclComm_t c = NULL;
    ncclResult_t state = ncclSuccess;
    if (!team_id(t, &lonely) || !team_id(t, &id)) return;
    if (me == 0) { /* the others never come to this one */
      double start = conf_now();
      if (grouped) OK(me, ncclGroupStart());
      conf_rc_any(me, ncclCommInitRankConfig(&c, n, lonely, me, &cfg), "ncclCommInitRankConfig", 2, ncclInProgress,
                  grouped ? ncclSuccess : ncclInProgress);
      if (grouped) RC(me, ncclInProgress, ncclGroupEnd());
      if (conf_now() - start > 0.5) conf_fail(me, "nonblocking init took %.3f s", conf_now() - start);
      for (int k = 0; k < 5; k++) {
        OK(me, ncclCommGetAsyncError(c, &state));
        TRUE(me, state == ncclInProgress);
        conf_sleep(0.01);
      }
      int x = 0;
      RC(me, ncclInvalidArgument, ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, c, NULL)); /* not ready */
      RC(me, ncclInvalidArgument, ncclCommDestroy(c));
      start = conf_now();
      OK(me, ncclCommAbort(c));
      if (conf_now() - start > 5) conf_fail(me, "abort of an unfinished init took %.1f s", conf_now() - start);
    } else {
      conf_sleep(0.2);
    }
    c = NULL;
    conf_rc_any(me, ncclCommInitRankConfig(&c, n, id, me, &cfg), "ncclCommInitRankConfig", 2, ncclInProgress, ncclSuccess);
    if (!RC(me, ncclSuccess, team_wait(c, 10))) return;
    int64_t in[8], out[8] = {0};
    for (int p = 0; p < n && p < 8; p++) in[p] = me * 10 + p;
    OK(me, ncclGroupStart());
    for (int p = 0; p < n; p++) {
      conf_rc_any(me, ncclSend(&in[p], 1, ncclInt64, p, c, NULL), "ncclSend", 2, ncclSuccess, ncclInProgress);
      conf_rc_any(me, ncclRecv(&out[p], 1, ncclInt64, p, c, NULL), "ncclRecv", 2, ncclSuccess, ncclInProgress);
    }
    conf_rc_any(me, ncclGroupEnd(), "ncclGroupEnd", 2, ncclSuccess, ncclInProgress);
    RC(me, ncclSuccess, team_wait(c, 10));
    for (int p = 0; p < n; p++) TRUE(me, out[p] == p * 10 + me);
    conf_rc_any(me, ncclCommFinalize(c), "ncclCommFinalize", 2, ncclSuccess, ncclInProgress);
    RC(me, ncclSuccess, team_wait(c, 10));
    OK(me, ncclCommDestroy(c));
  }
}

/* (a) Each rank makes an id of its own: everybody waits at another door. */
void c03_own_id(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c;
  double took;
  if (!OK(me, ncclGetUniqueId(&id))) return;
  ncclResult_t rc = try_init(t, &id, t->nranks, me, &c, &took);
  conf_rc_any(me, rc, "ncclCommInitRank with an id of one's own", 2, ncclTimeout, ncclRemoteError);
  char count[32];
  snprintf(count, sizeof count, "of %d", t->nranks);
  says(me, count, "ncclCommInitRank with an id of one's own");
  if (c) OK(me, ncclCommAbort(c));
  conf_barrier(t);
}

/* (b), (c): the same id for a second communicator, while the first lives or after its end. It works separately or is
 * refused; the data of the two never mix. */
static void same_id(struct team *t, int first_lives) {
  int me = t->first, n = t->nranks;
  ncclUniqueId id;
  ncclComm_t a, b;
  double took;
  if (!team_id(t, &id) || !RC(me, ncclSuccess, try_init(t, &id, n, me, &a, &took))) return;
  if (!first_lives) OK(me, ncclCommDestroy(a));
  conf_barrier(t);
  ncclResult_t rc = try_init(t, &id, n, me, &b, &took);
  if (rc == ncclSuccess) {
    TRUE(me, sum_of(me, b, 1000 + me) == 1000 * n + n * (n - 1) / 2);
  } else {
    TRUE(me, ncclGetLastError(NULL)[0] != 0);
    if (b) OK(me, ncclCommAbort(b));
    conf_note("a second communicator of one id is refused: %s", ncclGetLastError(NULL));
  }
  if (first_lives) {
    TRUE(me, sum_of(me, a, me) == n * (n - 1) / 2);
    OK(me, ncclCommDestroy(a));
  }
  if (rc == ncclSuccess) OK(me, ncclCommDestroy(b));
  conf_barrier(t); /* the root's process serves the id until all have given up */
}
void c03_twice(struct team *t) { same_id(t, 1); }
void c03_again(struct team *t) { same_id(t, 0); }

/* (d) The process that made the id is gone. */
void c03_gone(struct team *t) {
  int me = t->first;
  ncclComm_t c;
  double took;
  if (me == t->nranks - 1) {
    atomic_store(&W->id_ready[0], OK(me, ncclGetUniqueId(&W->id[0])) ? 1 : 2);
    conf_await(0, t->nranks - 1, 5);
    _exit(0);
  }
  while (!atomic_load(&W->id_ready[0])) conf_sleep(0.001);
  atomic_fetch_add(&W->note[0], 1);
  conf_sleep(0.3);
  ncclResult_t rc = try_init(t, &W->id[0], t->nranks, me, &c, &took);
  conf_rc_any(me, rc, "ncclCommInitRank with the id of a process that is gone", 3, ncclTimeout, ncclRemoteError, ncclSystemError);
  says(me, ":", "the address of the id");
  if (c) OK(me, ncclCommAbort(c));
}

/* (e) An id of zeros, the usual result of an ignored error. */
void c03_zeros(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c;
  double took;
  memset(&id, 0, sizeof id);
  RC(me, ncclInvalidArgument, try_init(t, &id, t->nranks, me, &c, &took));
  says(me, "id", "an id of zeros");
  TRUE(me, took < 2);
  if (c) OK(me, ncclCommAbort(c));
  memset(&id, 0x5a, sizeof id); /* random bytes: an error, bounded */
  TRUE(me, try_init(t, &id, t->nranks, me, &c, &took) != ncclSuccess);
  if (c) OK(me, ncclCommAbort(c));
}

void c04_arguments(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c;
  double took;
  if (!team_id(t, &id)) return;
  static const int bad[][2] = {{3, 3}, {3, -1}, {0, 0}, {-1, 0}, {1, 1}, {INT_MAX, INT_MIN}};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    RC(me, ncclInvalidArgument, try_init(t, &id, bad[k][0], bad[k][1], &c, &took));
    TRUE(me, c == NULL && took < 1);
  }
}

/* Two processes are rank 1: all ranks hear of it. */
void c04_duplicate(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c;
  double took;
  if (!team_id(t, &id)) return;
  RC(me, ncclInvalidUsage, try_init(t, &id, t->nranks, me == 2 ? 1 : me, &c, &took));
  says(me, "rank 1", "two processes as rank 1");
  if (c) OK(me, ncclCommAbort(c));
  conf_barrier(t);
}

/* One process says 3 ranks, another 4: both numbers are in the text everywhere. */
void c04_sizes(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c;
  double took;
  if (!team_id(t, &id)) return;
  RC(me, ncclInvalidUsage, try_init(t, &id, me == 2 ? 4 : 3, me, &c, &took));
  says(me, "3", "sizes 3 and 4");
  says(me, "4", "sizes 3 and 4");
  if (c) OK(me, ncclCommAbort(c));
  conf_barrier(t);
}
