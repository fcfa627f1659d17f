/* streams.c: host streams: order on one stream, issue order of one communicator over two streams, groups over
 * several streams, query, errors, and destroying with work left. */
#include "suites.h"

/* Each operation's input is the output of the one before, alternating between two streams: only in issue order is
 * the end result n^STEPS (modulo 2^32). */
static void chain(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 513, STEPS = 24 };
  uint32_t *buf[CONF_MAX_RANKS];
  uint32_t want = 1;
  for (int i = 0; i < t->nlocal; i++) {
    buf[i] = malloc(sizeof(uint32_t) * 2 * N);
    for (int j = 0; j < N; j++) buf[i][j] = 1;
  }
  for (int k = 0; k < STEPS; k++) {
    want *= (uint32_t)t->nranks;
    EACH(t, "chained ncclAllReduce",
         ncclAllReduce(buf[i] + (k % 2) * N, buf[i] + ((k + 1) % 2) * N, N, ncclUint32, ncclSum, t->comm[i], s[i][k % 3 == 0]));
  }
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    OK(r, gcclStreamSynchronize(s[i][0]));
    OK(r, gcclStreamSynchronize(s[i][1]));
    OK(r, gcclStreamQuery(s[i][0]));
    OK(r, gcclStreamQuery(s[i][1]));
    for (int j = 0; j < N; j++)
      if (buf[i][j] != want) {
        conf_fail(r, "%d chained all-reduces on two streams of one communicator: index %d: want %u, got %u", STEPS, j, want, buf[i][j]);
        break;
      }
    free(buf[i]);
  }
}

/* Work on a stream does not hold up the caller: rank 0 comes late on purpose, the others query meanwhile. */
static void asynchronous(struct team *t, cudaStream_t (*s)[2]) {
  int64_t in[CONF_MAX_RANKS], out[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    in[i] = t->first + i;
    out[i] = -1;
  }
  int64_t want = (int64_t)t->nranks * (t->nranks - 1) / 2;
  if (t->nlocal == 1 && t->nranks > 1) {
    if (t->first == 0) conf_barrier(t); /* the others have called and looked */
    OK(t->first, ncclAllReduce(&in[0], &out[0], 1, ncclInt64, ncclSum, t->comm[0], s[0][0]));
    if (t->first != 0) {
      RC(t->first, ncclInProgress, gcclStreamQuery(s[0][0]));
      conf_barrier(t);
    }
  } else {
    EACH(t, "ncclAllReduce on streams", ncclAllReduce(&in[i], &out[i], 1, ncclInt64, ncclSum, t->comm[i], s[i][0]));
  }
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, gcclStreamSynchronize(s[i][0]));
    TRUE(t->first + i, out[i] == want);
  }
}

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
  int32_t x = 1, y = 2;
  RC(r, ncclInvalidArgument, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, t->comm[0], gone));
  TRUE(r, y == 2);
}

/* Destroying a stream finishes what was enqueued. */
static void destroy_with_work(struct team *t) {
  enum { N = 70001 };
  float *buf[CONF_MAX_RANKS];
  cudaStream_t s[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    buf[i] = malloc(sizeof(float) * N);
    for (int j = 0; j < N; j++) buf[i][j] = 2;
    OK(t->first + i, gcclStreamCreate(&s[i]));
  }
  for (int k = 0; k < 3; k++) EACH(t, "ncclAllReduce", ncclAllReduce(buf[i], buf[i], N, ncclFloat32, ncclMax, t->comm[i], s[i]));
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, gcclStreamDestroy(s[i]));
    TRUE(t->first + i, buf[i][0] == 2 && buf[i][N - 1] == 2);
  }
  coll_alive(t, t->comm);
  for (int i = 0; i < t->nlocal; i++) free(buf[i]);
}

