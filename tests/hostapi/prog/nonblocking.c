/* nonblocking.c: communicators that never block: init, collectives, groups, finalize and destroy with polling. */
#include "suites.h"

/* A nonblocking call gives success or in-progress; the state then becomes success. */
static int settle(int rank, ncclComm_t comm, ncclResult_t rc, const char *call) {
  if (!conf_rc_any(rank, rc, call, 2, ncclSuccess, ncclInProgress)) return 0;
  conf_at(rank, "polling after %s", call);
  return conf_rc(rank, ncclSuccess, team_wait(comm, 10), call, "poll", 0);
}

static int init(struct team *t, ncclComm_t *comm) {
  ncclUniqueId id;
  if (!team_id(t, &id)) return 0;
  ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
  cfg.blocking = 0;
  double start = conf_now();
  if (t->nlocal > 1) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    ncclResult_t rc = ncclCommInitRankConfig(&comm[i], t->nranks, id, t->first + i, &cfg);
    conf_rc_any(t->first + i, rc, "ncclCommInitRankConfig nonblocking", 2, ncclSuccess, ncclInProgress);
    TRUE(t->first + i, comm[i] != NULL);
  }
  if (t->nlocal > 1) conf_rc_any(t->first, ncclGroupEnd(), "ncclGroupEnd nonblocking", 2, ncclSuccess, ncclInProgress);
  TRUE(t->first, conf_now() - start < 2);
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) ok &= settle(t->first + i, comm[i], ncclSuccess, "ncclCommInitRankConfig");
  return ok;
}

static void collectives(struct team *t, ncclComm_t *comm, int grouped) {
  enum { N = 1001 };
  struct buf buf[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, 2 * N * sizeof(int32_t))) return;
    for (int j = 0; j < N; j++) ((int32_t *)buf[i].copy)[j] = t->first + i + j;
    buf_put(&buf[i], 0, N * sizeof(int32_t));
  }
  int bracket = grouped || t->nlocal > 1;
  if (bracket) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    ncclResult_t rc = ncclAllReduce(buf[i].at, buf[i].at + N * sizeof(int32_t), N, ncclInt32, ncclSum, comm[i], mem_null);
    if (bracket)
      conf_rc_any(t->first + i, rc, "ncclAllReduce nonblocking in a group", 2, ncclSuccess, ncclInProgress);
    else
      settle(t->first + i, comm[i], rc, "ncclAllReduce nonblocking");
  }
  if (bracket) {
    ncclResult_t rc = ncclGroupEnd();
    for (int i = 0; i < t->nlocal; i++) settle(t->first + i, comm[i], rc, "ncclGroupEnd nonblocking");
  }
  int n = t->nranks;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_sync(mem_null));
    buf_get(&buf[i], N * sizeof(int32_t), N * sizeof(int32_t));
    for (int j = 0; j < N; j++) {
      int32_t want = n * (n - 1) / 2 + n * j, got = ((int32_t *)buf[i].copy)[N + j];
      if (want == got) continue;
      conf_fail(t->first + i, "nonblocking ncclAllReduce int32 sum count %d: index %d: want %d, got %d", N, j, want, got);
      break;
    }
    buf_free(&buf[i], t->first + i);
  }
}

static void split(struct team *t, ncclComm_t *comm) {
  ncclComm_t child[CONF_MAX_RANKS] = {0};
  if (t->nlocal > 1) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    ncclResult_t rc = ncclCommSplit(comm[i], 0, -(t->first + i), &child[i], NULL);
    conf_rc_any(t->first + i, rc, "ncclCommSplit nonblocking", 2, ncclSuccess, ncclInProgress);
  }
  if (t->nlocal > 1) conf_rc_any(t->first, ncclGroupEnd(), "ncclGroupEnd of splits", 2, ncclSuccess, ncclInProgress);
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, rank = -1;
    settle(r, comm[i], ncclSuccess, "ncclCommSplit (parent)");
    if (!TRUE(r, child[i] != NULL)) return;
    settle(r, child[i], ncclSuccess, "ncclCommSplit (child)");
    OK(r, ncclCommUserRank(child[i], &rank));
    TRUE(r, rank == t->nranks - 1 - r);
  }
  collectives(t, child, 1);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommAbort(child[i]));
}

/* Finalize, poll, destroy: the way the manual of nonblocking communicators asks for. */
static void end(struct team *t, ncclComm_t *comm) {
  if (t->nlocal > 1) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    conf_rc_any(t->first + i, ncclCommFinalize(comm[i]), "ncclCommFinalize nonblocking", 2, ncclSuccess, ncclInProgress);
  if (t->nlocal > 1) conf_rc_any(t->first, ncclGroupEnd(), "ncclGroupEnd of finalizes", 2, ncclSuccess, ncclInProgress);
  for (int i = 0; i < t->nlocal; i++) settle(t->first + i, comm[i], ncclSuccess, "ncclCommFinalize");
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommDestroy(comm[i]));
}

void suite_nonblocking(struct team *t) {
  ncclComm_t a[CONF_MAX_RANKS] = {0}, b[CONF_MAX_RANKS] = {0};
  if (!init(t, a)) return;
  collectives(t, a, 0);
  collectives(t, a, 1);
  if (!init(t, b)) return;
  collectives(t, b, 1);
  split(t, a);
  collectives(t, a, 0);
  end(t, a);
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommAbort(b[i]));
}
