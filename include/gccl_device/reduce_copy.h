/* reduce_copy.h: blocks that kernels are built of: load the same elements of N places, combine them, store the result to M places.
 *
 * Common to all: called by all threads of coop with the same arguments, which divide the elements; count is in elements of T; sources are
 * combined in the order 0 … N-1, so that all ranks get the same bits. Sums of 16-bit and 8-bit floating types accumulate in float and are
 * rounded once. Places are aligned to T; those with the same distance to the next 16-byte boundary go fastest. Source and destination are
 * the same place or do not overlap.
 *
 * No synchronisation is in them: sources were written before (a barrier with acquire), and the stores are visible to other threads after
 * the next coop.sync(), to other ranks after the next barrier with release.
 *
 * Names. Lsa: places are loaded and stored; Local: the same, of this rank; Multimem: the address is a multicast one, one load combines all
 * ranks of its team and one store reaches all. Multimem needs sm_90, elements of 4 or 8 bytes or __half or __nv_bfloat16, places aligned
 * to 4 and counts that are multiples of 4 bytes; anything else stops the kernel. src and dst of the first two series are functions of an
 * index that give a T*.
 * UNROLL is how many elements a thread has in flight. */
#ifndef GCCL_DEVICE_REDUCE_COPY_H
#define GCCL_DEVICE_REDUCE_COPY_H

#include "impl/reduce_copy_impl.h"

#if GCCL_DEVICE_KERNELS

#define GCCL_DEVICE_UNROLL int UNROLL = 4 * 16 / (int)sizeof(T)

/* ---- 1. Any operator: op(a, b) gives a T ---- */

template <typename T, typename Coop, typename Src, typename Dst, typename RedOp, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceLsaCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, RedOp const &op, IntCount count) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, src, nSrc, dst, nDst, op, (size_t)count);
}
template <typename T, typename Coop, typename Src, typename Dst, typename RedOp, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceMultimemCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, RedOp const &op, IntCount count) {
  gccl::device::reduceCopy<T, false, true, UNROLL>(coop, src, nSrc, dst, nDst, op, (size_t)count);
}

/* ---- 2. Sums ---- */

