/* gin_barrier_funcs.h: code of gin_barrier.h.
 *
 * A barrier of a team of r ranks has r signals: rank i raises signal first + i at every rank, and waits until the signal of every rank
 * here has gone one past its shadow. The shadows remember passages between sessions and kernels. */
#ifndef GCCL_DEVICE_IMPL_GIN_BARRIER_FUNCS_H
#define GCCL_DEVICE_IMPL_GIN_BARRIER_FUNCS_H

#include "../gin_barrier.h"
#include "gin_funcs.h"

#if GCCL_DEVICE_KERNELS

template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeam team, ncclGinBarrierHandle handle,
                                                                      uint32_t index)
    : coop_(coop), gin_(gin), team_(team), first_(handle.signal0 + index * (uint32_t)team.nRanks), all_(false) {
#ifdef GCCL_DEVICE_DEBUG
  if (first_ + (uint32_t)team.nRanks > (uint32_t)gin.comm.ginSignalCount)
    gccl::device::fail(__FILE__, __LINE__, "the GIN barrier's index is past the barriers that were asked for", nullptr, index, gin.comm.rank);
#endif
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeamTagRail, uint32_t index)
    : ncclGinBarrierSession(coop, gin, ncclTeamRail(gin.comm), gin.comm.railGinBarrier, index) {}
template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeamTagWorld, uint32_t index)
    : ncclGinBarrierSession(coop, gin, ncclTeamWorld(gin.comm), gin.comm.worldGinBarrier, index) {}
template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeam team,
                                                                      ncclGinBarrierHandle handle, uint32_t index)
    : ncclGinBarrierSession(coop, ncclGin(all.comm, 0), team, handle, index) {
  all_ = true;
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeamTagRail, uint32_t index)
    : ncclGinBarrierSession(coop, all, ncclTeamRail(all.comm), all.comm.railGinBarrier, index) {}
template <typename Coop>
NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop>::ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeamTagWorld, uint32_t index)
    : ncclGinBarrierSession(coop, all, ncclTeamWorld(all.comm), all.comm.worldGinBarrier, index) {}

template <typename Coop> NCCL_DEVICE_INLINE ncclGin ncclGinBarrierSession<Coop>::context(int i) const {
  return all_ ? ncclGin(gin_.comm, i, gin_.resourceSharingMode) : gin_;
}

template <typename Coop>
NCCL_DEVICE_INLINE ncclResult_t ncclGinBarrierSession<Coop>::pass(cuda::memory_order order, ncclGinFenceLevel fence, uint64_t cycles) {
  using namespace gccl::device;
  uint64_t start = cycles ? (uint64_t)clock64() : 0;
  ncclResult_t result = ncclSuccess;
  coop_.sync();
  /* Signals of one context say nothing of puts of another: with all contexts the ranks meet in each. Puts of this rank to itself are
   * settled by its own signal. Ranks begin with their right neighbour, so that not all fall upon rank 0. A thread raises all of its signals
   * before it waits for any: a thread may have to do with several ranks, and they with each other. */
  int contexts = all_ ? (int)gin_.comm.ginContextCount : 1;
  int peers = fence & ncclGinFenceLevel::Put ? team_.nRanks : team_.nRanks - 1;
  for (int i = coop_.thread_rank(); i < contexts * peers; i += coop_.size())
    context(i / peers).signal(team_, (team_.rank + 1 + i % peers) % team_.nRanks, ncclGin_StrongSignalInc{first_ + (ncclGinSignal_t)team_.rank},
                              ncclCoopThread{}, ncclGin_None{}, cuda::thread_scope_thread, cuda::thread_scope_system);
  for (int i = coop_.thread_rank(); i < contexts * peers && result == ncclSuccess; i += coop_.size()) {
    ncclGin gin = context(i / peers);
    int peer = (team_.rank + 1 + i % peers) % team_.nRanks;
    ncclGinSignal_t from = first_ + (ncclGinSignal_t)peer;
    uint64_t want = ++*gin.getSignalShadowPtr(from), is, spent = cycles ? (uint64_t)clock64() - start : 0;
    Wait w(gin.comm.abortFlag, "GIN barrier, signal", from, ncclTeamRankToWorld(gin.comm, team_, peer),
           cycles == 0 ? 0 : spent < cycles ? cycles - spent : 1);
    uint64_t since = load(signalOffset(gin, from), cuda::memory_order_relaxed);
    while (!reached(is = signalWords(gin, from, acquireOf(order)) - since, want, 64))
      if (w.over(want, is)) {
        result = w.expired ? ncclTimeout : result;
        break;
      }
    signalAcquired(gin, acquireOf(order));
  }
  coop_.sync();
  if (fence & ncclGinFenceLevel::Get)
    for (int c = 0; c < contexts; c++) context(c).flush(coop_, order);
  return result;
}

template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrierSession<Coop>::sync(Coop, cuda::memory_order order, ncclGinFenceLevel fence) {
  (void)pass(order, fence, 0);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclResult_t ncclGinBarrierSession<Coop>::sync(Coop, cuda::memory_order order, ncclGinFenceLevel fence,
                                                                  uint64_t timeoutCycles) {
  return pass(order, fence, timeoutCycles ? timeoutCycles : 1);
}

#endif
#endif
