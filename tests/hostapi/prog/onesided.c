/* onesided.c: put with signal, signal, wait: data is there when its signal is, signals count per peer, order holds,
 * and what is refused writes nothing. */
#include "suites.h"

enum { N = 1024, ROUNDS = 20 };

struct side {
  struct buf mem[CONF_MAX_RANKS]; /* first half: local source, second half: what peers write */
  ncclWindow_t win[CONF_MAX_RANKS];
  size_t slot; /* bytes of one peer's part */
};

static int32_t *source(struct side *s, int i) { return (int32_t *)s->mem[i].copy; }
static int32_t *inbox(struct side *s, int i, int peer, int nranks) {
  return (int32_t *)(s->mem[i].copy + s->slot * (size_t)(nranks + peer));
}

/* Every rank puts to every rank, itself too; then waits for one signal of each. */
static void rounds(struct team *t, struct side *s, cudaStream_t *stream) {
  int n = t->nranks;
  ncclWaitSignalDesc_t all[CONF_MAX_RANKS];
  for (int p = 0; p < n; p++) all[p] = (ncclWaitSignalDesc_t){1, p, 0, 0};
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < t->nlocal; i++) {
      for (int j = 0; j < N; j++) source(s, i)[j] = (t->first + i) * 1000000 + round * 1000 + j;
      buf_put(&s->mem[i], 0, N * sizeof(int32_t));
    }
    if (t->nlocal > 1) OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++)
      for (int p = 0; p < n; p++) {
        size_t off = s->slot * (size_t)(n + t->first + i);
        OK(t->first + i, ncclPutSignal(s->mem[i].at, N, ncclInt32, p, s->win[i], off, 0, 0, 0, t->comm[i], stream[i]));
      }
    if (t->nlocal > 1) OK(t->first, ncclGroupEnd());
    EACH(t, "ncclWaitSignal", ncclWaitSignal(n, all, t->comm[i], stream[i]));
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      OK(t->first + i, mem_stream_sync(stream[i]));
      buf_get(&s->mem[i], s->slot * (size_t)n, s->slot * (size_t)n);
    }
    for (int i = 0; i < t->nlocal; i++)
      for (int p = 0; p < n; p++)
        for (int j = 0; j < N; j++) {
          int32_t want = p * 1000000 + round * 1000 + j, got = inbox(s, i, p, n)[j];
          if (want == got) continue;
          conf_fail(t->first + i, "ncclPutSignal int32 count %d from %d, round %d: index %d: want %d, got %d", N, p, round, j, want, got);
          break;
        }
    conf_barrier(t); /* nobody overwrites an inbox that is being read */
  }
}

/* Several signals are counted and taken in parts. */
static void counting(struct team *t) {
  int n = t->nranks;
  EACH(t, "ncclSignal", ncclSignal((r + 1) % n, 0, 0, 0, t->comm[i], mem_null));
  EACH(t, "ncclSignal", ncclSignal((r + 1) % n, 0, 0, 0, t->comm[i], mem_null));
  EACH(t, "ncclSignal", ncclSignal((r + 1) % n, 0, 0, 0, t->comm[i], mem_null));
  for (int count = 1; count <= 2; count++) {
    ncclWaitSignalDesc_t d[CONF_MAX_RANKS];
    for (int i = 0; i < t->nlocal; i++) d[i] = (ncclWaitSignalDesc_t){count, (t->first + i + n - 1) % n, 0, 0};
    EACH(t, "ncclWaitSignal", ncclWaitSignal(1, &d[i], t->comm[i], mem_null));
  }
}

static void refused(struct team *t, struct side *s) {
  ncclComm_t c = t->comm[0];
  int r = t->first, n = t->nranks;
  ncclWindow_t w = s->win[0];
  void *src = s->mem[0].at;
  struct buf elsewhere;
  if (!buf_new(&elsewhere, r, 16)) return;
  void *other = elsewhere.at;
  ncclWaitSignalDesc_t d = {1, 0, 0, 0}, zero = {0, 0, 0, 0}, index = {1, 0, 1, 0}, ctx = {1, 0, 0, 1};
#define PUT(src, type, peer, win, off, sig, ctx, flags, comm) ncclPutSignal(src, 4, type, peer, win, off, sig, ctx, flags, comm, mem_null)
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, 0, 0, 0, 0, NULL));
  RC(r, ncclInvalidArgument, PUT(NULL, ncclInt32, 0, w, 0, 0, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, NULL, 0, 0, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, -1, w, 0, 0, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, n, w, 0, 0, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, (ncclDataType_t)12, 0, w, 0, 0, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, 0, 1, 0, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, 0, 0, 1, 0, c));
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, 0, 0, 0, 1, c));
  RC(r, ncclInvalidArgument, PUT(other, ncclInt32, 0, w, 0, 0, 0, 0, c));                         /* the source is in no window */
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, s->slot * 2 * (size_t)n - 8, 0, 0, 0, c)); /* past the end */
  RC(r, ncclInvalidArgument, PUT(src, ncclInt32, 0, w, (size_t)-8, 0, 0, 0, c));
#undef PUT
  RC(r, ncclInvalidArgument, ncclSignal(n, 0, 0, 0, c, NULL));
  RC(r, ncclInvalidArgument, ncclSignal(0, 1, 0, 0, c, NULL));
  RC(r, ncclInvalidArgument, ncclSignal(0, 0, 0, 0, NULL, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(0, &d, c, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, NULL, c, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, &zero, c, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, &index, c, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, &ctx, c, NULL));
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, &d, NULL, NULL));
  d.peer = n;
  RC(r, ncclInvalidArgument, ncclWaitSignal(1, &d, c, NULL));
  buf_free(&elsewhere, r);
}

void suite_onesided(struct team *t) {
  struct side s = {.slot = 8192};
  cudaStream_t none[CONF_MAX_RANKS], stream[CONF_MAX_RANKS];
  size_t bytes = s.slot * 2 * (size_t)t->nranks;
  for (int i = 0; i < t->nlocal; i++) {
    none[i] = mem_null;
    if (!buf_nccl(&s.mem[i], t->first + i, bytes) || !OK(t->first + i, mem_stream_create(&stream[i]))) return;
  }
  EACH(t, "ncclCommWindowRegister", ncclCommWindowRegister(t->comm[i], s.mem[i].at, bytes, &s.win[i], NCCL_WIN_COLL_SYMMETRIC));
  for (int i = 0; i < t->nlocal; i++)
    if (!TRUE(t->first + i, s.win[i] != NULL)) return;
  rounds(t, &s, none);
  rounds(t, &s, stream);
  counting(t);
  refused(t, &s);
  rounds(t, &s, none); /* nothing that was refused has left a signal behind */
  coll_alive(t, t->comm);
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, ncclCommWindowDeregister(t->comm[i], s.win[i]));
    OK(t->first + i, mem_stream_destroy(stream[i]));
    buf_free(&s.mem[i], t->first + i);
  }
}
