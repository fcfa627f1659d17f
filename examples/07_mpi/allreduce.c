/* Ranks that MPI starts: MPI carries the id, this library the sum, and MPI's own sum is what it is compared with. */
#include <mpi.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100003 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                            \
    }                                                                                          \
  } while (0)

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  ncclUniqueId id;
  if (rank == 0) CHECK(ncclGetUniqueId(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, ranks, id, rank));

  float *mine = malloc(COUNT * sizeof *mine), *sum = malloc(COUNT * sizeof *sum), *theirs = malloc(COUNT * sizeof *theirs);
  if (!mine || !sum || !theirs) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < COUNT; i++) mine[i] = (float)((rank + 1) * (i % 101)); /* whole numbers: sums are exact in any order */
  CHECK(ncclAllReduce(mine, sum, COUNT, ncclFloat, ncclSum, comm, NULL));
  MPI_Allreduce(mine, theirs, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++)
    if (sum[i] != theirs[i]) {
      fprintf(stderr, "rank %d: element %d is %g, MPI has %g\n", rank, i, sum[i], theirs[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  CHECK(ncclCommDestroy(comm));
  if (rank == 0) printf("%d ranks: equal to MPI_Allreduce\n", ranks);
  MPI_Finalize();
  return 0;
}
