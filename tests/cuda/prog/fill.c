/* fill.c: kernels of the user that take the whole GPU, before, between and beside collectives; more streams than hardware queues;
 * communicators in different order. Each would hang a library whose kernels wait for one another on the GPU. */
#include "gpu.h"

enum { SMALL = 600 };

static int streams_new(void **s, int n, int rank) {
  int ok = 1;
  mem_rank(rank);
  for (int k = 0; k < n; k++) ok &= CU(rank, cu.StreamCreate(&s[k], CU_NON_BLOCKING));
  return ok;
}

static void streams_end(void **s, int n, int rank) {
  mem_rank(rank);
  for (int k = 0; k < n; k++) {
    CU(rank, cu.StreamSynchronize(s[k]));
    CU(rank, cu.StreamDestroy(s[k]));
  }
}

/* Sums on stream 0, with user kernels around them as asked. */
static void around(struct team *t, int before, int beside, int behind, int cooperative, const char *what) {
  void *s[CONF_MAX_RANKS][2];
  struct sums v;
  if (!sums_new(&v, t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++)
    if (!gpu_load(t->first + i) || !streams_new(s[i], 2, t->first + i)) return;
  for (int round = 0; round < gpu_rounds(1000); round++) {
    conf_at(t->first, "%s, round %d", what, round);
    sums_put(&v, t, round);
    for (int i = 0; i < t->nlocal; i++) {
      int r = t->first + i, us = 20 + round % 5 * 30;
      if (beside) gpu_fill(r, s[i][1], us, cooperative);
      if (before) gpu_fill(r, s[i][0], us, cooperative);
    }
    EACH(t, what, sums_call(&v, i, t->comm[i], s[i][0]));
    for (int i = 0; i < t->nlocal && behind; i++) gpu_fill(t->first + i, s[i][0], 20, cooperative);
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(s[i][0]));
    }
    if (!sums_check(&v, t, round, what)) break;
  }
  for (int i = 0; i < t->nlocal; i++) streams_end(s[i], 2, t->first + i);
  sums_free(&v, t);
}

void suite_fill(struct team *t) {
  around(t, 1, 0, 0, 0, "a kernel that fills the GPU before");
  around(t, 0, 1, 0, 0, "a kernel that fills the GPU beside");
  around(t, 1, 1, 1, 0, "kernels that fill the GPU all around");
  around(t, 1, 1, 1, 1, "cooperative kernels that fill the GPU all around");
}

/* Collective, kernel, collective … queued without a look back. */
void suite_between(struct team *t) {
  enum { DEEP = 20 };
  void *s[CONF_MAX_RANKS][1];
  struct sums v[DEEP];
  for (int k = 0; k < DEEP; k++)
    if (!sums_new(&v[k], t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++)
    if (!gpu_load(t->first + i) || !streams_new(s[i], 1, t->first + i)) return;
  for (int round = 0; round < gpu_rounds(50); round++) {
    for (int k = 0; k < DEEP; k++) sums_put(&v[k], t, round * DEEP + k);
    for (int k = 0; k < DEEP; k++) {
      conf_at(t->first, "collective %d between kernels, round %d", k, round);
      EACH(t, "between kernels", sums_call(&v[k], i, t->comm[i], s[i][0]));
      for (int i = 0; i < t->nlocal; i++) gpu_fill(t->first + i, s[i][0], 30, k % 3 == 0);
    }
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(s[i][0]));
    }
    for (int k = 0; k < DEEP; k++)
      if (!sums_check(&v[k], t, round * DEEP + k, "between kernels")) return;
  }
  for (int i = 0; i < t->nlocal; i++) streams_end(s[i], 1, t->first + i);
  for (int k = 0; k < DEEP; k++) sums_free(&v[k], t);
}

