/* family.c: C34 split, C35 shrink and grow after losses. */
#include "cases.h"

static void freed(struct team *t, ncclComm_t *c) {
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommDestroy(c[i]));
  team_end(t, "ncclCommDestroy");
}

static int split(struct team *t, ncclComm_t *parent, int color, int key_sign, ncclConfig_t *cfg, ncclComm_t *child) {
  int ok = 1;
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) {
    child[i] = NULL;
    ok &= OK(t->first + i, ncclCommSplit(parent[i], color, key_sign * (t->first + i), &child[i], cfg));
  }
  return ok & team_end(t, "ncclCommSplit");
}

/* Splits with and without shared resources, fewer channels in the child, the child used first; keys negative; a split
 * while the parent has work on a stream; thirty generations. */
void c34(struct team *t) {
  enum { N = 60011 };
  ncclComm_t child[CONF_MAX_RANKS], parent[CONF_MAX_RANKS];
  for (int share = 0; share < 2; share++) {
    ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER, few = NCCL_CONFIG_INITIALIZER;
    cfg.splitShare = share;
    few.maxCTAs = 1;
    if (!team_init(t, parent, &cfg) || !split(t, parent, 3, -1, &few, child)) return;
    coll_alive(t, child);
    coll_alive(t, parent);
    /* In flight: the split must neither wait for ever nor disturb it. */
    cudaStream_t s[CONF_MAX_RANKS];
    int32_t *buf[CONF_MAX_RANKS];
    for (int i = 0; i < t->nlocal; i++) {
      OK(t->first + i, gcclStreamCreate(&s[i]));
      buf[i] = malloc(N * sizeof(int32_t));
      for (int j = 0; j < N; j++) buf[i][j] = 1;
    }
    for (int k = 0; k < 5; k++) {
      team_start(t);
      for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclAllReduce(buf[i], buf[i], N, ncclInt32, ncclMax, parent[i], s[i]));
      team_end(t, "ncclAllReduce");
    }
    ncclComm_t second[CONF_MAX_RANKS];
    if (!split(t, parent, 0, 1, NULL, second)) return;
    coll_alive(t, second);
    for (int i = 0; i < t->nlocal; i++) {
      OK(t->first + i, gcclStreamSynchronize(s[i]));
      TRUE(t->first + i, buf[i][0] == 1 && buf[i][N - 1] == 1);
      OK(t->first + i, gcclStreamDestroy(s[i]));
      free(buf[i]);
    }
    freed(t, parent);
    coll_alive(t, child);
    coll_alive(t, second);
    freed(t, second);
    freed(t, child);
  }
  memcpy(parent, t->comm, sizeof parent);
  for (int k = 0; k < 12; k++) { /* a line of descendants, each parent destroyed once its child is there */
    if (!split(t, parent, 0, k % 2 ? 1 : -1, NULL, child)) return;
    if (k) freed(t, parent);
    memcpy(parent, child, sizeof parent);
  }
  coll_alive(t, parent);
  freed(t, parent);
}

struct splitter {
  int rank;
  ncclComm_t parent;
};

static void *split_alone(void *arg) {
  struct splitter *s = arg;
  for (int k = 0; k < 5; k++) {
    ncclComm_t child = NULL;
    int n = 0;
    if (!OK(s->rank, ncclCommSplit(s->parent, s->rank % 2, k % 2 ? -s->rank : s->rank, &child, NULL))) return NULL;
    OK(s->rank, ncclCommCount(child, &n));
    TRUE(s->rank, sum_of(s->rank, child, 1) == n);
    OK(s->rank, ncclCommDestroy(child));
  }
  return NULL;
}

/* Two threads of each rank split different parents at the same time. */
void c34_parallel(struct team *t) {
  ncclComm_t other[CONF_MAX_RANKS];
  if (!team_init(t, other, NULL)) return;
  struct splitter s[2] = {{t->first, t->comm[0]}, {t->first, other[0]}};
  pthread_t th[2];
  for (int k = 0; k < 2; k++) TRUE(t->first, pthread_create(&th[k], NULL, split_alone, &s[k]) == 0);
  for (int k = 0; k < 2; k++) pthread_join(th[k], NULL);
  coll_alive(t, t->comm);
  freed(t, other);
}

