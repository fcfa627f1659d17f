/* barrier_funcs.h: code of barrier.h. */
#ifndef GCCL_DEVICE_IMPL_BARRIER_FUNCS_H
#define GCCL_DEVICE_IMPL_BARRIER_FUNCS_H

#include "../barrier.h"
#include "gin_barrier_funcs.h"
#include "lsa_barrier_funcs.h"

#if GCCL_DEVICE_KERNELS

template <typename Coop>
NCCL_DEVICE_INLINE ncclBarrierSession<Coop>::ncclBarrierSession(Coop coop, ncclTeam innerTeam, ncclTeam outerTeam, ncclGin gin,
                                                                ncclLsaBarrierHandle innerHandle, ncclGinBarrierHandle outerHandle,
                                                                uint32_t index, bool multimem, ncclMultimemHandle innerMmHandle)
    : coop_(coop) {
  lsa_.make(coop, gin.comm, innerTeam, innerHandle, index, multimem, innerMmHandle);
  rail_.make(coop, gin, outerTeam, outerHandle, index);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclBarrierSession<Coop>::ncclBarrierSession(Coop coop, ncclTeamTagWorld, ncclGin gin, uint32_t index, bool multimem)
    : ncclBarrierSession(coop, ncclTeamLsa(gin.comm), ncclTeamRail(gin.comm), gin, gin.comm.hybridLsaBarrier, gin.comm.hybridRailGinBarrier,
                         index, multimem, gin.comm.lsaMultimem) {
  if (!gin.comm.ginContextsRailed) world_.make(coop, gin, ncclTeamWorld(gin.comm), gin.comm.hybridWorldGinBarrier, index);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclBarrierSession<Coop>::ncclBarrierSession(Coop coop, ncclTeamTagLsa, ncclDevComm const &comm, uint32_t index,
                                                                bool multimem)
    : coop_(coop) {
  lsa_.make(coop, comm, ncclTeamLsa(comm), comm.hybridLsaBarrier, index, multimem, comm.lsaMultimem);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclBarrierSession<Coop>::ncclBarrierSession(Coop coop, ncclTeamTagRail, ncclGin gin, uint32_t index) : coop_(coop) {
  rail_.make(coop, gin, ncclTeamRail(gin.comm), gin.comm.hybridRailGinBarrier, index);
}

namespace gccl {
namespace device {
/* Of the LSA barrier before the rail's: what a rank tells along its rail includes what its team has told it. */
NCCL_DEVICE_INLINE cuda::memory_order innerOrder(cuda::memory_order order) {
  return order == cuda::memory_order_relaxed ? order : cuda::memory_order_acq_rel;
}
} // namespace device
} // namespace gccl

template <typename Coop>
NCCL_DEVICE_INLINE void ncclBarrierSession<Coop>::sync(Coop, cuda::memory_order order, ncclGinFenceLevel fence) {
  using namespace gccl::device;
  if (world_.there && fence & ncclGinFenceLevel::Put) return world_.thing.sync(coop_, order, fence);
  if (lsa_.there) lsa_.thing.sync(coop_, rail_.there ? innerOrder(order) : order);
  if (rail_.there) rail_.thing.sync(coop_, order, fence);
}
template <typename Coop>
NCCL_DEVICE_INLINE ncclResult_t ncclBarrierSession<Coop>::sync(Coop, cuda::memory_order order, ncclGinFenceLevel fence, uint64_t timeoutCycles) {
  using namespace gccl::device;
  if (world_.there && fence & ncclGinFenceLevel::Put) return world_.thing.sync(coop_, order, fence, timeoutCycles);
  uint64_t start = (uint64_t)clock64();
  ncclResult_t inner = ncclSuccess, outer = ncclSuccess;
  if (lsa_.there) inner = lsa_.thing.sync(coop_, rail_.there ? innerOrder(order) : order, timeoutCycles);
  /* Also after a time-out, which threads of a group do not see alike: all of them have to come to the next barrier of the group. */
  uint64_t spent = (uint64_t)clock64() - start;
  if (rail_.there) outer = rail_.thing.sync(coop_, order, fence, spent < timeoutCycles ? timeoutCycles - spent : 1);
  return inner != ncclSuccess ? inner : outer;
}

#endif
#endif
