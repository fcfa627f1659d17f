/* lsa_barrier_funcs.h: code of lsa_barrier.h.
 *
 * State of n barriers of a team with r ranks, in each rank's resource buffer, 32-bit words:
 *   [0, n) epoch by multicast   [n, 2n) epoch   [2n, 3n) multicast inbox   3n + index·r + from: inbox of rank `from`
 * An inbox has one writer: the rank it is named after. Epochs wrap; comparisons are by distance. */
#ifndef GCCL_DEVICE_IMPL_LSA_BARRIER_FUNCS_H
#define GCCL_DEVICE_IMPL_LSA_BARRIER_FUNCS_H

#include "../lsa_barrier.h"
#include "core_funcs.h"

#if GCCL_DEVICE_KERNELS

template <typename Coop>
NCCL_DEVICE_INLINE ncclLsaBarrierSession<Coop>::ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeam team,
                                                                      ncclLsaBarrierHandle handle, uint32_t index, bool multimem,
                                                                      ncclMultimemHandle mmHandle GCCL_DEVICE_CALLER_DEF)
    : coop_(coop), comm_(comm), team_(team), handle_(handle), index_(index), multimem_(multimem && gccl::device::multicast), mm_(mmHandle),
      epoch_(0) {
#ifdef GCCL_DEVICE_DEBUG
  if (index >= (uint32_t)handle.nBarriers)
    gccl::device::fail(gcclFile, gcclLine, "the LSA barrier's index is past lsaBarrierCount", comm.resourceWindow, index, comm.rank);
  if (multimem && !mmHandle.mcBasePtr)
    gccl::device::fail(gcclFile, gcclLine, "an LSA barrier by multicast without a multicast handle", comm.resourceWindow, index, comm.rank);
#endif
  epoch_ = *stateWord(multimem_ ? 0 : 1);
}

template <typename Coop>
NCCL_DEVICE_INLINE ncclLsaBarrierSession<Coop>::ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeamTagLsa, uint32_t index,
                                                                      bool multimem GCCL_DEVICE_CALLER_DEF)
    : ncclLsaBarrierSession(coop, comm, ncclTeamLsa(comm), comm.lsaBarrier, index, multimem, comm.lsaMultimem GCCL_DEVICE_CALLER_PASS) {}

template <typename Coop> NCCL_DEVICE_INLINE ncclLsaBarrierSession<Coop>::~ncclLsaBarrierSession() {
  if (coop_.thread_rank() == 0) *stateWord(multimem_ ? 0 : 1) = epoch_;
  coop_.sync();
}

template <typename Coop> NCCL_DEVICE_INLINE uint32_t *ncclLsaBarrierSession<Coop>::stateWord(int part) const {
  return static_cast<uint32_t *>(ncclGetResourceBufferLocalPointer(comm_, handle_.bufHandle)) + part * handle_.nBarriers + index_;
}

template <typename Coop> NCCL_DEVICE_INLINE uint32_t *ncclLsaBarrierSession<Coop>::inbox(int owner, int from) const {
  return static_cast<uint32_t *>(ncclGetResourceBufferPeerPointer(comm_, handle_.bufHandle, team_, owner)) + 3 * handle_.nBarriers +
         (int)index_ * team_.nRanks + from;
}

template <typename Coop> NCCL_DEVICE_INLINE void ncclLsaBarrierSession<Coop>::arrive(Coop, cuda::memory_order order) {
  order = gccl::device::releaseOf(order);
  coop_.sync(); /* what all threads wrote comes before the one store that releases it: release is cumulative */
  if (multimem_) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (coop_.thread_rank() == 0) {
      uint32_t *all =
          static_cast<uint32_t *>(ncclGetResourceBufferMultimemPointer(comm_, handle_.bufHandle, mm_)) + 2 * handle_.nBarriers + index_;
      if (order == cuda::memory_order_relaxed)
        asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0],1;" ::"l"(__cvta_generic_to_global(all)) : "memory");
      else
        asm volatile("multimem.red.release.sys.global.add.u32 [%0],1;" ::"l"(__cvta_generic_to_global(all)) : "memory");
    }
#endif
    return;
  }
  for (int i = coop_.thread_rank(); i < team_.nRanks - 1; i += coop_.size()) {
    int peer = i + (i >= team_.rank ? 1 : 0);
    gccl::device::store(inbox(peer, team_.rank), epoch_ + 1, order); /* acquired in waitFor */
  }
}

template <typename Coop> NCCL_DEVICE_INLINE ncclResult_t ncclLsaBarrierSession<Coop>::waitFor(cuda::memory_order order, uint64_t cycles) {
  order = gccl::device::acquireOf(order);
  ncclResult_t result = ncclSuccess;
  if (multimem_) {
    uint32_t want = epoch_ + (uint32_t)team_.nRanks, seen;
    if (coop_.thread_rank() == 0) {
      gccl::device::Wait w(comm_.abortFlag, "LSA barrier by multicast", index_, -1, cycles);
      while ((seen = gccl::device::load(stateWord(2), order)) - want > 0x7fffffffu)
        if (w.over(want, seen)) break;
      if (w.expired) result = ncclTimeout;
    }
    epoch_ = want;
  } else {
    uint32_t want = epoch_ + 1, seen;
    for (int i = coop_.thread_rank(); i < team_.nRanks - 1 && result == ncclSuccess; i += coop_.size()) {
      int peer = i + (i >= team_.rank ? 1 : 0);
      gccl::device::Wait w(comm_.abortFlag, "LSA barrier", index_, ncclTeamRankToWorld(comm_, team_, peer), cycles);
      while ((seen = gccl::device::load(inbox(team_.rank, peer), order)) - want > 0x7fffffffu)
        if (w.over(want, seen)) break;
      if (w.expired) result = ncclTimeout;
    }
    epoch_ = want;
  }
  coop_.sync(); /* what one thread acquired is for all */
  return result;
}

template <typename Coop> NCCL_DEVICE_INLINE void ncclLsaBarrierSession<Coop>::wait(Coop, cuda::memory_order order) {
  (void)waitFor(order, 0);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclResult_t ncclLsaBarrierSession<Coop>::wait(Coop, cuda::memory_order order, uint64_t timeoutCycles) {
  return waitFor(order, timeoutCycles ? timeoutCycles : 1);
}
template <typename Coop> NCCL_DEVICE_INLINE void ncclLsaBarrierSession<Coop>::sync(Coop coop, cuda::memory_order order) {
  arrive(coop, order);
  (void)waitFor(order, 0);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclResult_t ncclLsaBarrierSession<Coop>::sync(Coop coop, cuda::memory_order order, uint64_t timeoutCycles) {
  arrive(coop, order);
  return wait(coop, order, timeoutCycles);
}

#endif
#endif
