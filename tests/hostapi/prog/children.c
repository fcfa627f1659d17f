/* children.c: split, shrink, grow and revoke: who is in, in which order, and that parents and children both work. */
#include "suites.h"

static void check_child(struct team *t, ncclComm_t *child, const int *want_size, const int *want_rank) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, n = -1, rank = -1;
    if (!TRUE(r, (child[i] != NULL) == (want_size[i] > 0)) || !child[i]) continue;
    OK(r, ncclCommCount(child[i], &n));
    OK(r, ncclCommUserRank(child[i], &rank));
    if (n != want_size[i] || rank != want_rank[i])
      conf_fail(r, "child: want rank %d of %d, got rank %d of %d", want_rank[i], want_size[i], rank, n);
  }
}

static void destroy_some(struct team *t, ncclComm_t *comm) {
  EACH(t, "ncclCommDestroy of children", ncclCommDestroy(comm[i])); /* NULL succeeds */
}

static int split_with(struct team *t, ncclComm_t *parent, ncclComm_t *child, const int *color, const int *key) {
  for (int i = 0; i < t->nlocal; i++) child[i] = (ncclComm_t)child; /* must become NULL or the child */
  team_start(t);
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++)
    ok &= OK(t->first + i, ncclCommSplit(parent[i], color[t->first + i], key[t->first + i], &child[i], NULL));
  ok &= team_end(t, "ncclCommSplit");
  int size[CONF_MAX_RANKS], rank[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    int me = t->first + i;
    size[i] = rank[i] = 0;
    if (color[me] == NCCL_SPLIT_NOCOLOR) continue;
    for (int p = 0; p < t->nranks; p++) {
      if (color[p] != color[me]) continue;
      size[i]++;
      rank[i] += key[p] < key[me] || (key[p] == key[me] && p < me);
    }
  }
  if (ok) check_child(t, child, size, rank);
  return ok;
}

static void splits(struct team *t) {
  int color[CONF_MAX_RANKS], key[CONF_MAX_RANKS];
  ncclComm_t child[CONF_MAX_RANKS], grand[CONF_MAX_RANKS];
  for (int variant = 0; variant < 4; variant++) {
    for (int r = 0; r < t->nranks; r++) {
      static const int cycle[3] = {0, 1, NCCL_SPLIT_NOCOLOR};
      color[r] = variant == 0 ? 0 : variant == 1 ? r % 2 : variant == 2 ? cycle[r % 3] : -5;
      key[r] = variant == 0 ? -r : variant == 1 ? 7 : variant == 2 ? (r * 5) % 3 : r;
    }
    if (!split_with(t, t->comm, child, color, key)) return;
    coll_alive(t, child);
    coll_alive(t, t->comm);
    if (variant == 0) { /* a split of a split; its rank numbers are reversed, so the keys are too */
      for (int i = 0; i < t->nlocal; i++) grand[i] = NULL;
      EACH(t, "ncclCommSplit of a child", ncclCommSplit(child[i], r % 2, r, &grand[i], NULL));
      coll_alive(t, grand);
      destroy_some(t, child); /* the child goes before its own child */
      coll_alive(t, grand);
      destroy_some(t, grand);
    } else {
      destroy_some(t, child);
    }
  }
}

static void shrinks(struct team *t, ncclComm_t *parent) {
  ncclComm_t child[CONF_MAX_RANKS] = {0};
  int list[3] = {0}, size[CONF_MAX_RANKS], rank[CONF_MAX_RANKS];
  int r0 = t->first;
  RC(r0, ncclInvalidArgument, ncclCommShrink(parent[0], NULL, 1, &child[0], NULL, NCCL_SHRINK_DEFAULT));
  RC(r0, ncclInvalidArgument, ncclCommShrink(parent[0], list, 0, &child[0], NULL, NCCL_SHRINK_DEFAULT));
  list[0] = r0;
  RC(r0, ncclInvalidArgument, ncclCommShrink(parent[0], list, 1, &child[0], NULL, NCCL_SHRINK_DEFAULT));
  list[0] = (r0 + 1) % t->nranks;
  if (t->nranks > 1) RC(r0, ncclInvalidArgument, ncclCommShrink(parent[0], list, 1, &child[0], NULL, 64));
  if (t->nranks < 3) return;
  conf_barrier(t);
  for (int flags = NCCL_SHRINK_DEFAULT; flags <= NCCL_SHRINK_ABORT; flags++) {
    int gone = t->nranks - 2; /* not the last, so that a gap closes */
    for (int i = 0; i < t->nlocal; i++) child[i] = NULL;
    if (t->nlocal > 1) OK(r0, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++) {
      int me = t->first + i;
      size[i] = me == gone ? 0 : t->nranks - 1;
      rank[i] = me < gone ? me : me - 1;
      list[0] = gone;
      if (me != gone) OK(me, ncclCommShrink(parent[i], list, 1, &child[i], NULL, flags));
    }
    if (t->nlocal > 1) OK(r0, ncclGroupEnd());
    check_child(t, child, size, rank);
    coll_alive(t, child);
    destroy_some(t, child);
    conf_barrier(t);
    coll_alive(t, parent); /* the excluded rank was only left out */
  }
}

