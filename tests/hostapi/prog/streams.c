/* streams.c: streams: order on one stream, issue order of one communicator over two streams, groups over
 * several streams, query, errors, and destroying with work left. */
#include "suites.h"

/* Each operation's input is the output of the one before, alternating between two streams: only in issue order is
 * the end result n^STEPS (modulo 2^32). */
static void chain(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 513, STEPS = 24, BYTES = N * sizeof(uint32_t) };
  struct buf buf[CONF_MAX_RANKS];
  uint32_t want = 1;
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, 2 * BYTES)) return;
    for (int j = 0; j < N; j++) ((uint32_t *)buf[i].copy)[j] = 1;
    buf_put(&buf[i], 0, BYTES);
  }
  for (int k = 0; k < STEPS; k++) {
    want *= (uint32_t)t->nranks;
    EACH(t, "chained ncclAllReduce",
         ncclAllReduce(buf[i].at + (k % 2) * BYTES, buf[i].at + ((k + 1) % 2) * BYTES, N, ncclUint32, ncclSum, t->comm[i],
                       s[i][k % 3 == 0]));
  }
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    mem_rank(r);
    for (int k = 0; k < 2; k++) OK(r, mem_stream_sync(s[i][k]));
    for (int k = 0; k < 2; k++) OK(r, mem_stream_query(s[i][k]));
    buf_get(&buf[i], 0, BYTES);
    for (int j = 0; j < N; j++) {
      uint32_t got = ((uint32_t *)buf[i].copy)[j];
      if (got == want) continue;
      conf_fail(r, "%d chained all-reduces on two streams of one communicator: index %d: want %u, got %u", STEPS, j, want, got);
      break;
    }
    buf_free(&buf[i], r);
  }
}

/* Work on a stream does not hold up the caller: rank 0 comes late on purpose, the others query meanwhile. */
static void asynchronous(struct team *t, cudaStream_t (*s)[2]) {
  struct buf b[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&b[i], t->first + i, 2 * sizeof(int64_t))) return;
    ((int64_t *)b[i].copy)[0] = t->first + i;
    ((int64_t *)b[i].copy)[1] = -1;
    buf_put(&b[i], 0, b[i].bytes);
  }
  int64_t want = (int64_t)t->nranks * (t->nranks - 1) / 2;
  /* CUDA ranks of one process meet on the host before their streams get the work (docs/ordering.md). */
  int meet = mem_cuda() && W->launch != LAUNCH_PROCS;
  if (t->nlocal == 1 && t->nranks > 1 && !meet) {
    if (t->first == 0) conf_barrier(t); /* the others have called and looked */
    OK(t->first, ncclAllReduce(b[0].at, b[0].at + 8, 1, ncclInt64, ncclSum, t->comm[0], s[0][0]));
    if (t->first != 0) {
      RC(t->first, ncclInProgress, mem_stream_query(s[0][0]));
      conf_barrier(t);
    }
  } else {
    EACH(t, "ncclAllReduce on streams", ncclAllReduce(b[i].at, b[i].at + 8, 1, ncclInt64, ncclSum, t->comm[i], s[i][0]));
  }
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_sync(s[i][0]));
    buf_get(&b[i], 0, b[i].bytes);
    TRUE(t->first + i, ((int64_t *)b[i].copy)[1] == want);
    buf_free(&b[i], t->first + i);
  }
}

/* Host streams; a CUDA stream that is gone is the driver's to find. */
static void misuse(struct team *t) {
  int r = t->first;
  cudaStream_t gone;
  RC(r, ncclInvalidArgument, gcclStreamCreate(NULL));
  OK(r, gcclStreamSynchronize(NULL));
  OK(r, gcclStreamDestroy(NULL));
  OK(r, gcclStreamCreate(&gone));
  OK(r, gcclStreamQuery(gone));
  OK(r, gcclStreamDestroy(gone));
  RC(r, ncclInvalidArgument, gcclStreamDestroy(gone));
  RC(r, ncclInvalidArgument, gcclStreamSynchronize(gone));
  RC(r, ncclInvalidArgument, gcclStreamQuery(gone));
  if (mem_cuda()) return;
  int32_t x = 1, y = 2;
  RC(r, ncclInvalidArgument, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, t->comm[0], gone));
  TRUE(r, y == 2);
}

/* Destroying a stream finishes what was enqueued. */
static void destroy_with_work(struct team *t) {
  enum { N = 70001 };
  struct buf buf[CONF_MAX_RANKS];
  cudaStream_t s[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, sizeof(float) * N)) return;
    for (int j = 0; j < N; j++) ((float *)buf[i].copy)[j] = 2;
    buf_put(&buf[i], 0, buf[i].bytes);
    OK(t->first + i, mem_stream_create(&s[i]));
  }
  for (int k = 0; k < 3; k++) EACH(t, "ncclAllReduce", ncclAllReduce(buf[i].at, buf[i].at, N, ncclFloat32, ncclMax, t->comm[i], s[i]));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    OK(t->first + i, mem_stream_destroy(s[i]));
    buf_get(&buf[i], 0, buf[i].bytes);
    TRUE(t->first + i, ((float *)buf[i].copy)[0] == 2 && ((float *)buf[i].copy)[N - 1] == 2);
    buf_free(&buf[i], t->first + i);
  }
  coll_alive(t, t->comm);
}

