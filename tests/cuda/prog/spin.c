/* spin.c: kernels of all ranks that wait for each other on the GPU (GCCL_CUDA_EXECUTOR=spin), between collectives that one rank's kernel does
 * for all: in one stream and in several, in groups of which not all ranks have the same messages, in graphs, and ranks whose settings differ. */
#include <dlfcn.h>

#include "gpu.h"

enum { TINY = 2, SMALL = 1000, LARGE = 50000, ROUNDS = 8 };

int gpu_spins(void) {
  const char *v = getenv("GCCL_CUDA_EXECUTOR");
  return v && !strcmp(v, "spin");
}

static int streams_of(struct team *t, void *s[][2]) {
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    for (int k = 0; k < 2; k++) ok &= CU(t->first + i, cu.StreamCreate(&s[i][k], CU_NON_BLOCKING));
  }
  return ok;
}

static void settle(struct team *t, void *s[][2]) {
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    for (int k = 0; k < 2; k++) CU(t->first + i, cu.StreamSynchronize(s[i][k]));
  }
}

static ncclResult_t into(const struct sums *in, const struct sums *out, int i, ncclComm_t c, void *stream) {
  return ncclAllReduce(in->buf[i].at, out->buf[i].at, (size_t)in->n, ncclInt32, ncclSum, c, stream);
}

/* All sizes in turn on two streams: each result is what the next one takes, so the order of the calls is the order of the kernels. */
static void turns(struct team *t, void *s[][2]) {
  static const int counts[] = {TINY, LARGE, SMALL, 1, 4096, 4097, LARGE, TINY};
  enum { N = sizeof counts / sizeof *counts };
  struct sums v[N], chain[3];
  for (int k = 0; k < N; k++)
    if (!sums_new(&v[k], t, counts[k])) return;
  for (int k = 0; k < 3; k++)
    if (!sums_new(&chain[k], t, SMALL)) return;
  for (int round = 0; round < ROUNDS; round++) {
    conf_at(t->first, "sizes in turn on two streams, round %d", round);
    for (int k = 0; k < N; k++) sums_put(&v[k], t, round + k);
    sums_put(&chain[0], t, round);
    conf_barrier(t);
    for (int k = 0; k < N; k++) EACH(t, "sizes in turn", sums_call(&v[k], i, t->comm[i], s[i][(k + round) % 2]));
    for (int k = 0; k < 2; k++) EACH(t, "a chain", into(&chain[k], &chain[k + 1], i, t->comm[i], s[i][k]));
    settle(t, s);
    for (int k = 0; k < N; k++)
      if (!sums_check(&v[k], t, round + k, "sizes in turn on two streams")) return;
    int n = t->nranks, sum = n * round + n * (n - 1) / 2; /* the second sum is of n equal ones */
    for (int i = 0; i < t->nlocal; i++) {
      buf_get(&chain[2].buf[i], 0, chain[2].buf[i].bytes);
      int got = ((int32_t *)chain[2].buf[i].copy)[SMALL - 1];
      if (got != n * sum)
        conf_fail(t->first + i, "a kernel in the second stream ran before the one in the first: want %d, got %d", n * sum, got);
    }
  }
  for (int k = 0; k < N; k++) sums_free(&v[k], t);
  for (int k = 0; k < 3; k++) sums_free(&chain[k], t);
}

/* A group of collectives; ranks 0 and 1 have a message in it too, the others have not. */
static void grouped(struct team *t, void *s[][2], int large) {
  struct sums v[2], m;
  if (!sums_new(&v[0], t, SMALL) || !sums_new(&v[1], t, large ? LARGE : TINY) || !sums_new(&m, t, SMALL)) return;
  for (int round = 0; round < ROUNDS; round++) {
    conf_at(t->first, "groups, round %d", round);
    for (int k = 0; k < 2; k++) sums_put(&v[k], t, round + k);
    sums_put(&m, t, round);
    conf_barrier(t);
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++) {
      int r = t->first + i;
      mem_rank(r);
      if (t->nranks > 1 && r == 0) OK(r, ncclSend(m.buf[i].at, SMALL, ncclInt32, 1, t->comm[i], s[i][0]));
      OK(r, sums_call(&v[0], i, t->comm[i], s[i][0]));
      OK(r, sums_call(&v[1], i, t->comm[i], s[i][1]));
      if (r == 1) OK(r, ncclRecv(m.buf[i].at, SMALL, ncclInt32, 0, t->comm[i], s[i][0]));
    }
    OK(t->first, ncclGroupEnd());
    settle(t, s);
    if (!sums_check(&v[0], t, round, "first of a group") || !sums_check(&v[1], t, round + 1, "second of a group")) return;
    for (int i = 0; i < t->nlocal; i++) {
      if (t->first + i != 1) continue;
      buf_get(&m.buf[i], 0, m.buf[i].bytes);
      if (((int32_t *)m.buf[i].copy)[SMALL - 1] != round) conf_fail(1, "a message in a group has not come");
    }
  }
  for (int k = 0; k < 2; k++) sums_free(&v[k], t);
  sums_free(&m, t);
}

