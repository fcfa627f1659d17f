/* ending.c: finalize, destroy and abort in any order, from other threads, with children alive and work queued. */
#include "suites.h"

static int finalized(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return 0;
  coll_alive(t, comm);
  EACH(t, "ncclCommFinalize", ncclCommFinalize(comm[i]));
  for (int i = 0; i < t->nlocal; i++) RC(t->first + i, ncclInvalidArgument, ncclCommFinalize(comm[i]));
  for (int i = t->nlocal - 1; i >= 0; i--) OK(t->first + i, ncclCommDestroy(comm[i])); /* local after finalize */
  for (int i = 0; i < t->nlocal; i++) {
    int n;
    RC(t->first + i, ncclInvalidArgument, ncclCommDestroy(comm[i]));
    RC(t->first + i, ncclInvalidArgument, ncclCommAbort(comm[i]));
    RC(t->first + i, ncclInvalidArgument, ncclCommCount(comm[i], &n));
  }
  return 1;
}

static void aborted(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return;
  coll_alive(t, comm);
  for (int i = 0; i < t->nlocal; i++) {
    double start = conf_now();
    OK(t->first + i, ncclCommAbort(comm[i])); /* alone: waits for nobody */
    TRUE(t->first + i, conf_now() - start < 5);
  }
}

static void family(struct team *t, int parent_first) {
  ncclComm_t parent[CONF_MAX_RANKS], child[CONF_MAX_RANKS] = {0};
  if (!team_init(t, parent, NULL)) return;
  EACH(t, "ncclCommSplit", ncclCommSplit(parent[i], 0, r, &child[i], NULL));
  team_destroy(t, parent_first ? parent : child);
  coll_alive(t, parent_first ? child : parent);
  team_destroy(t, parent_first ? child : parent);
}

/* Destroy without finalize waits for enqueued work; its result is there afterwards. */
static void with_work(struct team *t) {
  enum { N = 50021 };
  ncclComm_t comm[CONF_MAX_RANKS];
  cudaStream_t s[CONF_MAX_RANKS];
  struct buf buf[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return;
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, N * sizeof(int32_t))) return;
    OK(t->first + i, mem_stream_create(&s[i]));
    for (int j = 0; j < N; j++) ((int32_t *)buf[i].copy)[j] = 3;
    buf_put(&buf[i], 0, buf[i].bytes);
  }
  for (int k = 0; k < 4; k++) EACH(t, "ncclAllReduce", ncclAllReduce(buf[i].at, buf[i].at, N, ncclInt32, ncclMax, comm[i], s[i]));
  team_destroy(t, comm);
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (mem_cuda())
      OK(t->first + i, mem_stream_sync(s[i])); /* in host mode destroying has waited for the work, though not for its stream */
    buf_get(&buf[i], 0, buf[i].bytes);
    int32_t *v = (int32_t *)buf[i].copy;
    TRUE(t->first + i, v[0] == 3 && v[N - 1] == 3);
    OK(t->first + i, mem_stream_sync(s[i]));
    OK(t->first + i, mem_stream_destroy(s[i]));
    buf_free(&buf[i], t->first + i);
  }
}

static void *destroy_elsewhere(void *comm) { return (void *)(intptr_t)ncclCommDestroy((ncclComm_t)comm); }

/* Two communicators, destroyed in different order on odd and even ranks, by other threads. */
static void crossed(struct team *t) {
  ncclComm_t c[2][CONF_MAX_RANKS];
  if (t->nlocal > 1 || !team_init(t, c[0], NULL) || !team_init(t, c[1], NULL)) return;
  pthread_t th[2];
  void *rc[2];
  for (int k = 0; k < 2; k++) {
    int which = t->first % 2 ? 1 - k : k;
    if (!TRUE(t->first, pthread_create(&th[k], NULL, destroy_elsewhere, c[which][0]) == 0)) return;
    if (t->first % 3 == 0) conf_sleep(0.002);
  }
  for (int k = 0; k < 2; k++) {
    pthread_join(th[k], &rc[k]);
    conf_rc(t->first, ncclSuccess, (ncclResult_t)(intptr_t)rc[k], "ncclCommDestroy in another thread", __FILE__, __LINE__);
  }
}

void suite_ending(struct team *t) {
  if (!finalized(t)) return;
  aborted(t);
  conf_barrier(t);
  family(t, 0);
  family(t, 1);
  with_work(t);
  crossed(t);
  OK(t->first, ncclCommDestroy(NULL));
  OK(t->first, ncclCommAbort(NULL));
  OK(t->first, ncclCommFinalize(NULL));
  OK(t->first, ncclCommRevoke(NULL, 0));
}