/* Twelve streams, a communicator on each, a kernel behind each: more than the eight queues that streams share. */
void suite_manystreams(struct team *t) {
  enum { MANY = 12 };
  static __thread ncclComm_t comm[MANY][CONF_MAX_RANKS];
  void *s[CONF_MAX_RANKS][MANY];
  struct sums v[MANY];
  for (int k = 0; k < MANY; k++) {
    EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &comm[k][i], NULL));
    if (!sums_new(&v[k], t, SMALL)) return;
  }
  for (int i = 0; i < t->nlocal; i++)
    if (!gpu_load(t->first + i) || !streams_new(s[i], MANY, t->first + i)) return;
  for (int round = 0; round < gpu_rounds(200); round++) {
    for (int k = 0; k < MANY; k++) sums_put(&v[k], t, round + k);
    for (int k = 0; k < MANY; k++) {
      conf_at(t->first, "stream %d of %d, round %d", k, MANY, round);
      EACH(t, "many streams", sums_call(&v[k], i, comm[k][i], s[i][k]));
      for (int i = 0; i < t->nlocal; i++) gpu_fill(t->first + i, s[i][k], 10, 0);
    }
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      for (int k = 0; k < MANY; k++) CU(t->first + i, cu.StreamSynchronize(s[i][k]));
    }
    for (int k = 0; k < MANY; k++)
      if (!sums_check(&v[k], t, round + k, "many streams")) return;
  }
  for (int i = 0; i < t->nlocal; i++) streams_end(s[i], MANY, t->first + i);
  for (int k = 0; k < MANY; k++) {
    team_destroy(t, comm[k]);
    sums_free(&v[k], t);
  }
}

/* Two communicators on two streams; odd ranks issue the second one first. In the second one ranks count backwards, if asked. */
static void crossed(struct team *t, int backwards) {
  ncclComm_t twin[CONF_MAX_RANKS];
  void *s[CONF_MAX_RANKS][2];
  struct sums v[2];
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, backwards ? t->nranks - r : r, &twin[i], NULL));
  for (int k = 0; k < 2; k++)
    if (!sums_new(&v[k], t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++)
    if (!gpu_load(t->first + i) || !streams_new(s[i], 2, t->first + i)) return;
  for (int round = 0; round < gpu_rounds(1000); round++) {
    conf_at(t->first, "communicators in different order, round %d", round);
    for (int k = 0; k < 2; k++) sums_put(&v[k], t, round + k);
    /* Ranks of one thread cannot differ in order but inside a group. */
    if (t->nlocal > 1) OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++)
      for (int k = 0; k < 2; k++) {
        int r = t->first + i, which = (r + k) % 2;
        mem_rank(r);
        OK(r, sums_call(&v[which], i, which ? twin[i] : t->comm[i], s[i][which]));
      }
    if (t->nlocal > 1) OK(t->first, ncclGroupEnd());
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      for (int k = 0; k < 2; k++) CU(t->first + i, cu.StreamSynchronize(s[i][k]));
    }
    if (!sums_check(&v[0], t, round, "first communicator") || !sums_check(&v[1], t, round + 1, "second communicator")) break;
  }
  for (int i = 0; i < t->nlocal; i++) streams_end(s[i], 2, t->first + i);
  for (int k = 0; k < 2; k++) sums_free(&v[k], t);
  team_destroy(t, twin);
}

void suite_crossed(struct team *t) {
  crossed(t, 0);
  crossed(t, 1);
}