/* Survivors go on in a child without the lost rank, without its help, in bounded time, in the old order. */
static void survive(struct team *t, int lost, int flags) {
  int me = t->first, list[1] = {lost}, n = -1, rank = -1;
  ncclComm_t child = NULL;
  double start = conf_now();
  conf_at(me, "ncclCommShrink without rank %d", lost);
  ncclResult_t rc = ncclCommShrink(t->comm[0], list, 1, &child, NULL, flags);
  if (conf_now() - start > 10) conf_fail(me, "ncclCommShrink took %.1f s", conf_now() - start);
  if (conf_rc(me, ncclSuccess, rc, "ncclCommShrink", __FILE__, __LINE__)) {
    OK(me, ncclCommCount(child, &n));
    OK(me, ncclCommUserRank(child, &rank));
    TRUE(me, n == t->nranks - 1 && rank == me - (me > lost));
    TRUE(me, sum_of(me, child, rank) == (int64_t)n * (n - 1) / 2);
    int all[CONF_MAX_RANKS], k = 0;
    for (int r = 0; r < n; r++)
      if (r != rank) all[k++] = r;
    ncclComm_t one = NULL; /* shrink to one */
    OK(me, ncclCommShrink(child, all, k, &one, NULL, NCCL_SHRINK_DEFAULT));
    TRUE(me, sum_of(me, one, 7) == 7);
    OK(me, ncclCommDestroy(one));
    OK(me, ncclCommDestroy(child));
  }
  OK(me, ncclCommAbort(t->comm[0]));
  t->comm[0] = NULL;
}

/* The lost rank has exited without a word, while nothing ran. */
void c35_exited(struct team *t) {
  int lost = 1;
  coll_alive(t, t->comm);
  conf_barrier(t);
  if (t->first == lost) {
    conf_at(lost, "done");
    _exit(0);
  }
  conf_sleep(0.5);
  survive(t, lost, NCCL_SHRINK_ABORT);
}

/* The survivors are stuck in an all-reduce that the lost rank never joins (it lives, but is elsewhere). */
void c35_stuck(struct team *t) {
  enum { N = 1000 };
  int lost = t->nranks - 2, me = t->first;
  static int32_t buf[N];
  cudaStream_t s;
  if (me == lost) {
    conf_await(0, t->nranks - 1, 25);
    OK(me, ncclCommAbort(t->comm[0]));
    t->comm[0] = NULL;
    return;
  }
  OK(me, gcclStreamCreate(&s));
  OK(me, ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, t->comm[0], s));
  conf_sleep(0.3);
  RC(me, ncclInProgress, gcclStreamQuery(s));
  survive(t, lost, NCCL_SHRINK_ABORT);
  OK(me, gcclStreamDestroy(s));
  atomic_fetch_add(&W->note[0], 1);
}

/* The communicator of the first half grows by the others, twice, with ids from different members. */
void c35_grow(struct team *t) {
  int me = t->first, n = t->nranks, part = n / 2;
  ncclComm_t c = NULL, next;
  if (!OK(me, ncclCommSplit(t->comm[0], me < part ? 0 : NCCL_SPLIT_NOCOLOR, me, &c, NULL))) return;
  for (int size = part + 1; size <= n; size++) {
    int maker = size % part, slot = t->next_id++;
    if (me == maker) atomic_store(&W->id_ready[slot], OK(me, ncclCommGetUniqueId(c, &W->id[slot])) ? 1 : 2);
    while (!atomic_load(&W->id_ready[slot])) conf_sleep(0.001);
    if (atomic_load(&W->id_ready[slot]) == 2) return;
    if (me >= size) continue;
    next = NULL;
    int joins = me == size - 1, all = -1;
    conf_at(me, "growing to %d", size);
    if (!OK(me, ncclCommGrow(c, size, joins || me == maker ? &W->id[slot] : NULL, joins ? me : -1, &next, NULL))) return;
    OK(me, ncclCommCount(next, &all));
    TRUE(me, all == size && sum_of(me, next, me) == (int64_t)size * (size - 1) / 2);
    OK(me, ncclCommDestroy(c));
    c = next;
  }
  conf_barrier(t);
  OK(me, ncclCommDestroy(c));
}
