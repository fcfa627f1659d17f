/* An all-to-all over GIN: every rank puts a block into each rank's window. Weak signals count what has arrived; a barrier before it says
 * that the windows may be written.
 *
 * Three processes are the ranks. The kernel does not know what carries its puts: see README.md. */
#include <gccl_device/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, CTAS = 2, THREADS = 32, BLOCK = 6000 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernel ---- */

/* Block p of send goes to rank p, where it becomes block rank of recv. Each CTA moves its part of every block, in a context of its own, so that
 * the CTAs share no queue; signal 0 of a context counts the parts that have come through it. */
__global__ void allToAll(ncclWindow_t send, ncclWindow_t recv, size_t block, ncclDevComm comm) {
  ncclCoopCta cta;
  ncclGin gin(comm, (int)(blockIdx.x % comm.ginContextCount));
  ncclTeam world = ncclTeamWorld(comm);
  /* All ranks have come to this launch: their windows may be written. Nothing has to be settled, so no fence. */
  ncclGinBarrierSession<ncclCoopCta> barrier(cta, gin, ncclTeamTagWorld(), blockIdx.x);
  barrier.sync(cta, cuda::memory_order_relaxed, ncclGinFenceLevel::None);
  uint64_t before = gin.readSignal(blockIdx.x);
  barrier.sync(cta, cuda::memory_order_relaxed, ncclGinFenceLevel::None); /* and all have read what their signals count from */
  size_t part = block / gridDim.x, first = part * blockIdx.x;
  for (int step = 0; step < comm.nRanks; step++) {
    int peer = (comm.rank + step) % comm.nRanks; /* every rank begins with another one */
    gin.put(world, peer, recv, (comm.rank * block + first) * sizeof(int), send, (peer * block + first) * sizeof(int), part * sizeof(int),
            ncclGin_WeakSignalInc{blockIdx.x}, ncclGin_None{}, cta);
  }
  gin.waitSignal(cta, blockIdx.x, before + (uint64_t)comm.nRanks);
  gin.flush(cta);
}

/* ---- The host ---- */

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  int *mem;
  ncclWindow_t window, sendWindow;
  size_t bytes = RANKS * BLOCK * sizeof(int);
  CHECK(ncclMemAlloc((void **)&mem, bytes));
  CHECK(ncclCommWindowRegister(comm, mem, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
  int *send; /* a network reads it: it is a window too */
  CHECK(ncclMemAlloc((void **)&send, bytes));
  CHECK(ncclCommWindowRegister(comm, send, bytes, &sendWindow, NCCL_WIN_COLL_SYMMETRIC));
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  requirements.ginContextCount = CTAS;
  requirements.ginSignalCount = CTAS;
  requirements.worldGinBarrierCount = CTAS;
  ncclDevComm dev;
  CHECK(ncclDevCommCreate(comm, &requirements, &dev));

  int bad = 0;
  for (int launch = 0; launch < 3; launch++) {
    for (int p = 0; p < RANKS; p++)
      for (int i = 0; i < BLOCK; i++) send[p * BLOCK + i] = 1000000 * launch + 100000 * rank + 10000 * p + i;
    gccl::cpu::Launch l(CTAS, THREADS);
    if (l.run(allToAll, sendWindow, window, (size_t)BLOCK, dev) != ncclSuccess) {
      fprintf(stderr, "rank %d: the kernel: %s\n", rank, l.error());
      exit(1);
    }
    for (int p = 0; p < RANKS; p++)
      for (int i = 0; i < BLOCK; i++) bad += mem[p * BLOCK + i] != 1000000 * launch + 100000 * p + 10000 * rank + i;
  }
  if (bad) {
    fprintf(stderr, "rank %d: %d elements are wrong\n", rank, bad);
    exit(1);
  }
  if (rank == 0) printf("all-to-all of %d ints a pair over %d processes by GIN, three launches: ok\n", BLOCK, RANKS);
  CHECK(ncclCommWindowDeregister(comm, sendWindow));
  CHECK(ncclMemFree(send));
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