/* Rank 0, which executes for all, calls only after the others have returned from their calls. */
void suite_later(struct team *t) {
  void *s[CONF_MAX_RANKS][1];
  struct sums v;
  int late = t->nlocal == 1 && t->first == 0;
  if (!sums_new(&v, t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++)
    if (!streams_new(s[i], 1, t->first + i)) return;
  for (int round = 0; round < 2; round++) {
    sums_put(&v, t, round);
    conf_at(t->first, "a call that waits for the others' calls, round %d", round);
    if (!late) EACH(t, "before rank 0", sums_call(&v, i, t->comm[i], s[i][0]));
    conf_barrier(t);
    if (late) EACH(t, "after the others", sums_call(&v, i, t->comm[i], s[i][0]));
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(s[i][0]));
    }
    if (!sums_check(&v, t, round, "a late executor")) break;
  }
  ncclComm_t comm[CONF_MAX_RANKS];
  if (t->nranks > 1 && t->nlocal == 1) { /* it never calls */
    if (!team_init(t, comm, NULL)) return;
    if (!late) EACH(t, "before an abort", sums_call(&v, i, comm[i], s[i][0]));
    conf_barrier(t);
    OK(t->first, ncclCommAbort(comm[0]));
    conf_at(t->first, "the stream after ncclCommAbort");
    CU(t->first, cu.StreamSynchronize(s[0][0]));
    conf_barrier(t);
  }
  for (int i = 0; i < t->nlocal; i++) streams_end(s[i], 1, t->first + i);
  sums_free(&v, t);
}

/* Memory is allocated, freed and given out again between collectives: a mapping of the old buffer must not be used for the new. */
void suite_idle(struct team *t) {
  for (int round = 0; round < gpu_rounds(200); round++) {
    struct sums v;
    if (!sums_new(&v, t, SMALL + round % 7 * 1000)) return;
    sums_put(&v, t, round);
    EACH(t, "a fresh buffer", sums_call(&v, i, t->comm[i], NULL));
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(NULL));
    }
    int ok = sums_check(&v, t, round, "a fresh buffer");
    if (t->nranks > 1) conf_barrier(t); /* a peer may still read */
    sums_free(&v, t);
    if (!ok) return;
  }
}

/* Each rank's buffer to the next one. */
static int around_the_ring(struct team *t, struct sums *from, struct sums *to, int round) {
  int ok = 1;
  sums_put(from, t, round);
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    mem_rank(r);
    OK(r, ncclSend(from->buf[i].at, (size_t)from->n, ncclInt32, (r + 1) % t->nranks, t->comm[i], NULL));
    OK(r, ncclRecv(to->buf[i].at, (size_t)to->n, ncclInt32, (r + t->nranks - 1) % t->nranks, t->comm[i], NULL));
  }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, want = round + (r + t->nranks - 1) % t->nranks;
    mem_rank(r);
    CU(r, cu.StreamSynchronize(NULL));
    buf_get(&to->buf[i], 0, to->buf[i].bytes);
    const int32_t *at = (const int32_t *)to->buf[i].copy;
    if (at[0] != want || at[to->n - 1] != want)
      ok = conf_fail(r, "a message in memory of a pool: want %d, got %d … %d", want, at[0], at[to->n - 1]);
  }
  return ok;
}

/* Memory of the stream-ordered allocator, which cannot be exported: collectives, messages, in sizes that grow, beside ordinary memory. */
void suite_pool(struct team *t) {
  for (int round = 0; round < gpu_rounds(100); round++) {
    int n = round % 4 == 3 ? SMALL << round % 12 : SMALL;
    struct sums v, w;
    if (!sums_new(&v, t, n) || !sums_new(&w, t, n) || !sums_pool(&v, t)) return;
    if (round % 2 && !sums_pool(&w, t)) return;
    sums_put(&v, t, round);
    EACH(t, "memory of a pool", sums_call(&v, i, t->comm[i], NULL));
    EACH(t, "ncclBroadcast in memory of a pool",
         ncclBroadcast(v.buf[i].at, w.buf[i].at, (size_t)n, ncclInt32, t->nranks - 1, t->comm[i], NULL));
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(NULL));
    }
    int ok = sums_check(&v, t, round, "memory of a pool") && sums_check(&w, t, round, "ncclBroadcast in memory of a pool") &&
             around_the_ring(t, &v, &w, round);
    sums_free(&v, t);
    sums_free(&w, t);
    if (!ok) return;
  }
}
