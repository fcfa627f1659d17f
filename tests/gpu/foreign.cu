/* foreign.cu: kernels for NVIDIA's own nccl_device.h, which this repository does not have: compiled on the GPU machine by run.sh, once for each header
 * that is there (NVIDIA_HEADERS, the one in PyTorch's package), and run by `device --suite foreign` with device communicators of this library. */
#include <nccl_device.h>

extern "C" __global__ void foreign_barriers(ncclDevComm comm, ncclWindow_t w, int rounds, int *bad) {
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> bar(cta, comm, ncclTeamTagLsa(), blockIdx.x);
  int me = (int)threadIdx.x, n = (int)blockDim.x;
  size_t at = 4096 * (size_t)blockIdx.x;
  for (int round = 1; round <= rounds; round++) {
    for (int q = 0; q < comm.lsaSize; q++) ((int *)ncclGetLsaPointer(w, at, q))[comm.lsaRank * n + me] = round * 100 + comm.lsaRank;
    bar.sync(cta, cuda::memory_order_acq_rel);
    for (int q = 0; q < comm.lsaSize; q++)
      if (((volatile int *)ncclGetLocalPointer(w, at))[q * n + (me + 1) % n] != round * 100 + q) atomicAdd(bad, 1);
    bar.sync(cta, cuda::memory_order_acq_rel);
  }
}

extern "C" __global__ void foreign_pointers(ncclDevComm comm, ncclWindow_t w, void *mine, int *bad) {
  if (ncclFindWindow(ncclCoopCta(), comm, (char *)mine + 100) != w) atomicAdd(bad, 1);
  if (ncclGetLocalPointer(w, 0) != ncclGetPeerPointer(w, 0, comm.rank)) atomicAdd(bad, 1);
  if (ncclGetPeerPointer(w, 64, ncclTeamWorld(comm), comm.rank) != (char *)ncclGetLsaPointer(w, 64, comm.lsaRank)) atomicAdd(bad, 1);
}

extern "C" __global__ void foreign_a2a(ncclDevComm comm, ncclLLA2AHandle handle, int epochs, int *bad) {
  ncclCoopCta cta;
  int n = comm.lsaSize, me = comm.lsaRank;
  ncclLLA2ASession<ncclCoopCta> a2a(cta, comm, ncclTeamLsa(comm), handle, blockIdx.x, 2 * n);
  for (int e = 0; e < epochs; e++) {
    if (cta.thread_rank() == 0) a2a.bcast(n + me, 10 * me + e);
    for (int q = cta.thread_rank(); q < n; q += cta.size()) a2a.send(q, me, 1000 * me + 10 * q + e);
    for (int q = cta.thread_rank(); q < n; q += cta.size()) {
      if (a2a.template recv<int>(q) != 1000 * q + 10 * me + e) atomicAdd(bad, 1);
      if (a2a.template recv<int>(n + q) != 10 * q + e) atomicAdd(bad, 1);
    }
    a2a.endEpoch(cta);
  }
}
