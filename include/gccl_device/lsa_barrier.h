/* lsa_barrier.h: barriers between the CTAs (or warps, or threads) of an LSA team's ranks.
 *
 * A session is opened by all threads of a group on every rank of the team, for the same barrier index; one group of a rank uses an index
 * at a time. While it is open the group may pass the barrier any number of times. Indices 0 … lsaBarrierCount-1 are independent of each
 * other: usually CTA b uses index b.
 *
 * Memory order. arrive with release (or acq_rel): what the group's threads wrote before is visible to every rank that has passed the
 * barrier with acquire (or acq_rel). relaxed: only the time of passing is shared. sync(order) is arrive(order) and wait(order). */
#ifndef GCCL_DEVICE_LSA_BARRIER_H
#define GCCL_DEVICE_LSA_BARRIER_H

#include "core.h"

/* Requirement for nBarriers barriers of a team of LSA ranks (all its members pass the same arguments but for rank). Fills *outReq, which
 * the caller puts into resourceRequirementsList; *outHandle is complete once ncclDevCommCreate has returned. A team or a count that is not
 * positive, or NULL: ncclInvalidArgument. */
GCCL_HOST_API ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle,
                                                           ncclDevResourceRequirements_t *outReq);

#if GCCL_DEVICE_KERNELS
template <typename Coop> struct ncclLsaBarrierSession {
  /* For a barrier of any team inside of the LSA team. multimem: one multicast store instead of one store for each peer; needs a handle. */
  NCCL_DEVICE_INLINE ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeam team, ncclLsaBarrierHandle handle, uint32_t index,
                                           bool multimem = false, ncclMultimemHandle mmHandle = ncclMultimemHandle() GCCL_DEVICE_CALLER);
  /* For the LSA team's own barriers (lsaBarrierCount). */
  NCCL_DEVICE_INLINE ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeamTagLsa, uint32_t index,
                                           bool multimem = false GCCL_DEVICE_CALLER);
  /* Keeps the barrier's count for the next session; a coop.sync() is in it. */
  NCCL_DEVICE_INLINE ~ncclLsaBarrierSession();
  ncclLsaBarrierSession(ncclLsaBarrierSession const &) = delete;

  /* Tells the other ranks that this group is here. */
  NCCL_DEVICE_INLINE void arrive(Coop coop, cuda::memory_order order);
  /* Waits until all ranks of the team have arrived as often as this one. Gives up when the communicator fails. */
  NCCL_DEVICE_INLINE void wait(Coop coop, cuda::memory_order order);
  NCCL_DEVICE_INLINE void sync(Coop coop, cuda::memory_order order);
  /* The same for at most timeoutCycles of clock64(): ncclTimeout in the threads that saw no end. After that the session's barrier may be
   * destroyed but not be used again. */
  NCCL_DEVICE_INLINE ncclResult_t wait(Coop coop, cuda::memory_order order, uint64_t timeoutCycles);
  NCCL_DEVICE_INLINE ncclResult_t sync(Coop coop, cuda::memory_order order, uint64_t timeoutCycles);

private:
  NCCL_DEVICE_INLINE uint32_t *stateWord(int part) const;
  NCCL_DEVICE_INLINE uint32_t *inbox(int owner, int from) const;
  NCCL_DEVICE_INLINE ncclResult_t waitFor(cuda::memory_order order, uint64_t cycles);

  Coop coop_;
  ncclDevComm const &comm_;
  ncclTeam team_;
  ncclLsaBarrierHandle handle_;
  uint32_t index_;
  bool multimem_;
  ncclMultimemHandle mm_;
  uint32_t epoch_; /* passages so far; by multicast, arrivals so far */
};
#endif

#endif
