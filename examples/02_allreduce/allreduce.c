/* A sum over four processes: out of place, in place, and asynchronous on a host stream. Ordinary memory will do. */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 100003 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* Small whole numbers, so that sums are exact in any order. */
static float input(int rank, int i) { return (float)((rank + 1) * (i % 101)); }

static void fill(float *x, int rank) {
  for (int i = 0; i < COUNT; i++) x[i] = input(rank, i);
}

static void verify(const float *x, int rank, const char *what) {
  for (int i = 0; i < COUNT; i++) {
    float want = 0;
    for (int r = 0; r < RANKS; r++) want += input(r, i);
    if (x[i] != want) {
      fprintf(stderr, "%s: rank %d: element %d is %g, expected %g\n", what, rank, i, x[i], want);
      exit(1);
    }
  }
  if (rank == 0) printf("%s: ok\n", what);
}

static void run(int rank, const int ends[2]) {
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    for (int i = 1; i < RANKS; i++)
      if (write(ends[1], &id, sizeof id) != sizeof id) exit(1);
  } else if (read(ends[0], &id, sizeof id) != sizeof id) {
    exit(1);
  }
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  float *send = malloc(COUNT * sizeof *send), *recv = malloc(COUNT * sizeof *recv);
  if (!send || !recv) exit(1);

  /* On the NULL stream the result is there when the call returns. */
  fill(send, rank);
  CHECK(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, NULL));
  verify(recv, rank, "out of place");

  CHECK(ncclAllReduce(send, send, COUNT, ncclFloat, ncclSum, comm, NULL));
  verify(send, rank, "in place");

  /* A host stream is a worker thread: the call returns at once, and other work can go on until the stream is waited for. */
  cudaStream_t stream;
  CHECK(gcclStreamCreate(&stream));
  fill(send, rank);
  CHECK(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
  CHECK(gcclStreamSynchronize(stream));
  verify(recv, rank, "on a stream");
  CHECK(gcclStreamDestroy(stream));

  free(send);
  free(recv);
  CHECK(ncclCommDestroy(comm));
  exit(0);
}

int main(void) {
  int ends[2], failed = 0;
  if (pipe(ends) != 0) return 1;
  for (int r = 0; r < RANKS; r++)
    if (fork() == 0) run(r, ends);
  for (int r = 0; r < RANKS; r++) {
    int status;
    wait(&status);
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return failed;
}