template <typename T, typename Coop, typename Src, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumLsaCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, IntCount count) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, src, nSrc, dst, nDst, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename Src, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumMultimemCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, IntCount count) {
  gccl::device::reduceCopy<T, false, true, UNROLL>(coop, src, nSrc, dst, nDst, nccl::utility::OpSum<T>(), (size_t)count);
}
/* Each of the nSrc multicast sources is the sum over its team. */
template <typename T, typename Coop, typename Src, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumLsaCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, IntCount count) {
  gccl::device::reduceCopy<T, true, false, UNROLL>(coop, src, nSrc, dst, nDst, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename Src, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumMultimemCopy(Coop coop, Src src, int nSrc, Dst dst, int nDst, IntCount count) {
  gccl::device::reduceCopy<T, true, true, UNROLL>(coop, src, nSrc, dst, nDst, nccl::utility::OpSum<T>(), (size_t)count);
}

/* ---- 3. Sum to one place of this rank ---- */

template <typename T, typename Coop, typename Src, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSum(Coop coop, Src src, int nSrc, T *dst, IntCount count) {
  ncclLsaReduceSumLsaCopy<T, Coop, Src, gccl::device::OnePlace<T>, IntCount, UNROLL>(coop, src, nSrc, {dst}, 1, count);
}
/* src of all ranks of the team. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSum(Coop coop, ncclSymPtr<T> src, T *dst, IntCount count, ncclTeam team) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, gccl::device::TeamPlaces<T>{src, team}, team.nRanks,
                                                    gccl::device::OnePlace<T>{dst}, 1, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSum(Coop coop, ncclSymPtr<T> src, T *dst, IntCount count, ncclDevComm const &comm) {
  ncclLsaReduceSum<T, Coop, IntCount, UNROLL>(coop, src, dst, count, ncclTeamLsa(comm));
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSum(Coop coop, ncclWindow_t window, size_t offset, T *dst, IntCount count, ncclTeam team) {
  ncclLsaReduceSum<T, Coop, IntCount, UNROLL>(coop, ncclSymPtr<T>(window, offset), dst, count, team);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSum(Coop coop, ncclWindow_t window, size_t offset, T *dst, IntCount count, ncclDevComm const &comm) {
  ncclLsaReduceSum<T, Coop, IntCount, UNROLL>(coop, ncclSymPtr<T>(window, offset), dst, count, ncclTeamLsa(comm));
}
/* From a multicast address; mcSrc is one already. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSum(Coop coop, T *mcSrc, T *dst, IntCount count) {
  gccl::device::reduceCopy<T, true, false, UNROLL>(coop, gccl::device::OnePlace<T>{mcSrc}, 1, gccl::device::OnePlace<T>{dst}, 1,
                                                   nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSum(Coop coop, ncclSymPtr<T> src, T *dst, IntCount count, ncclMultimemHandle multimem) {
  ncclMultimemReduceSum<T, Coop, IntCount, UNROLL>(coop, src.multimemPtr(multimem), dst, count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSum(Coop coop, ncclWindow_t window, size_t offset, T *dst, IntCount count,
                                              ncclMultimemHandle multimem) {
  ncclMultimemReduceSum<T, Coop, IntCount, UNROLL>(coop, ncclSymPtr<T>(window, offset).multimemPtr(multimem), dst, count);
}
template <typename T, typename Coop, typename Src, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLocalReduceSum(Coop coop, Src src, int nSrc, T *dst, IntCount count) {
  ncclLsaReduceSum<T, Coop, Src, IntCount, UNROLL>(coop, src, nSrc, dst, count);
}
/* Sources displ elements apart. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLocalReduceSum(Coop coop, int nSrc, T *base, size_t displ, T *dst, IntCount count) {
  using Places = gccl::device::Strided<T>;
  ncclLsaReduceSum<T, Coop, Places, IntCount, UNROLL>(coop, Places{base, displ}, nSrc, dst, count);
}

/* ---- 4. Copy of one place to many ---- */

template <typename T, typename Coop, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE gccl::device::IfInteger<IntCount> ncclLsaCopy(Coop coop, T *src, Dst dst, int nDst, IntCount count) {
  ncclLsaReduceSumLsaCopy<T, Coop, gccl::device::OnePlace<T>, Dst, IntCount, UNROLL>(coop, {src}, 1, dst, nDst, count);
}
/* To dst of all ranks of the team. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaCopy(Coop coop, T *src, ncclSymPtr<T> dst, IntCount count, ncclTeam team) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, gccl::device::OnePlace<T>{src}, 1, gccl::device::TeamPlaces<T>{dst, team},
                                                    team.nRanks, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaCopy(Coop coop, T *src, ncclSymPtr<T> dst, IntCount count, ncclDevComm const &comm) {
  ncclLsaCopy<T, Coop, IntCount, UNROLL>(coop, src, dst, count, ncclTeamLsa(comm));
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaCopy(Coop coop, T *src, ncclWindow_t window, size_t offset, IntCount count, ncclTeam team) {
  ncclLsaCopy<T, Coop, IntCount, UNROLL>(coop, src, ncclSymPtr<T>(window, offset), count, team);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaCopy(Coop coop, T *src, ncclWindow_t window, size_t offset, IntCount count, ncclDevComm const &comm) {
  ncclLsaCopy<T, Coop, IntCount, UNROLL>(coop, src, ncclSymPtr<T>(window, offset), count, ncclTeamLsa(comm));
}
/* To a multicast address; mcDst is one already. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemCopy(Coop coop, T *src, T *mcDst, IntCount count) {
  gccl::device::reduceCopy<T, false, true, UNROLL>(coop, gccl::device::OnePlace<T>{src}, 1, gccl::device::OnePlace<T>{mcDst}, 1,
                                                   nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemCopy(Coop coop, T *src, ncclSymPtr<T> dst, IntCount count, ncclMultimemHandle multimem) {
  ncclMultimemCopy<T, Coop, IntCount, UNROLL>(coop, src, dst.multimemPtr(multimem), count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemCopy(Coop coop, T *src, ncclWindow_t window, size_t offset, IntCount count,
                                         ncclMultimemHandle multimem) {
  ncclMultimemCopy<T, Coop, IntCount, UNROLL>(coop, src, ncclSymPtr<T>(window, offset).multimemPtr(multimem), count);
}
template <typename T, typename Coop, typename Dst, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE gccl::device::IfInteger<IntCount> ncclLocalCopy(Coop coop, T *src, Dst dst, int nDst, IntCount count) {
  ncclLsaCopy<T, Coop, Dst, IntCount, UNROLL>(coop, src, dst, nDst, count);
}
/* Destinations displ elements apart. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLocalCopy(Coop coop, T *src, int nDst, T *base, size_t displ, IntCount count) {
  using Places = gccl::device::Strided<T>;
  ncclLsaCopy<T, Coop, Places, IntCount, UNROLL>(coop, src, Places{base, displ}, nDst, count);
}

/* ---- 5. Sum of many places to many ---- */

/* src of all ranks of a team to dst of all ranks of a team: on each rank a different part of the elements makes an all-reduce. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumCopy(Coop coop, ncclSymPtr<T> src, ncclTeam srcTeam, ncclSymPtr<T> dst, ncclTeam dstTeam,
                                             IntCount count) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, gccl::device::TeamPlaces<T>{src, srcTeam}, srcTeam.nRanks,
                                                    gccl::device::TeamPlaces<T>{dst, dstTeam}, dstTeam.nRanks, nccl::utility::OpSum<T>(),
                                                    (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumCopy(Coop coop, ncclSymPtr<T> src, ncclSymPtr<T> dst, IntCount count, ncclTeam team) {
  ncclLsaReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, src, team, dst, team, count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumCopy(Coop coop, ncclSymPtr<T> src, ncclSymPtr<T> dst, IntCount count, ncclDevComm const &comm) {
  ncclLsaReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, src, ncclTeamLsa(comm), dst, ncclTeamLsa(comm), count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumCopy(Coop coop, ncclWindow_t srcWindow, size_t srcOffset, ncclWindow_t dstWindow, size_t dstOffset,
                                             IntCount count, ncclTeam team) {
  ncclLsaReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, ncclSymPtr<T>(srcWindow, srcOffset), team, ncclSymPtr<T>(dstWindow, dstOffset),
                                                  team, count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumCopy(Coop coop, ncclWindow_t srcWindow, size_t srcOffset, ncclWindow_t dstWindow, size_t dstOffset,
                                             IntCount count, ncclDevComm const &comm) {
  ncclLsaReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, srcWindow, srcOffset, dstWindow, dstOffset, count, ncclTeamLsa(comm));
}
/* Multicast to multicast; the pointers are multicast addresses already. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumCopy(Coop coop, T *mcSrc, T *mcDst, IntCount count) {
  gccl::device::reduceCopy<T, true, true, UNROLL>(coop, gccl::device::OnePlace<T>{mcSrc}, 1, gccl::device::OnePlace<T>{mcDst}, 1,
                                                  nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumCopy(Coop coop, ncclSymPtr<T> src, ncclMultimemHandle srcMultimem, ncclSymPtr<T> dst,
                                                  ncclMultimemHandle dstMultimem, IntCount count) {
  ncclMultimemReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, src.multimemPtr(srcMultimem), dst.multimemPtr(dstMultimem), count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumCopy(Coop coop, ncclWindow_t srcWindow, size_t srcOffset, ncclMultimemHandle srcMultimem,
                                                  ncclWindow_t dstWindow, size_t dstOffset, ncclMultimemHandle dstMultimem,
                                                  IntCount count) {
  ncclMultimemReduceSumCopy<T, Coop, IntCount, UNROLL>(coop, ncclSymPtr<T>(srcWindow, srcOffset).multimemPtr(srcMultimem),
                                                       ncclSymPtr<T>(dstWindow, dstOffset).multimemPtr(dstMultimem), count);
}
/* LSA to multicast. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumMultimemCopy(Coop coop, ncclSymPtr<T> src, ncclTeam team, T *mcDst, IntCount count) {
  gccl::device::reduceCopy<T, false, true, UNROLL>(coop, gccl::device::TeamPlaces<T>{src, team}, team.nRanks,
                                                   gccl::device::OnePlace<T>{mcDst}, 1, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLsaReduceSumMultimemCopy(Coop coop, ncclSymPtr<T> src, ncclTeam team, ncclSymPtr<T> dst,
                                                     ncclMultimemHandle multimem, IntCount count) {
  ncclLsaReduceSumMultimemCopy<T, Coop, IntCount, UNROLL>(coop, src, team, dst.multimemPtr(multimem), count);
}
/* Multicast to LSA. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumLsaCopy(Coop coop, T *mcSrc, ncclSymPtr<T> dst, ncclTeam team, IntCount count) {
  gccl::device::reduceCopy<T, true, false, UNROLL>(coop, gccl::device::OnePlace<T>{mcSrc}, 1, gccl::device::TeamPlaces<T>{dst, team},
                                                   team.nRanks, nccl::utility::OpSum<T>(), (size_t)count);
}
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclMultimemReduceSumLsaCopy(Coop coop, ncclSymPtr<T> src, ncclMultimemHandle multimem, ncclSymPtr<T> dst,
                                                     ncclTeam team, IntCount count) {
  ncclMultimemReduceSumLsaCopy<T, Coop, IntCount, UNROLL>(coop, src.multimemPtr(multimem), dst, team, count);
}
/* Places of this rank, srcDispl and dstDispl elements apart. */
template <typename T, typename Coop, typename IntCount, GCCL_DEVICE_UNROLL>
NCCL_DEVICE_INLINE void ncclLocalReduceSumCopy(Coop coop, int nSrc, T *srcBase, size_t srcDispl, int nDst, T *dstBase, size_t dstDispl,
                                               IntCount count) {
  gccl::device::reduceCopy<T, false, false, UNROLL>(coop, gccl::device::Strided<T>{srcBase, srcDispl}, nSrc,
                                                    gccl::device::Strided<T>{dstBase, dstDispl}, nDst, nccl::utility::OpSum<T>(),
                                                    (size_t)count);
}

#undef GCCL_DEVICE_UNROLL

#endif
#endif
