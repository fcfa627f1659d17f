/* groups.c: several operations, several communicators and nested brackets in one group; errors inside. */
#include "numfmt.h"
#include "suites.h"

enum { OPS = 5 };

/* Issues OPS cases on comms[k] in one group, depth brackets deep, and checks all. */
static void together(struct team *t, ncclComm_t *comms[OPS], struct pool pools[OPS], struct coll_case c[OPS], int depth) {
  static __thread struct coll_run run[OPS][CONF_MAX_RANKS];
  for (int k = 0; k < OPS; k++)
    for (int i = 0; i < t->nlocal; i++) coll_prepare(&c[k], t, &pools[k], i, &run[k][i]);
  for (int d = 0; d < depth; d++) OK(t->first, ncclGroupStart());
  for (int k = 0; k < OPS; k++) {
    if (depth > 1 && k == 2) { /* an inner end starts nothing */
      OK(t->first, ncclGroupStart());
      OK(t->first, ncclGroupEnd());
    }
    for (int i = 0; i < t->nlocal; i++) {
      char text[256];
      int r = t->first + i;
      conf_at(r, "group of %d: %s", OPS, coll_text(&c[k], text, sizeof text));
      ncclResult_t rc = coll_call(&c[k], comms[k][i], t->nranks, r, &run[k][i], mem_null);
      if (rc != ncclSuccess) conf_fail(r, "in a group: %s: got %d; last error \"%s\"", text, rc, ncclGetLastError(NULL));
    }
  }
  for (int d = 0; d < depth; d++) OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_sync(mem_null));
  }
  for (int k = 0; k < OPS; k++)
    for (int i = 0; i < t->nlocal; i++) coll_check(&c[k], t, i, &run[k][i]);
}

static struct coll_case small(uint64_t *s, int kind, int nranks) {
  static const size_t counts[] = {1, 17, 300, 1025};
  struct coll_case c = {0};
  c.kind = kind;
  c.type = (ncclDataType_t)(conf_rand(s) % ncclNumTypes);
  c.op = coll_reduces(kind) ? (int)(conf_rand(s) % OP_COUNT) : 0;
  c.count = counts[conf_rand(s) % 4];
  c.root = (int)(conf_rand(s) % (uint64_t)nranks);
  c.buf = (int)(conf_rand(s) % BUF_KINDS);
  c.inplace = kind == K_BCAST;
  c.seed = conf_rand(s) >> 20;
  return c;
}

/* Every rank sends to every rank, itself too, messages of different length, two a pair. */
static void everyone(struct team *t, ncclComm_t *comm) {
  enum { N = 40, BYTES = N * sizeof(int32_t) };
  int n = t->nranks;
  struct buf buf[CONF_MAX_RANKS];
#define OFF(p, k) (((size_t)(p)*4 + (size_t)(k)) * BYTES)
#define MSG(i, p, k) ((int32_t *)(buf[i].copy + OFF(p, k)))
  for (int i = 0; i < t->nlocal; i++) {
    int me = t->first + i;
    if (!buf_new(&buf[i], me, (size_t)n * 4 * BYTES)) return;
    for (int p = 0; p < n; p++)
      for (int k = 0; k < 2; k++) {
        for (int j = 0; j < N; j++) MSG(i, p, k)[j] = me * 10000 + p * 100 + j + k;
        memset(MSG(i, p, k + 2), 0, BYTES);
      }
    buf_put(&buf[i], 0, buf[i].bytes);
  }
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    int me = t->first + i;
    for (int p = 0; p < n; p++)
      for (int k = 0; k < 2; k++) {
        size_t len = (size_t)(k ? 3 + p + me : N);
        OK(me, ncclSend(buf[i].at + OFF(p, k), len, ncclInt32, p, comm[i], mem_null));
        OK(me, ncclRecv(buf[i].at + OFF(p, k + 2), len, ncclInt32, p, comm[i], mem_null));
      }
  }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    int me = t->first + i;
    mem_rank(me);
    OK(me, mem_stream_sync(mem_null));
    buf_get(&buf[i], 0, buf[i].bytes);
    for (int p = 0; p < n; p++)
      for (int k = 0; k < 2; k++) {
        int len = k ? 3 + p + me : N;
        for (int j = 0; j < N; j++) {
          int32_t want = j < len ? p * 10000 + me * 100 + j + k : 0, got = MSG(i, p, k + 2)[j];
          if (want == got) continue;
          conf_fail(me, "ncclRecv int32 count %d from %d, message %d of the pair: index %d: want %d, got %d", len, p, k, j, want, got);
          break;
        }
      }
    buf_free(&buf[i], me);
  }
#undef MSG
#undef OFF
}

