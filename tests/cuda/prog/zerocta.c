/* zerocta.c: NCCL_CTA_POLICY_ZERO: what only moves data launches no kernel, eager and in graphs; counted by the stand-in. Whether the data
 * is right for all types, sizes and places is the business of the suites of tests/hostapi with the policy set. */
#include <dlfcn.h>

#include "gpu.h"

enum { N = 3001, KINDS = 6 };

static const char *(*calls)(unsigned i, unsigned long *n);
static void (*count)(void);

static unsigned long launches(void) {
  unsigned long n = 0, all = 0;
  const char *s;
  for (unsigned i = 0; (s = calls(i, &n)); i++)
    if (!strncmp(s, "cuLaunchKernel", 14) || !strcmp(s, "cuLaunchCooperativeKernel")) all += n;
  return all;
}

static const char *const names[KINDS] = {"ncclAllGather", "ncclAlltoAll", "ncclBroadcast",
                                         "ncclGather",    "ncclScatter",  "ncclSend and ncclRecv"};

/* One byte beside an aligned address, so that nothing is aligned. */
static ncclResult_t call(int kind, const struct buf *in, const struct buf *out, ncclComm_t c, int rank, int n, void *s) {
  const char *send = (const char *)in->at + 1;
  char *recv = (char *)out->at + 1;
  int root = n - 1;
  switch (kind) {
  case 0: return ncclAllGather(send, recv, N, ncclInt8, c, s);
  case 1: return ncclAlltoAll(send, recv, N, ncclInt8, c, s);
  case 2: return ncclBroadcast(send, recv, N, ncclInt8, root, c, s);
  case 3: return ncclGather(send, recv, N, ncclInt8, root, c, s);
  case 4: return ncclScatter(send, recv, N, ncclInt8, root, c, s);
  default: break;
  }
  ncclResult_t a = ncclGroupStart(), b = ncclSend(send, N, ncclInt8, (rank + 1) % n, c, s);
  ncclResult_t d = ncclRecv(recv, N, ncclInt8, (rank + n - 1) % n, c, s), e = ncclGroupEnd();
  return a ? a : b ? b : d ? d : e;
}

/* Byte j of part p of what a rank sends. */
static unsigned char byte(int rank, int p, int j, int round) { return (unsigned char)(rank * 31 + p * 7 + j + round * 13); }

static void fill(struct team *t, struct buf *in, int round) {
  for (int i = 0; i < t->nlocal; i++) {
    for (int p = 0; p < t->nranks; p++)
      for (int j = 0; j < N; j++) in[i].copy[1 + p * N + j] = byte(t->first + i, p, j, round);
    buf_put(&in[i], 0, in[i].bytes);
  }
}

static void check(struct team *t, struct buf *out, int kind, int round, const char *how) {
  int n = t->nranks, root = n - 1;
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, parts = kind == 0 || kind == 1 || (kind == 3 && r == root) ? n : kind == 3 ? 0 : 1;
    buf_get(&out[i], 0, out[i].bytes);
    atomic_fetch_add(&W->checks, 1);
    for (int at = 0; at < parts * N; at++) {
      int p = at / N, j = at % N;
      unsigned char got = out[i].copy[1 + at];
      unsigned char want = kind == 0   ? byte(p, 0, j, round)
                           : kind == 1 ? byte(p, r, j, round)
                           : kind == 2 ? byte(root, 0, j, round)
                           : kind == 3 ? byte(p, 0, j, round)
                           : kind == 4 ? byte(root, r, j, round)
                                       : byte((r + n - 1) % n, 0, j, round);
      if (got == want) continue;
      conf_fail(r, "%s, %s: index %d: want %d, got %d", names[kind], how, at, want, got);
      break;
    }
  }
}

void suite_zerocta(struct team *t) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm[CONF_MAX_RANKS];
  struct buf in[CONF_MAX_RANKS], out[CONF_MAX_RANKS];
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums v;
  int n = t->nranks;
  *(void **)&calls = dlsym(RTLD_DEFAULT, "gccl_fake_calls");
  *(void **)&count = dlsym(RTLD_DEFAULT, "gccl_fake_count");
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  if (!team_init(t, comm, &config) || !sums_new(&v, t, N)) return;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!buf_new(&in[i], t->first + i, (size_t)n * N + 8) || !buf_new(&out[i], t->first + i, (size_t)n * N + 8)) return;
    if (!CU(t->first + i, cu.StreamCreate(&g[i].stream, CU_NON_BLOCKING))) return;
  }
  if (!calls || !count) conf_note("this is not the stand-in: launches are not counted");
  for (int kind = 0; kind < KINDS; kind++) {
    conf_at(t->first, "%s", names[kind]);
    fill(t, in, kind);
    conf_barrier(t);
    if (count) count();
    EACH(t, names[kind], call(kind, &in[i], &out[i], comm[i], r, n, g[i].stream));
    graphs_settle(t, g);
    if (calls && launches()) conf_fail(t->first, "%s launches %lu kernels", names[kind], launches());
    check(t, out, kind, kind, "eager");
    conf_barrier(t);
    if (W->launch == LAUNCH_THREADS && n > 4) continue; /* more graphs of one process than hardware queues */
    if (W->launch == LAUNCH_GROUP && n > 4) continue;
    if (count) count();
    if (!graphs_begin(t, g)) return;
    EACH(t, names[kind], call(kind, &in[i], &out[i], comm[i], r, n, g[i].stream));
    if (!graphs_end(t, g)) return;
    for (int round = 0; round < 3; round++) {
      fill(t, in, round);
      conf_barrier(t);
      graphs_replay(t, g);
      graphs_settle(t, g);
      check(t, out, kind, round, "in a graph");
      conf_barrier(t);
    }
    if (calls && launches()) conf_fail(t->first, "%s in a graph launches %lu kernels", names[kind], launches());
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.GraphExecDestroy(g[i].exec));
      g[i].exec = NULL;
    }
    conf_barrier(t);
  }
  /* A reduction needs its kernel, and is right. */
  sums_put(&v, t, 3);
  if (count) count();
  EACH(t, "ncclAllReduce", sums_call(&v, i, comm[i], g[i].stream));
  graphs_settle(t, g);
  if (calls && n > 1 && t->first == 0 && !launches()) conf_fail(0, "the launches are not counted");
  sums_check(&v, t, 3, "ncclAllReduce with the policy");
  conf_barrier(t);
  graphs_drop(t, g);
  sums_free(&v, t);
  for (int i = 0; i < t->nlocal; i++) {
    buf_free(&in[i], t->first + i);
    buf_free(&out[i], t->first + i);
  }
  team_destroy(t, comm);
}