/* More graphs than there are lanes, one after another, and eager calls on another stream beside each. */
static void graphs(struct team *t, void *s[][2]) {
  enum { MANY = 20 };
  static __thread struct graph g[MANY][CONF_MAX_RANKS];
  struct sums in, out, other;
  memset(g, 0, sizeof g);
  if (!sums_new(&in, t, SMALL) || !sums_new(&out, t, SMALL) || !sums_new(&other, t, TINY)) return;
  for (int k = 0; k < MANY; k++) {
    if (!graphs_begin(t, g[k])) return;
    for (int twice = 0; twice < 2; twice++) EACH(t, "captured", into(&in, &out, i, t->comm[i], g[k][i].stream));
    if (!graphs_end(t, g[k])) return;
  }
  for (int round = 0; round < MANY + 5; round++) {
    conf_at(t->first, "graph %d of %d", round % MANY, MANY);
    sums_put(&in, t, round);
    sums_put(&other, t, round);
    conf_barrier(t);
    graphs_replay(t, g[round % MANY]);
    EACH(t, "beside a replay", sums_call(&other, i, t->comm[i], s[i][1]));
    settle(t, s);
    graphs_settle(t, g[round % MANY]);
    if (!sums_check(&out, t, round, "many graphs") || !sums_check(&other, t, round, "beside many graphs")) break;
  }
  conf_barrier(t);
  for (int k = 0; k < MANY; k++) graphs_drop(t, g[k]);
  sums_free(&in, t);
  sums_free(&out, t);
  sums_free(&other, t);
}

/* One capture, two streams of a rank, kernels of both kinds: the second stream's come behind the first's. */
static void forked(struct team *t, void *s[][2]) {
  void *graph[CONF_MAX_RANKS] = {0}, *exec[CONF_MAX_RANKS] = {0}, *fork[CONF_MAX_RANKS], *join[CONF_MAX_RANKS];
  struct sums in, mid, out, big;
  int n = t->nranks, mode = W->launch == LAUNCH_THREADS ? CU_CAPTURE_THREAD_LOCAL : CU_CAPTURE_GLOBAL;
  if (!sums_new(&in, t, SMALL) || !sums_new(&mid, t, SMALL) || !sums_new(&out, t, SMALL) || !sums_new(&big, t, LARGE)) return;
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    mem_rank(r);
    CU(r, cu.EventCreate(&fork[i], CU_NO_TIMING));
    CU(r, cu.EventCreate(&join[i], CU_NO_TIMING));
    CU(r, cu.StreamBeginCapture(s[i][0], mode));
    CU(r, cu.EventRecord(fork[i], s[i][0]));
    CU(r, cu.StreamWaitEvent(s[i][1], fork[i], 0));
  }
  EACH(t, "in the first stream", into(&in, &mid, i, t->comm[i], s[i][0]));
  EACH(t, "in the second stream", into(&mid, &out, i, t->comm[i], s[i][1]));
  EACH(t, "of one rank for all", sums_call(&big, i, t->comm[i], s[i][0]));
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    mem_rank(r);
    CU(r, cu.EventRecord(join[i], s[i][1]));
    CU(r, cu.StreamWaitEvent(s[i][0], join[i], 0));
    CU(r, cu.StreamEndCapture(s[i][0], &graph[i]));
  }
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!CU(t->first + i, cu.GraphInstantiate(&exec[i], graph[i], 0)) || !CU(t->first + i, cu.GraphDestroy(graph[i]))) return;
  }
  for (int round = 0; round < ROUNDS; round++) {
    conf_at(t->first, "two streams of a capture, round %d", round);
    sums_put(&in, t, round);
    sums_put(&big, t, round);
    conf_barrier(t);
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.GraphLaunch(exec[i], s[i][0]));
    }
    settle(t, s);
    if (!sums_check(&big, t, round, "one rank for all, between")) break;
    for (int i = 0; i < t->nlocal; i++) {
      int want = n * (n * round + n * (n - 1) / 2);
      buf_get(&out.buf[i], 0, out.buf[i].bytes);
      int got = ((int32_t *)out.buf[i].copy)[0];
      if (got != want) conf_fail(t->first + i, "the second stream of a capture: want %d, got %d", want, got);
    }
  }
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.GraphExecDestroy(exec[i]));
    CU(t->first + i, cu.EventDestroy(fork[i]));
    CU(t->first + i, cu.EventDestroy(join[i]));
  }
  sums_free(&in, t);
  sums_free(&mid, t);
  sums_free(&out, t);
  sums_free(&big, t);
}

/* Launches of this process since count; -1: the driver does not count. */
static long launched(int begin) {
  void (*count)(void);
  const char *(*calls)(unsigned i, unsigned long *n);
  *(void **)&count = dlsym(RTLD_DEFAULT, "gccl_fake_count");
  *(void **)&calls = dlsym(RTLD_DEFAULT, "gccl_fake_calls");
  if (!count || !calls) return -1;
  if (begin) count();
  unsigned long n = 0;
  const char *s;
  for (unsigned i = 0; (s = calls(i, &n)); i++)
    if (!strcmp(s, "cuLaunchKernel")) return (long)n;
  return 0;
}