/* A bad call inside a group stops the whole group, and the next group is clean. */
static void errors(struct team *t) {
  int r = t->first;
  struct buf b;
  if (!buf_new(&b, r, 2 * sizeof(int32_t))) return;
  int32_t *v = (int32_t *)b.copy;
  void *in = b.at, *out = b.at + sizeof(int32_t);
  v[0] = 5;
  v[1] = 7;
  buf_put(&b, 0, b.bytes);
  RC(r, ncclInvalidUsage, ncclGroupEnd());
  OK(r, ncclGroupStart());
  OK(r, ncclAllReduce(in, out, 1, ncclInt32, ncclSum, t->comm[0], mem_null));
  RC(r, ncclInvalidArgument, ncclBroadcast(in, out, 1, ncclInt32, t->nranks, t->comm[0], mem_null));
  RC(r, ncclInvalidArgument, ncclGroupEnd());
  OK(r, mem_stream_sync(mem_null));
  buf_get(&b, 0, b.bytes);
  TRUE(r, v[1] == 7);
  TRUE(r, ncclGetLastError(NULL)[0] != 0);
  RC(r, ncclInvalidUsage, ncclGroupEnd());
  conf_barrier(t);
  coll_alive(t, t->comm);
  /* With several errors the last one counts. */
  OK(r, ncclGroupStart());
  RC(r, ncclInvalidArgument, ncclAllReduce(in, out, 1, (ncclDataType_t)12, ncclSum, t->comm[0], mem_null));
  OK(r, ncclGroupStart());
  RC(r, ncclInvalidArgument, ncclCommInitRank(NULL, 0, (ncclUniqueId){{0}}, 0));
  OK(r, ncclGroupEnd());
  RC(r, ncclInvalidArgument, ncclGroupEnd());
  OK(r, ncclGroupStart());
  OK(r, ncclGroupEnd());
  conf_barrier(t);
  coll_alive(t, t->comm);
  buf_free(&b, r);
}

static void simulate(struct team *t) {
  enum { N = 64, BYTES = N * sizeof(int32_t) };
  struct buf b[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    if (!buf_new(&b[i], r, 2 * BYTES)) return;
    int32_t *v = (int32_t *)b[i].copy;
    for (int j = 0; j < 2 * N; j++) v[j] = j < N ? 1 : 9;
    buf_put(&b[i], 0, b[i].bytes);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    OK(r, ncclGroupStart());
    OK(r, ncclAllReduce(b[i].at, b[i].at + BYTES, N, ncclInt32, ncclSum, t->comm[i], mem_null));
    OK(r, ncclGroupSimulateEnd(&info));
    OK(r, mem_stream_sync(mem_null));
    buf_get(&b[i], BYTES, BYTES);
    TRUE(r, v[N] == 9);
    TRUE(r, info.estimatedTime >= 0 && info.estimatedTime < 1e6f);
    ncclSimInfo_t bad = NCCL_SIM_INFO_INITIALIZER;
    bad.magic = 1;
    OK(r, ncclGroupStart());
    RC(r, ncclInvalidArgument, ncclGroupSimulateEnd(&bad));
    RC(r, ncclInvalidUsage, ncclGroupEnd());
  }
  conf_barrier(t);
  /* Without info it is an ordinary end. */
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    OK(t->first + i, ncclAllReduce(b[i].at, b[i].at + BYTES, 1, ncclInt32, ncclSum, t->comm[i], mem_null));
  OK(t->first, ncclGroupSimulateEnd(NULL));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_sync(mem_null));
    buf_get(&b[i], BYTES, BYTES);
    TRUE(t->first + i, *(int32_t *)(b[i].copy + BYTES) == t->nranks);
    buf_free(&b[i], t->first + i);
  }
}

void suite_groups(struct team *t) {
  uint64_t s = W->seed + 99;
  struct pool pools[OPS];
  ncclComm_t second[CONF_MAX_RANKS];
  if (!team_init(t, second, NULL)) return;
  ncclComm_t *same[OPS] = {t->comm, t->comm, t->comm, t->comm, t->comm};
  ncclComm_t *mixed[OPS] = {t->comm, second, t->comm, second, second};
  /* Windows belong to one communicator; on the other one their memory is ordinary. */
  for (int k = 0; k < OPS; k++)
    if (!pool_make(&pools[k], t, mixed[k][0] == second[0] ? second : t->comm, 1025u * 8 * (size_t)t->nranks)) return;
  for (int round = 0; round < 12; round++) {
    struct coll_case c[OPS];
    for (int k = 0; k < OPS; k++) c[k] = small(&s, (round + k * 3) % K_COUNT, t->nranks);
    together(t, round % 2 ? mixed : same, pools, c, 1 + round % 3);
  }
  everyone(t, t->comm);
  everyone(t, second);
  errors(t);
  simulate(t);
  for (int k = 0; k < OPS; k++) pool_free(&pools[k], t, mixed[k][0] == second[0] ? second : t->comm);
  team_destroy(t, second);
}
