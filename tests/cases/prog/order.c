/* order.c: C37 groups, C38 issue order of several communicators and threads. */
#include "cases.h"

/* Five thousand operations in one group, of two communicators, three brackets deep. */
void c37_many(struct team *t) {
  enum { OPS = 5000 };
  ncclComm_t other[CONF_MAX_RANKS];
  if (!team_init(t, other, NULL)) return;
  int32_t *buf = malloc(sizeof(int32_t) * OPS * (size_t)t->nlocal);
  for (int d = 0; d < 3; d++) OK(t->first, ncclGroupStart());
  for (int k = 0; k < OPS; k++)
    for (int i = 0; i < t->nlocal; i++) {
      int32_t *x = &buf[(size_t)i * OPS + (size_t)k];
      *x = k;
      conf_at(t->first + i, "operation %d of a group", k);
      if (ncclAllReduce(x, x, 1, ncclInt32, ncclSum, k % 2 ? other[i] : t->comm[i], NULL) != ncclSuccess)
        conf_fail(t->first + i, "operation %d of a group: %s", k, ncclGetLastError(NULL));
    }
  for (int d = 0; d < 3; d++) OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < OPS; k++) {
      int32_t got = buf[(size_t)i * OPS + (size_t)k];
      if (got == k * t->nranks) continue;
      conf_fail(t->first + i, "operation %d of a group of %d: want %d, got %d", k, OPS, k * t->nranks, got);
      break;
    }
  free(buf);
  team_destroy(t, other);
}

static void *end_elsewhere(void *arg) {
  struct team *t = arg;
  RC(t->first, ncclInvalidUsage, ncclGroupEnd()); /* the group belongs to the other thread */
  coll_alive(t, t->comm);                         /* and does not hold up this one */
  return NULL;
}

void c37_threads(struct team *t) {
  int r = t->first;
  RC(r, ncclInvalidUsage, ncclGroupEnd());
  OK(r, ncclGroupStart());
  pthread_t th;
  if (TRUE(r, pthread_create(&th, NULL, end_elsewhere, t) == 0)) pthread_join(th, NULL);
  OK(r, ncclGroupEnd());
  RC(r, ncclInvalidUsage, ncclGroupEnd());
  coll_alive(t, t->comm);
}

/* Init and a collective on the new communicator in one group: it works or the call is refused, and the group ends. */
void c37_init(struct team *t) {
  ncclUniqueId id;
  ncclComm_t c[CONF_MAX_RANKS] = {0};
  int32_t x[CONF_MAX_RANKS], y[CONF_MAX_RANKS];
  if (!team_id(t, &id)) return;
  int refused = 0;
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommInitRank(&c[i], t->nranks, id, t->first + i));
  for (int i = 0; i < t->nlocal; i++) {
    x[i] = 3;
    y[i] = 0;
    conf_at(t->first + i, "ncclAllReduce in the group of its init");
    refused |= ncclAllReduce(&x[i], &y[i], 1, ncclInt32, ncclSum, c[i], NULL) != ncclSuccess;
  }
  ncclResult_t rc = ncclGroupEnd();
  if (!refused) {
    conf_rc(t->first, ncclSuccess, rc, "ncclGroupEnd of init and collective", __FILE__, __LINE__);
    for (int i = 0; i < t->nlocal; i++) TRUE(t->first + i, y[i] == 3 * t->nranks);
    team_destroy(t, c);
  } else {
    conf_note("a collective in the group of its init is refused: %s", ncclGetLastError(NULL));
    TRUE(t->first, rc != ncclSuccess && ncclGetLastError(NULL)[0]);
    for (int i = 0; i < t->nlocal; i++) (void)ncclCommAbort(c[i]); /* a fresh handle may be gone already */
  }
  ncclComm_t again[CONF_MAX_RANKS];
  if (team_init(t, again, NULL)) {
    coll_alive(t, again);
    team_destroy(t, again);
  }
}

struct feeder {
  int rank, nranks, steps;
  ncclComm_t comm;
};

static void *feed(void *arg) {
  struct feeder *f = arg;
  for (int k = 0; k < f->steps; k++) {
    int64_t x = f->rank + k, y = 0, want = (int64_t)f->nranks * (f->nranks - 1) / 2 + (int64_t)k * f->nranks;
    if (!OK(f->rank, ncclAllReduce(&x, &y, 1, ncclInt64, ncclSum, f->comm, NULL))) break;
    if (y != want) {
      conf_fail(f->rank, "step %d: want %lld, got %lld", k, (long long)want, (long long)y);
      break;
    }
  }
  return NULL;
}

