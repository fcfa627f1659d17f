/* Messages between threads: a ring shift, and an exchange of everybody with everybody.
 *
 * A send waits until its message was taken. Calls that need each other therefore stand in one group, which runs them side
 * by side. */
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4, COUNT = 5000 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

static ncclUniqueId id;

/* What one rank sends to another. */
static int32_t word(int from, int to, int i) { return from * 1000000 + to * 10000 + i; }

static void fill(int32_t *x, int from, int to) {
  for (int i = 0; i < COUNT; i++) x[i] = word(from, to, i);
}

static void verify(const int32_t *x, int from, int to, const char *what) {
  for (int i = 0; i < COUNT; i++)
    if (x[i] != word(from, to, i)) {
      fprintf(stderr, "%s: rank %d got %d from rank %d as element %d, expected %d\n", what, to, x[i], from, i, word(from, to, i));
      exit(1);
    }
}

static void *rank_main(void *arg) {
  int me = *(int *)arg, right = (me + 1) % RANKS, left = (me + RANKS - 1) % RANKS;
  static int32_t out[RANKS][RANKS][COUNT], in[RANKS][RANKS][COUNT];
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, me));

  fill(out[me][right], me, right);
  CHECK(ncclGroupStart());
  CHECK(ncclSend(out[me][right], COUNT, ncclInt32, right, comm, NULL));
  CHECK(ncclRecv(in[me][left], COUNT, ncclInt32, left, comm, NULL));
  CHECK(ncclGroupEnd());
  verify(in[me][left], left, me, "ring");

  CHECK(ncclGroupStart());
  for (int q = 0; q < RANKS; q++) { /* a rank may send to itself in a group */
    fill(out[me][q], me, q);
    CHECK(ncclSend(out[me][q], COUNT, ncclInt32, q, comm, NULL));
    CHECK(ncclRecv(in[me][q], COUNT, ncclInt32, q, comm, NULL));
  }
  CHECK(ncclGroupEnd());
  for (int q = 0; q < RANKS; q++) verify(in[me][q], q, me, "exchange");

  CHECK(ncclCommDestroy(comm));
  return NULL;
}

int main(void) {
  pthread_t t[RANKS];
  int rank[RANKS];
  CHECK(ncclGetUniqueId(&id));
  for (int r = 0; r < RANKS; r++) {
    rank[r] = r;
    if (pthread_create(&t[r], NULL, rank_main, &rank[r]) != 0) return 1;
  }
  for (int r = 0; r < RANKS; r++) pthread_join(t[r], NULL);
  printf("ring: ok\nexchange: ok\n");
  return 0;
}
