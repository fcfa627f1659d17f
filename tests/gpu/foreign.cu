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

/* GIN by its proxy around the ring: numbered payload and a value, each with a signal behind it, and credits back. */
extern "C" __global__ void foreign_gin(ncclDevComm comm, ncclWindow_t w, int rounds, int *bad) {
  constexpr int slots = 8, words = 40, slot = words * 8, in = slots * slot, values = 2 * in;
  ncclCoopCta cta;
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks, prev = (comm.rank + comm.nRanks - 1) % comm.nRanks;
  uint64_t *mine = (uint64_t *)ncclGetLocalPointer(w, 0), *theirs = (uint64_t *)ncclGetLocalPointer(w, in), *value = (uint64_t *)ncclGetLocalPointer(w, values);
  for (int round = 0; round < rounds; round++) {
    int k = round % slots;
    if (round >= slots) gin.waitSignal(cta, 1, (uint64_t)(round - slots + 1));
    for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x) mine[k * words + i] = (uint64_t)round << 16 | (uint64_t)i;
    gin.put(world, next, w, in + k * slot, w, k * slot, slot, ncclGin_SignalInc{0}, ncclGin_CounterInc{0}, cta);
    gin.putValue(world, next, w, values + 8 * k, (uint64_t)round + 7, ncclGin_SignalInc{2}, cta);
    gin.waitSignal(cta, 0, (uint64_t)round + 1);
    gin.waitSignal(cta, 2, (uint64_t)round + 1);
    for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x)
      if (((volatile uint64_t *)theirs)[k * words + i] != ((uint64_t)round << 16 | (uint64_t)i)) atomicAdd(bad, 1);
    if (threadIdx.x == 0 && ((volatile uint64_t *)value)[k] != (uint64_t)round + 7) atomicAdd(bad, 1);
    cta.sync();
    gin.signal(world, prev, ncclGin_SignalInc{1}, cta);
  }
  gin.waitCounter(cta, 0, (uint64_t)rounds);
  gin.flush(cta);
}