/* One group with operations on two streams and on no stream. */
static void group_over_streams(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 100 };
  int32_t buf[CONF_MAX_RANKS][3][N];
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 3; k++) {
      for (int j = 0; j < N; j++) buf[i][k][j] = k + 1;
      OK(t->first + i, ncclAllReduce(buf[i][k], buf[i][k], N, ncclInt32, ncclSum, t->comm[i], k < 2 ? s[i][k] : NULL));
    }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, gcclStreamSynchronize(s[i][0]));
    OK(t->first + i, gcclStreamSynchronize(s[i][1]));
    for (int k = 0; k < 3; k++) TRUE(t->first + i, buf[i][k][0] == (k + 1) * t->nranks && buf[i][k][N - 1] == (k + 1) * t->nranks);
  }
}

/* Two communicators on the same two streams in opposite order, in one group: neither may wait behind the other. */
static void crossed(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 50, ROUNDS = 10 };
  ncclComm_t twin[CONF_MAX_RANKS];
  int32_t buf[CONF_MAX_RANKS][4][N];
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &twin[i], NULL));
  for (int k = 0; k < ROUNDS; k++) {
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++)
      for (int m = 0; m < 4; m++) { /* comm on 0 and 1, its twin on 1 and 0 */
        for (int j = 0; j < N; j++) buf[i][m][j] = m + k;
        OK(t->first + i, ncclAllReduce(buf[i][m], buf[i][m], N, ncclInt32, ncclSum, m < 2 ? t->comm[i] : twin[i], s[i][m == 1 || m == 2]));
      }
    OK(t->first, ncclGroupEnd());
    for (int i = 0; i < t->nlocal; i++) {
      OK(t->first + i, gcclStreamSynchronize(s[i][0]));
      OK(t->first + i, gcclStreamSynchronize(s[i][1]));
      for (int m = 0; m < 4; m++) TRUE(t->first + i, buf[i][m][0] == (m + k) * t->nranks && buf[i][m][N - 1] == (m + k) * t->nranks);
    }
  }
  team_destroy(t, twin);
}

/* The caller's own part of a group goes after the work that is on the group's streams already. */
static void caller_after_stream(struct team *t, cudaStream_t (*s)[2]) {
  enum { N = 200000 };
  ncclComm_t twin[CONF_MAX_RANKS];
  int32_t *buf[CONF_MAX_RANKS];
  int32_t other[CONF_MAX_RANKS];
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &twin[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    buf[i] = malloc(sizeof(int32_t) * N);
    for (int j = 0; j < N; j++) buf[i][j] = 1;
  }
  EACH(t, "ncclAllReduce", ncclAllReduce(buf[i], buf[i], N, ncclInt32, ncclSum, t->comm[i], s[i][0]));
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) { /* reads what the other communicator writes on the stream */
    OK(t->first + i, ncclAllReduce(buf[i], buf[i], N, ncclInt32, ncclMax, twin[i], NULL));
    OK(t->first + i, ncclAllReduce(&t->first, &other[i], 1, ncclInt32, ncclMax, twin[i], s[i][0]));
  }
  OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    TRUE(t->first + i, buf[i][0] == t->nranks && buf[i][N - 1] == t->nranks);
    OK(t->first + i, gcclStreamSynchronize(s[i][0]));
    free(buf[i]);
  }
  team_destroy(t, twin);
}

void suite_streams(struct team *t) {
  cudaStream_t s[CONF_MAX_RANKS][2];
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 2; k++)
      if (!OK(t->first + i, gcclStreamCreate(&s[i][k]))) return;
  chain(t, s);
  group_over_streams(t, s);
  crossed(t, s);
  caller_after_stream(t, s);
  asynchronous(t, s);
  destroy_with_work(t);
  misuse(t);
  coll_alive(t, t->comm);
  for (int i = 0; i < t->nlocal; i++)
    for (int k = 0; k < 2; k++) OK(t->first + i, gcclStreamDestroy(s[i][k]));
}