/* Large sizes in symmetric windows, at places of their own: eager, in turn with small ones, and in a graph. */
static void symmetric(struct team *t, void *s[][2]) {
  enum { SHIFT = 52, BYTES = 4 * LARGE, ALL = 2 * 16384 };
  struct buf b[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums small;
  int n = t->nranks;
  size_t recv = SHIFT + BYTES + 12, parts = recv + BYTES + 4, half = parts + ALL, whole = half + (size_t)n * ALL;
  if (!sums_new(&small, t, TINY)) return;
  for (int i = 0; i < t->nlocal; i++)
    if (!buf_nccl(&b[i], t->first + i, whole)) return;
  EACH(t, "ncclCommWindowRegister", ncclCommWindowRegister(t->comm[i], b[i].at, whole, &win[i], NCCL_WIN_COLL_SYMMETRIC));
  for (int round = 0; round < ROUNDS; round++) {
    int replay = round >= ROUNDS / 2;
    conf_at(t->first, "symmetric windows, round %d", round);
    for (int i = 0; i < t->nlocal; i++) {
      for (int j = 0; j < LARGE; j++) {
        int32_t v = round * j + t->first + i;
        memcpy(b[i].copy + SHIFT + 4 * j, &v, 4);
      }
      memset(b[i].copy + parts, t->first + i + round, ALL);
      buf_put(&b[i], 0, whole);
    }
    sums_put(&small, t, round);
    conf_barrier(t);
    launched(1);
    if (round == ROUNDS / 2 && !graphs_begin(t, g)) return;
    if (round <= ROUNDS / 2)
      EACH(t, "all-reduce in windows",
           ncclAllReduce(b[i].at + SHIFT, b[i].at + recv, LARGE, ncclInt32, ncclSum, t->comm[i], replay ? g[i].stream : s[i][0]));
    long made = launched(0);
    if (!replay && n > 1 && made >= 0 && W->launch == LAUNCH_PROCS && made != 1)
      conf_fail(t->first, "%ld launches, not one of each rank", made);
    if (round <= ROUNDS / 2)
      EACH(t, "all-gather in windows",
           ncclAllGather(b[i].at + parts, b[i].at + half, ALL, ncclInt8, t->comm[i], replay ? g[i].stream : s[i][1]));
    if (round == ROUNDS / 2 && !graphs_end(t, g)) return;
    if (replay) {
      conf_barrier(t);
      graphs_replay(t, g);
      graphs_settle(t, g);
    }
    EACH(t, "a small one between", sums_call(&small, i, t->comm[i], s[i][0]));
    settle(t, s);
    if (!sums_check(&small, t, round, "a small one between")) break;
    for (int i = 0; i < t->nlocal; i++) {
      buf_get(&b[i], 0, whole);
      for (int j = 0; j < LARGE; j++) {
        int32_t got, want = n * round * j + n * (n - 1) / 2;
        memcpy(&got, b[i].copy + recv + 4 * j, 4);
        if (got == want) continue;
        conf_fail(t->first + i, "all-reduce in windows: index %d: want %d, got %d", j, want, got);
        break;
      }
      for (int q = 0; q < n; q++)
        if (b[i].copy[half + (size_t)q * ALL] != (unsigned char)(q + round) ||
            b[i].copy[half + (size_t)(q + 1) * ALL - 1] != (unsigned char)(q + round))
          conf_fail(t->first + i, "all-gather in windows: the part of rank %d", q);
    }
  }
  conf_barrier(t);
  graphs_drop(t, g);
  EACH(t, "ncclCommWindowDeregister", ncclCommWindowDeregister(t->comm[i], win[i]));
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) buf_free(&b[i], t->first + i);
  sums_free(&small, t);
}

/* One rank's setting is another one: all of them do without. */
static void disagreed(struct team *t, void *s[][2]) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct sums v;
  if (W->launch != LAUNCH_PROCS) return; /* the environment is the process's */
  if (t->first == t->nranks - 1) setenv("GCCL_CUDA_EXECUTOR", "kernels", 1);
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, SMALL)) return;
  sums_put(&v, t, 3);
  conf_barrier(t);
  conf_at(t->first, "an all-reduce of ranks whose settings differ");
  EACH(t, "settings that differ", sums_call(&v, i, comm[i], s[i][0]));
  settle(t, s);
  sums_check(&v, t, 3, "settings that differ");
  team_destroy(t, comm);
  sums_free(&v, t);
}

void suite_spin(struct team *t) {
  void *s[CONF_MAX_RANKS][2];
  if (!streams_of(t, s)) return;
  turns(t, s);
  grouped(t, s, 0);
  grouped(t, s, 1);
  graphs(t, s);
  forked(t, s);
  symmetric(t, s);
  disagreed(t, s);
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    for (int k = 0; k < 2; k++) CU(t->first + i, cu.StreamDestroy(s[i][k]));
  }
}
