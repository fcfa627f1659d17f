/* An all-to-all inside a kernel, twice: large blocks through windows, and small ones through an LL session, which needs no barrier because
 * every element carries its own flag.
 *
 * Three processes are the ranks: windows are shared memory between them. */
#include <gccl_device/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, CTAS = 2, THREADS = 32, BLOCK = 5000 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernels ---- */

/* Block p of send goes to rank p, where it becomes block rank of recv: every rank stores, nobody loads remote memory. */
__global__ void allToAll(const int *send, ncclWindow_t recv, size_t block, ncclDevComm comm) {
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> barrier(cta, comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(cta, cuda::memory_order_relaxed); /* the peers' windows are free to be written */
  for (int step = 0; step < comm.lsaSize; step++) {
    int peer = (comm.lsaRank + step) % comm.lsaSize; /* every rank begins with another one */
    int *to = static_cast<int *>(ncclGetLsaPointer(recv, comm.lsaRank * block * sizeof(int), peer));
    for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < block; i += blockDim.x * gridDim.x) to[i] = send[peer * block + i];
  }
  barrier.sync(cta, cuda::memory_order_acq_rel);
}

/* One element for each peer: send, receive, and the next epoch. */
__global__ void allToAllSmall(const double *send, double *recv, ncclLLA2AHandle handle, ncclDevComm comm) {
  ncclCoopCta cta;
  ncclLLA2ASession<ncclCoopCta> a2a(cta, comm, ncclTeamLsa(comm), handle, blockIdx.x, comm.lsaSize);
  for (int peer = cta.thread_rank(); peer < comm.lsaSize; peer += cta.size()) a2a.send(peer, comm.lsaRank, send[peer]);
  for (int peer = cta.thread_rank(); peer < comm.lsaSize; peer += cta.size()) recv[peer] = a2a.recv<double>(peer);
  a2a.endEpoch(cta);
}

/* ---- The host ---- */

template <typename... P, typename... A> static void launch(int rank, unsigned ctas, void (*kernel)(P...), A... args) {
  gccl::cpu::Launch l(ctas, THREADS);
  if (l.run(kernel, args...) == ncclSuccess) return;
  fprintf(stderr, "rank %d: the kernel: %s\n", rank, l.error());
  exit(1);
}

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  int *recv;
  ncclWindow_t window;
  size_t bytes = RANKS * BLOCK * sizeof(int);
  CHECK(ncclMemAlloc((void **)&recv, bytes));
  CHECK(ncclCommWindowRegister(comm, recv, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
  static int send[RANKS * BLOCK]; /* only this rank loads it: no window is needed */
  for (int p = 0; p < RANKS; p++)
    for (int i = 0; i < BLOCK; i++) send[p * BLOCK + i] = 100000 * rank + 10000 * p + i;

  /* The LL session needs a buffer on every rank: one block of RANKS elements of 8 bytes. */
  ncclLLA2AHandle handle;
  ncclDevResourceRequirements buffer;
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  CHECK(ncclLLA2ACreateRequirement(1, ncclLLA2ACalcSlots(RANKS, sizeof(double)), &handle, &buffer));
  requirements.resourceRequirementsList = &buffer;
  requirements.lsaBarrierCount = CTAS;
  ncclDevComm dev;
  CHECK(ncclDevCommCreate(comm, &requirements, &dev));

  launch(rank, CTAS, allToAll, (const int *)send, window, (size_t)BLOCK, dev);
  double small[RANKS], got[RANKS];
  for (int p = 0; p < RANKS; p++) small[p] = rank + p / 10.0;
  launch(rank, 1, allToAllSmall, (const double *)small, (double *)got, handle, dev);

  for (int p = 0; p < RANKS; p++) {
    int bad = got[p] != p + rank / 10.0;
    for (int i = 0; i < BLOCK; i++) bad += recv[p * BLOCK + i] != 100000 * p + 10000 * rank + i;
    if (!bad) continue;
    fprintf(stderr, "rank %d: %d elements from rank %d are wrong\n", rank, bad, p);
    exit(1);
  }
  if (rank == 0) printf("all-to-all of %d ints and of one double a pair over %d processes in kernels: ok\n", BLOCK, RANKS);
  CHECK(ncclDevCommDestroy(comm, &dev));
  CHECK(ncclCommWindowDeregister(comm, window));
  CHECK(ncclMemFree(recv));
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
