/* A ring exchange with signals: every rank puts a block into its right neighbour's window, and the signal that comes with it says that the
 * block is there. Nobody else is waited for, and the CPU takes no part once the kernel runs.
 *
 * Four processes are the ranks. The kernel does not know what carries its puts: see README.md. */
#include <gccl_device/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, THREADS = 64, COUNT = 4096, ROUNDS = RANKS - 1 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernel ---- */

/* The window holds RANKS blocks of COUNT ints: first this rank's own, then what comes from the left, round by round. After RANKS - 1 rounds
 * every rank has the blocks of all: an all-gather. */
__global__ void ring(ncclWindow_t w, ncclDevComm comm) {
  ncclCoopCta cta;
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int right = (comm.rank + 1) % comm.nRanks;
  const size_t block = COUNT * sizeof(int);
  for (int round = 0; round < ROUNDS; round++) {
    /* What came last goes on. The signal is weak: it speaks of its own put, and that is all that the neighbour waits for. */
    gin.put(world, right, w, (round + 1) * block, w, round * block, block, ncclGin_WeakSignalInc{0}, ncclGin_None{}, cta);
    gin.waitSignal(cta, 0, (uint64_t)round + 1);
  }
  gin.flush(cta); /* the sources may be used again */
  /* The next launch counts from zero again. All signals of this one have come: this rank has waited for each. */
  if (threadIdx.x == 0) gin.resetSignal(0);
}

/* ---- The host ---- */

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  int *mem;
  ncclWindow_t window;
  size_t bytes = RANKS * COUNT * sizeof(int);
  CHECK(ncclMemAlloc((void **)&mem, bytes));
  CHECK(ncclCommWindowRegister(comm, mem, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  requirements.ginSignalCount = 1;
  ncclDevComm dev;
  CHECK(ncclDevCommCreate(comm, &requirements, &dev));

  int bad = 0;
  for (int launch = 0; launch < 3; launch++) {
    for (int i = 0; i < COUNT; i++) mem[i] = 1000000 * launch + 100000 * rank + i;
    int one = 1, all = 0;
    CHECK(ncclAllReduce(&one, &all, 1, ncclInt, ncclSum, comm, NULL)); /* all have read what the last launch brought */
    gccl::cpu::Launch l(1, THREADS);
    if (l.run(ring, window, dev) != ncclSuccess) {
      fprintf(stderr, "rank %d: the kernel: %s\n", rank, l.error());
      exit(1);
    }
    for (int r = 1; r < RANKS; r++)
      for (int i = 0; i < COUNT; i++) bad += mem[r * COUNT + i] != 1000000 * launch + 100000 * ((rank - r + RANKS) % RANKS) + i;
  }
  if (bad) {
    fprintf(stderr, "rank %d: %d elements are wrong\n", rank, bad);
    exit(1);
  }
  if (rank == 0) printf("ring of %d processes, %d rounds of %d ints in a kernel, three launches: ok\n", RANKS, ROUNDS, COUNT);
  CHECK(ncclDevCommDestroy(comm, &dev));
  CHECK(ncclCommWindowDeregister(comm, window));
  CHECK(ncclMemFree(mem));
  CHECK(ncclCommDestroy(comm));
}

int main() {
  int ends[2];
  if (pipe(ends)) return 1;
  for (int rank = 0; rank < RANKS; rank++) {
    if (fork()) continue;
    ncclUniqueId id;
    if (rank == 0) {
      CHECK(ncclGetUniqueId(&id));
      for (int i = 1; i < RANKS; i++)
        if (write(ends[1], &id, sizeof id) != sizeof id) exit(1);
    } else if (read(ends[0], &id, sizeof id) != sizeof id) {
      exit(1);
    }
    run(id, rank);
    exit(0);
  }
  int failed = 0;
  for (int rank = 0; rank < RANKS; rank++) {
    int status = 1;
    wait(&status);
    failed |= status != 0;
  }
  return failed;
}
