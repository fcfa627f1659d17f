/* barrier.h: barriers that use both kinds of reach: loads and stores inside an LSA team, GIN between teams. Index and memory order are as for
 * the others (lsa_barrier.h), the fence level as for GIN barriers (gin_barrier.h); barrierCount of the requirements says how many.
 *
 * A world barrier meets inside the LSA team first, then along the rail: two short barriers in place of one among all ranks. Where the fence is
 * to settle puts and contexts reach all ranks, it is a GIN barrier among all ranks, because puts came from all of them. */
#ifndef GCCL_DEVICE_BARRIER_H
#define GCCL_DEVICE_BARRIER_H

#include "gin_barrier.h"
#include "lsa_barrier.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {
/* A thing that may not be there, and cannot be copied. */
template <typename T> struct Maybe {
  bool there;
  union {
    T thing;
  };
  NCCL_DEVICE_INLINE Maybe() : there(false) {}
  NCCL_DEVICE_INLINE ~Maybe() {
    if (there) thing.~T();
  }
  template <typename... A> NCCL_DEVICE_INLINE void make(A &&...a) {
    ::new (static_cast<void *>(&thing)) T(static_cast<A &&>(a)...);
    there = true;
  }
  Maybe(Maybe const &) = delete;
};
} // namespace device
} // namespace gccl

template <typename Coop> struct ncclBarrierSession {
  /* For any pair of teams: inner inside of the LSA team, outer beyond it. */
  NCCL_DEVICE_INLINE ncclBarrierSession(Coop coop, ncclTeam innerTeam, ncclTeam outerTeam, ncclGin gin, ncclLsaBarrierHandle innerHandle,
                                        ncclGinBarrierHandle outerHandle, uint32_t index, bool multimem = false,
                                        ncclMultimemHandle innerMmHandle = ncclMultimemHandle());
  NCCL_DEVICE_INLINE ncclBarrierSession(Coop coop, ncclTeamTagWorld, ncclGin gin, uint32_t index, bool multimem = false);
  NCCL_DEVICE_INLINE ncclBarrierSession(Coop coop, ncclTeamTagLsa, ncclDevComm const &comm, uint32_t index, bool multimem = false);
  NCCL_DEVICE_INLINE ncclBarrierSession(Coop coop, ncclTeamTagRail, ncclGin gin, uint32_t index);
  ncclBarrierSession(ncclBarrierSession const &) = delete;

  /* The parts, for those who want to pass only one. Preconditions: the session has it. */
  NCCL_DEVICE_INLINE ncclLsaBarrierSession<Coop> &lsaBarrier() { return lsa_.thing; }
  NCCL_DEVICE_INLINE ncclGinBarrierSession<Coop> &ginBarrier() { return rail_.thing; }

  NCCL_DEVICE_INLINE void sync(Coop coop, cuda::memory_order order,
                               ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get);
  /* For at most timeoutCycles of clock64(), then ncclTimeout. */
  NCCL_DEVICE_INLINE ncclResult_t sync(Coop coop, cuda::memory_order order, ncclGinFenceLevel fence, uint64_t timeoutCycles);

private:
  Coop coop_;
  gccl::device::Maybe<ncclLsaBarrierSession<Coop>> lsa_;
  gccl::device::Maybe<ncclGinBarrierSession<Coop>> rail_, world_;
};

/* The same for one passage. */
template <typename Coop>
NCCL_DEVICE_INLINE void ncclBarrier(Coop coop, ncclTeamTagWorld tag, ncclGin gin, uint32_t index,
                                    cuda::memory_order order = cuda::memory_order_acq_rel,
                                    ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get, bool multimem = false) {
  ncclBarrierSession<Coop>(coop, tag, gin, index, multimem).sync(coop, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE void ncclBarrier(Coop coop, ncclTeamTagRail tag, ncclGin gin, uint32_t index,
                                    cuda::memory_order order = cuda::memory_order_acq_rel,
                                    ncclGinFenceLevel fence = ncclGinFenceLevel::Put | ncclGinFenceLevel::Get) {
  ncclBarrierSession<Coop>(coop, tag, gin, index).sync(coop, order, fence);
}
#endif
#endif