/* count int32 of part k of a buffer are all v. */
static int all(const struct buf *b, size_t k, int count, int32_t v) {
  const int32_t *at = (const int32_t *)b->copy + k * (size_t)count;
  for (int j = 0; j < count; j++)
    if (at[j] != v) return 0;
  return 1;
}

static void fill(struct buf *b, size_t k, int count, int32_t v) {
  int32_t *at = (int32_t *)b->copy + k * (size_t)count;
  for (int j = 0; j < count; j++) at[j] = v;
  buf_put(b, k * (size_t)count * sizeof(int32_t), (size_t)count * sizeof(int32_t));
}

static void finish(struct team *t, int i, cudaStream_t (*s)[2], struct buf *b) {
  mem_rank(t->first + i);
  OK(t->first + i, mem_stream_sync(s[i][0]));
  OK(t->first + i, mem_stream_sync(s[i][1]));
  OK(t->first + i, mem_stream_sync(mem_null));
  buf_get(b, 0, b->bytes);
}

/* One group with operations on two streams and on no stream. */
static void group_over_streams(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 100, BYTES = N * sizeof(int32_t) };
  struct buf b[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&b[i], t->first + i, 3 * BYTES)) return;
    for (int k = 0; k < 3; k++) fill(&b[i], (size_t)k, N, k + 1);
  }
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 3; k++) {
      void *at = b[i].at + k * BYTES;
      OK(t->first + i, ncclAllReduce(at, at, N, ncclInt32, ncclSum, t->comm[i], k < 2 ? s[i][k] : mem_null));
    }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    finish(t, i, s, &b[i]);
    for (int k = 0; k < 3; k++) TRUE(t->first + i, all(&b[i], (size_t)k, N, (k + 1) * t->nranks));
    buf_free(&b[i], t->first + i);
  }
}

/* Two communicators on the same two streams in opposite order, in one group: neither may wait behind the other. */
static void crossed(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 50, ROUNDS = 10, BYTES = N * sizeof(int32_t) };
  ncclComm_t twin[CONF_MAX_RANKS];
  struct buf b[CONF_MAX_RANKS];
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &twin[i], NULL));
  for (int i = 0; i < t->nlocal; i++)
    if (!buf_new(&b[i], t->first + i, 4 * BYTES)) return;
  for (int k = 0; k < ROUNDS; k++) {
    for (int i = 0; i < t->nlocal; i++)
      for (int m = 0; m < 4; m++) fill(&b[i], (size_t)m, N, m + k);
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++)
      for (int m = 0; m < 4; m++) { /* comm on 0 and 1, its twin on 1 and 0 */
        void *at = b[i].at + m * BYTES;
        OK(t->first + i, ncclAllReduce(at, at, N, ncclInt32, ncclSum, m < 2 ? t->comm[i] : twin[i], s[i][m == 1 || m == 2]));
      }
    OK(t->first, ncclGroupEnd());
    for (int i = 0; i < t->nlocal; i++) {
      finish(t, i, s, &b[i]);
      for (int m = 0; m < 4; m++) TRUE(t->first + i, all(&b[i], (size_t)m, N, (m + k) * t->nranks));
    }
  }
  for (int i = 0; i < t->nlocal; i++) buf_free(&b[i], t->first + i);
  team_destroy(t, twin);
}

/* The caller's own part of a group goes after the work that is on the group's streams already. */
static void caller_after_stream(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 200000, BYTES = N * sizeof(int32_t) };
  ncclComm_t twin[CONF_MAX_RANKS];
  struct buf b[CONF_MAX_RANKS], other[CONF_MAX_RANKS];
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &twin[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&b[i], t->first + i, BYTES) || !buf_new(&other[i], t->first + i, sizeof(int32_t))) return;
    fill(&b[i], 0, N, 1);
    fill(&other[i], 0, 1, t->first);
  }
  EACH(t, "ncclAllReduce", ncclAllReduce(b[i].at, b[i].at, N, ncclInt32, ncclSum, t->comm[i], s[i][0]));
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) { /* reads what the other communicator writes on the stream */
    OK(t->first + i, ncclAllReduce(b[i].at, b[i].at, N, ncclInt32, ncclMax, twin[i], mem_null));
    OK(t->first + i, ncclAllReduce(other[i].at, other[i].at, 1, ncclInt32, ncclMax, twin[i], s[i][0]));
  }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    finish(t, i, s, &b[i]);
    TRUE(t->first + i, all(&b[i], 0, N, t->nranks));
    buf_free(&b[i], t->first + i);
    buf_free(&other[i], t->first + i);
  }
  team_destroy(t, twin);
}

void suite_streams(struct team *t) {
  cudaStream_t s[CONF_MAX_RANKS][2];
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 2; k++)
      if (mem_rank(t->first + i), !OK(t->first + i, mem_stream_create(&s[i][k]))) return;
  chain(t, s);
  group_over_streams(t, s);
  crossed(t, s);
  caller_after_stream(t, s);
  asynchronous(t, s);
  destroy_with_work(t);
  misuse(t);
  coll_alive(t, t->comm);
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 2; k++) OK(t->first + i, mem_stream_destroy(s[i][k]));
}
