/* gin_barrier.h: barriers between ranks by GIN signals: of the rail, of the world, or of any team for which
 * ncclGinBarrierCreateRequirement asked.
 *
 * As with LSA barriers a session is opened by all threads of a group on every rank of the team, for the same index; one group of a rank uses
 * an index at a time.
 *
 * What is settled when sync returns is said by the fence level, for the session's context, or for all contexts of the device communicator
 * with ncclGinAllContexts:
 *   Put   puts of the other ranks of the team to this rank, posted before they came to the barrier, are in this rank's memory
 *   Get   gets of the calling threads, posted before, have filled their destinations
 *   None  nothing: the barrier is about time alone */
#ifndef GCCL_DEVICE_GIN_BARRIER_H
#define GCCL_DEVICE_GIN_BARRIER_H

#include "gin.h"

/* Requirement for nBarriers barriers of a team. Fills *outReq, which the caller puts into resourceRequirementsList; *outHandle is complete
 * once ncclDevCommCreate has returned. A team or a count that is not positive, or NULL: ncclInvalidArgument. */
GCCL_HOST_API ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                                                    ncclGinBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);

#if GCCL_DEVICE_KERNELS
enum ncclGinFenceLevel : uint32_t {
  None = 0,
  Put = 1u << 0,
  Get = 1u << 1,
  Relaxed = None /* old name */
};
NCCL_HOST_DEVICE_INLINE constexpr ncclGinFenceLevel operator|(ncclGinFenceLevel a, ncclGinFenceLevel b) {
  return static_cast<ncclGinFenceLevel>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
NCCL_HOST_DEVICE_INLINE constexpr ncclGinFenceLevel operator&(ncclGinFenceLevel a, ncclGinFenceLevel b) {
  return static_cast<ncclGinFenceLevel>(static_cast<uint32_t>(a) & static_cast<uint32_t>(b));
}

/* In place of a context: all of them. */
struct ncclGinAllContexts {
  ncclDevComm const &comm;
  NCCL_HOST_DEVICE_INLINE constexpr ncclGinAllContexts(ncclDevComm const &comm_) : comm(comm_) {}
};

template <typename Coop> struct ncclGinBarrierSession {
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeam team, ncclGinBarrierHandle handle, uint32_t index);
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeamTagRail, uint32_t index);
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGin gin, ncclTeamTagWorld, uint32_t index);
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeam team, ncclGinBarrierHandle handle, uint32_t index);
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeamTagRail, uint32_t index);
  NCCL_DEVICE_INLINE ncclGinBarrierSession(Coop coop, ncclGinAllContexts all, ncclTeamTagWorld, uint32_t index);
  ncclGinBarrierSession(ncclGinBarrierSession const &) = delete;

  NCCL_DEVICE_INLINE void sync(Coop coop, cuda::memory_order order,
                               ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get);
  /* For at most timeoutCycles of clock64(): ncclTimeout in the threads that saw no end; the barrier cannot be used again then. */
  NCCL_DEVICE_INLINE ncclResult_t sync(Coop coop, cuda::memory_order order, ncclGinFenceLevel fence, uint64_t timeoutCycles);

private:
  NCCL_DEVICE_INLINE ncclResult_t pass(cuda::memory_order order, ncclGinFenceLevel fence, uint64_t cycles);
  NCCL_DEVICE_INLINE ncclGin context(int i) const;

  Coop coop_;
  ncclGin gin_;
  ncclTeam team_;
  ncclGinSignal_t first_; /* signal of rank 0 of the team for this index */
  bool all_;
};

/* The same for one passage. */
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGin gin, ncclTeam team, ncclGinBarrierHandle handle, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, gin, team, handle, index).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGinAllContexts all, ncclTeam team, ncclGinBarrierHandle handle, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, all, team, handle, index).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGin gin, ncclTeamTagRail tag, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, gin, tag, index).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGin gin, ncclTeamTagWorld tag, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, gin, tag, index).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGinAllContexts all, ncclTeamTagRail tag, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, all, tag, index).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclGinBarrier(Coop coop, ncclGinAllContexts all, ncclTeamTagWorld tag, uint32_t index,
                                       cuda::memory_order order = cuda::memory_order_acq_rel,
                                       ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclGinBarrierSession<Coop>(coop, all, tag, index).sync(coop, order, fence);
}
#endif
#endif
