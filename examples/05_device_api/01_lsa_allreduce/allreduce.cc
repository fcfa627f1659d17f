/* An all-reduce inside a kernel: every rank loads its share of the elements from all ranks, adds them up, and stores the sums to all ranks.
 *
 * The kernel is the same for a GPU. Here four threads of one process are the ranks, and each runs it on the CPU. */
#include <gccl_device/cpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <thread>
#include <vector>

enum { RANKS = 4, CTAS = 4, THREADS = 64, COUNT = 1 << 16 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* ---- The kernel ---- */

__global__ void allReduce(ncclWindow_t in, ncclWindow_t out, size_t count, ncclDevComm comm) {
  /* One barrier for each CTA: its partners are the CTAs with the same number on the other ranks. */
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);

  /* Nobody reads before all ranks are here, which means that their input is complete. */
  barrier.sync(ncclCoopCta(), cuda::memory_order_acquire);

  size_t thread = threadIdx.x + (size_t)blockDim.x * (blockIdx.x + gridDim.x * comm.rank);
  size_t threads = (size_t)blockDim.x * gridDim.x * comm.nRanks;
  for (size_t i = thread; i < count; i += threads) {
    float sum = 0;
    for (int peer = 0; peer < comm.lsaSize; peer++) sum += static_cast<float *>(ncclGetLsaPointer(in, 0, peer))[i];
    for (int peer = 0; peer < comm.lsaSize; peer++) static_cast<float *>(ncclGetLsaPointer(out, 0, peer))[i] = sum;
  }

  /* Nobody leaves before all ranks have stored what this one needs. */
  barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}

/* ---- The host ---- */

static void run(ncclUniqueId id, int rank) {
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));

  /* Windows: memory that the kernels of all ranks reach. */
  float *in, *out;
  ncclWindow_t inWindow, outWindow;
  size_t bytes = COUNT * sizeof(float);
  CHECK(ncclMemAlloc((void **)&in, bytes));
  CHECK(ncclMemAlloc((void **)&out, bytes));
  CHECK(ncclCommWindowRegister(comm, in, bytes, &inWindow, NCCL_WIN_COLL_SYMMETRIC));
  CHECK(ncclCommWindowRegister(comm, out, bytes, &outWindow, NCCL_WIN_COLL_SYMMETRIC));
  for (int i = 0; i < COUNT; i++) in[i] = (float)(rank + i % 100);

  /* A device communicator with what the kernel needs: a barrier for each CTA. */
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  requirements.lsaBarrierCount = CTAS;
  ncclDevComm dev;
  CHECK(ncclDevCommCreate(comm, &requirements, &dev));

  gccl::cpu::Launch launch(CTAS, THREADS); /* on a GPU: allReduce<<<CTAS, THREADS, 0, stream>>>(…) */
  ncclResult_t rc = launch.run(allReduce, inWindow, outWindow, (size_t)COUNT, dev);
  if (rc != ncclSuccess) {
    fprintf(stderr, "rank %d: the kernel: %s\n", rank, launch.error());
    exit(1);
  }
  for (int i = 0; i < COUNT; i++) {
    float want = (float)(RANKS * (i % 100) + RANKS * (RANKS - 1) / 2);
    if (out[i] == want) continue;
    fprintf(stderr, "rank %d has %g at %d, expected %g\n", rank, out[i], i, want);
    exit(1);
  }
  if (rank == 0) printf("all-reduce of %d floats over %d ranks in a kernel: ok\n", COUNT, RANKS);

  CHECK(ncclDevCommDestroy(comm, &dev));
  CHECK(ncclCommWindowDeregister(comm, inWindow));
  CHECK(ncclCommWindowDeregister(comm, outWindow));
  CHECK(ncclMemFree(in));
  CHECK(ncclMemFree(out));
  CHECK(ncclCommDestroy(comm));
}

int main() {
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < RANKS; rank++) ranks.emplace_back(run, id, rank);
  for (std::thread &t : ranks) t.join();
}