/* Even ranks issue A then B, odd ranks B then A: on streams of their own, and from threads of their own. */
void c38_crossed(struct team *t) {
  enum { N = 3001, STEPS = 15 };
  int me = t->first;
  ncclComm_t c[2] = {t->comm[0], NULL};
  if (!team_init(t, &c[1], NULL)) return;
  cudaStream_t s[2];
  int32_t *buf = malloc(sizeof(int32_t) * 2 * N);
  for (int k = 0; k < 2; k++) OK(me, gcclStreamCreate(&s[k]));
  for (int step = 0; step < STEPS; step++) {
    for (int j = 0; j < 2 * N; j++) buf[j] = step + j / N;
    for (int k = 0; k < 2; k++) {
      int w = me % 2 ? 1 - k : k;
      OK(me, ncclAllReduce(buf + w * N, buf + w * N, N, ncclInt32, ncclSum, c[w], s[w]));
    }
    for (int k = 0; k < 2; k++) OK(me, gcclStreamSynchronize(s[k]));
    for (int w = 0; w < 2; w++) TRUE(me, buf[w * N] == (step + w) * t->nranks && buf[w * N + N - 1] == buf[w * N]);
  }
  struct feeder f[2] = {{me, t->nranks, 60, c[0]}, {me, t->nranks, 60, c[1]}};
  pthread_t th[2];
  for (int k = 0; k < 2; k++) TRUE(me, pthread_create(&th[k], NULL, feed, &f[me % 2 ? 1 - k : k]) == 0);
  for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
  for (int k = 0; k < 2; k++) OK(me, gcclStreamDestroy(s[k]));
  free(buf);
  OK(me, ncclCommDestroy(c[1]));
}

/* Rows, columns and all, as in two-dimensional parallelism. Four ranks make a grid of two by two. */
void c38_grid(struct team *t) {
  int me = t->first;
  ncclComm_t row = NULL, col = NULL;
  OK(me, ncclCommSplit(t->comm[0], me / 2, me, &row, NULL));
  OK(me, ncclCommSplit(t->comm[0], me % 2, me, &col, NULL));
  if (!row || !col) return;
  for (int k = 0; k < 200; k++) {
    float x[64], y[64];
    for (int j = 0; j < 64; j++) x[j] = (float)(me + k);
    OK(me, ncclAllReduce(x, y, 64, ncclFloat32, ncclSum, row, NULL));
    OK(me, ncclAllReduce(y, x, 64, ncclFloat32, ncclSum, col, NULL));
    OK(me, ncclAllReduce(x, y, 64, ncclFloat32, ncclMax, t->comm[0], NULL));
    if (!TRUE(me, y[0] == (float)(6 + 4 * k) && y[63] == y[0])) break;
  }
  OK(me, ncclCommDestroy(row));
  OK(me, ncclCommDestroy(col));
}

struct shared {
  int rank;
  ncclComm_t comm;
};

static void *share(void *arg) {
  struct shared *s = arg;
  for (int k = 0; k < 40; k++) {
    int64_t x = 1, y = 0;
    ncclResult_t rc = ncclAllReduce(&x, &y, 1, ncclInt64, ncclSum, s->comm, NULL);
    if (rc == ncclInvalidUsage) { /* refused is allowed, but must say so */
      TRUE(s->rank, ncclGetLastError(NULL)[0] != 0);
      k--;
      conf_sleep(0.001);
      continue;
    }
    if (!conf_rc(s->rank, ncclSuccess, rc, "ncclAllReduce from one of two threads", __FILE__, __LINE__)) break;
    TRUE(s->rank, y == W->nranks);
  }
  return NULL;
}

/* One communicator fed by two threads without a lock: equal calls, so any order is right. */
void c38_shared(struct team *t) {
  struct shared s = {t->first, t->comm[0]};
  pthread_t th[2];
  for (int k = 0; k < 2; k++) TRUE(t->first, pthread_create(&th[k], NULL, share, &s) == 0);
  for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
  coll_alive(t, t->comm);
}
