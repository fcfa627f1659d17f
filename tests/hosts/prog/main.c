/* main.c: one rank of a group that works until it is told to stop: checked collectives, and a child now and then.
 * Arguments: rank, number of ranks, a file that ends the work when rank 0 sees it. The id is that of NCCL_COMM_ID. */
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 5000, ROUNDS_A_CHILD = 10 };

static int rank, nranks;

static void must(ncclResult_t rc, const char *what) {
  if (rc == ncclSuccess) return;
  printf("rank %d: %s: %s: %s\n", rank, what, ncclGetErrorString(rc), ncclGetLastError(NULL));
  exit(1);
}

/* A sum whose addends depend on the round and the element; last: the sum of what the ranks say of the end. */
static int sum(ncclComm_t comm, int first, int step, int n, int round, int stop) {
  static int32_t send[COUNT + 1], recv[COUNT + 1];
  for (int i = 0; i < COUNT; i++) send[i] = (rank + 1) * (i % 97) + round;
  send[COUNT] = stop;
  must(ncclAllReduce(send, recv, COUNT + 1, ncclInt32, ncclSum, comm, NULL), "ncclAllReduce");
  int ranks = 0;
  for (int k = 0; k < n; k++) ranks += first + k * step + 1;
  for (int i = 0; i < COUNT; i++) {
    int32_t want = ranks * (i % 97) + n * round;
    if (recv[i] == want) continue;
    printf("rank %d: round %d, element %d is %d instead of %d\n", rank, round, i, recv[i], want);
    exit(1);
  }
  return recv[COUNT];
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  rank = atoi(argv[1]), nranks = atoi(argv[2]);
  ncclUniqueId id;
  ncclComm_t comm, child;
  must(ncclGetUniqueId(&id), "ncclGetUniqueId");
  must(ncclCommInitRank(&comm, nranks, id, rank), "ncclCommInitRank");
  for (int round = 0, stop = 0; !stop; round++) {
    stop = sum(comm, 0, 1, nranks, round, rank == 0 && access(argv[3], F_OK) == 0);
    if (round % ROUNDS_A_CHILD == 0) { /* its ranks are on both hosts */
      must(ncclCommSplit(comm, rank % 2, rank, &child, NULL), "ncclCommSplit");
      sum(child, rank % 2, 2, nranks / 2, round, 0);
      must(ncclCommDestroy(child), "ncclCommDestroy of the child");
    }
    printf("round %d\n", round);
    fflush(stdout);
  }
  printf("leaving\n");
  fflush(stdout);
  must(ncclCommFinalize(comm), "ncclCommFinalize");
  must(ncclCommDestroy(comm), "ncclCommDestroy");
  printf("done\n");
  return 0;
}