/* The first half of the ranks grows by the second half. */
static void grows(struct team *t) {
  if (t->nranks < 2) return;
  int n = t->nranks, half = n / 2, color[CONF_MAX_RANKS], key[CONF_MAX_RANKS];
  ncclComm_t part[CONF_MAX_RANKS], big[CONF_MAX_RANKS] = {0};
  for (int r = 0; r < n; r++) {
    color[r] = r < half ? 0 : NCCL_SPLIT_NOCOLOR;
    key[r] = r;
  }
  if (!split_with(t, t->comm, part, color, key)) return;
  int slot = t->next_id++;
  if (t->first == 0) {
    int ok = OK(0, ncclCommGetUniqueId(part[0], &W->id[slot]));
    atomic_store(&W->id_ready[slot], ok ? 1 : 2);
  }
  while (atomic_load(&W->id_ready[slot]) == 0) conf_sleep(0.0005);
  if (atomic_load(&W->id_ready[slot]) != 1) return;
  ncclUniqueId id = W->id[slot];
  if (t->first == 0) {
    ncclComm_t no = NULL;
    RC(0, ncclInvalidArgument, ncclCommGrow(part[0], half, &id, -1, &no, NULL));
    RC(0, ncclInvalidArgument, ncclCommGrow(part[0], n, &id, 0, &no, NULL));
    RC(0, ncclInvalidArgument, ncclCommGrow(part[0], n, &id, -1, NULL, NULL));
    RC(0, ncclInvalidArgument, ncclCommGrow(NULL, n, &id, n, &no, NULL));
    RC(0, ncclInvalidArgument, ncclCommGrow(NULL, n, NULL, n - 1, &no, NULL));
  }
  int size[CONF_MAX_RANKS], rank[CONF_MAX_RANKS];
  EACH(t, "ncclCommGrow", ncclCommGrow(part[i], n, part[i] && r ? NULL : &id, part[i] ? -1 : r, &big[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    size[i] = n;
    rank[i] = t->first + i;
  }
  check_child(t, big, size, rank);
  coll_alive(t, big);
  coll_alive(t, part);
  destroy_some(t, part);
  coll_alive(t, big);
  destroy_some(t, big);
}

static void revokes(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS], child[CONF_MAX_RANKS] = {0};
  if (!team_init(t, comm, NULL)) return;
  RC(t->first, ncclInvalidArgument, ncclCommRevoke(comm[0], 1));
  conf_barrier(t);
  coll_alive(t, comm);
  conf_barrier(t); /* nobody revokes while another is in the collective */
  EACH(t, "ncclCommRevoke", ncclCommRevoke(comm[i], NCCL_REVOKE_DEFAULT));
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, n = 0;
    ncclResult_t state = ncclInternalError;
    struct buf b;
    if (!buf_new(&b, r, 2 * sizeof(int32_t))) return;
    int32_t *v = (int32_t *)b.copy;
    v[0] = 1;
    v[1] = 2;
    buf_put(&b, 0, b.bytes);
    RC(r, ncclInvalidUsage, ncclAllReduce(b.at, b.at + sizeof(int32_t), 1, ncclInt32, ncclSum, comm[i], mem_null));
    buf_get(&b, 0, b.bytes);
    TRUE(r, v[1] == 2);
    RC(r, ncclInvalidUsage, ncclSend(b.at, 1, ncclInt32, 0, comm[i], mem_null));
    buf_free(&b, r);
    RC(r, ncclInvalidArgument, ncclCommRevoke(comm[i], NCCL_REVOKE_DEFAULT));
    RC(r, ncclInvalidArgument, ncclCommFinalize(comm[i]));
    OK(r, ncclCommCount(comm[i], &n));
    OK(r, ncclCommGetAsyncError(comm[i], &state));
    TRUE(r, n == t->nranks && state == ncclSuccess);
  }
  conf_barrier(t);
  EACH(t, "ncclCommSplit of a revoked parent", ncclCommSplit(comm[i], 0, r, &child[i], NULL));
  coll_alive(t, child);
  destroy_some(t, child);
  destroy_some(t, comm);
}

void suite_children(struct team *t) {
  splits(t);
  ncclComm_t own[CONF_MAX_RANKS];
  if (team_init(t, own, NULL)) {
    shrinks(t, own);
    destroy_some(t, own);
  }
  grows(t);
  revokes(t);
  coll_alive(t, t->comm);
}
