/* core_funcs.h: code of core.h. */
#ifndef GCCL_DEVICE_IMPL_CORE_FUNCS_H
#define GCCL_DEVICE_IMPL_CORE_FUNCS_H

#include "../core.h"
#include "utility.h"

/* ---- Teams ---- */

#ifdef __cplusplus
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamWorld(ncclDevComm const &comm) { return ncclTeam{comm.nRanks, comm.rank, 1}; }
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamLsa(ncclDevComm const &comm) { return ncclTeam{comm.lsaSize, comm.lsaRank, 1}; }
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamRail(ncclDevComm const &comm) {
  uint32_t size = (uint32_t)comm.lsaSize;
  return ncclTeam{(int)nccl::utility::idivFast32((uint32_t)comm.nRanks, size, comm.lsaSize_rcp32),
                  (int)nccl::utility::idivFast32((uint32_t)comm.rank, size, comm.lsaSize_rcp32), comm.lsaSize};
}
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToWorld(ncclDevComm const &comm, ncclTeam team, int rank) {
  return comm.rank + (rank - team.rank) * team.stride;
}
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToLsa(ncclDevComm const &comm, ncclTeam team, int rank) {
  return comm.lsaRank + (rank - team.rank) * team.stride;
}
#endif

NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE bool ncclTeamRankIsMember(ncclTeam_t a, ncclTeam_t b, int bRank) {
  int away = (bRank - b.rank) * b.stride; /* from this rank, in ranks of the communicator */
  int inA = a.rank + away / a.stride;
  return away % a.stride == 0 && 0 <= inA && inA < a.nRanks;
}
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE int ncclTeamRankToTeam(ncclTeam_t a, ncclTeam_t b, int bRank) {
  return a.rank + (bRank - b.rank) * b.stride / a.stride;
}

NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE ncclTeam_t ncclTeamInnerFactor(ncclTeam_t parent, int innerSize) {
  ncclTeam_t t;
  t.nRanks = innerSize;
  t.rank = parent.rank % innerSize;
  t.stride = parent.stride;
  return t;
}
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE ncclTeam_t ncclTeamOuterFactor(ncclTeam_t parent, int innerSize) {
  ncclTeam_t t;
  t.nRanks = parent.nRanks / innerSize;
  t.rank = parent.rank / innerSize;
  t.stride = parent.stride * innerSize;
  return t;
}

NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE int ncclTeamRankInDifference(ncclTeam_t parent, ncclTeam_t subset, int index) {
  int step = subset.stride / parent.stride, first = parent.rank - subset.rank * step;
  if (step < 0) {
    first += (subset.nRanks - 1) * step;
    step = -step;
  }
  /* subset is first, first+step, …; between two of its members there are step-1 others. */
  int between = (subset.nRanks - 1) * (step - 1), at = index - first;
  if (at < 0) return index;
  if (at < between) return index + 1 + at / (step - 1);
  return index + subset.nRanks;
}

NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE size_t ncclGetResourceBufferOffset(ncclDevResourceHandle_t handle) { return (size_t)handle * 128; }

#if GCCL_DEVICE_KERNELS

/* ---- Checks of GCCL_DEVICE_DEBUG ---- */

#ifdef GCCL_DEVICE_DEBUG
#define GCCL_DEVICE_CALLER_DEF , char const *gcclFile, int gcclLine
#define GCCL_DEVICE_CALLER_PASS , gcclFile, gcclLine
#define GCCL_DEVICE_CHECK_WINDOW(W, OFFSET, PEER) gccl::device::checkWindow((W), (OFFSET), (PEER), nullptr, gcclFile, gcclLine)
#define GCCL_DEVICE_CHECK_OWNER(W, OFFSET, COMM) \
  gccl::device::checkWindow((W), (OFFSET), 0, (COMM).resourceWindow_inlined.gcclOwn, gcclFile, gcclLine)
#else
#define GCCL_DEVICE_CALLER_DEF
#define GCCL_DEVICE_CALLER_PASS
#define GCCL_DEVICE_CHECK_WINDOW(W, OFFSET, PEER) (void)0
#define GCCL_DEVICE_CHECK_OWNER(W, OFFSET, COMM) (void)0
#endif

namespace gccl {
namespace device {

/* Ends the kernel: a defect of the program that must not go on. */
NCCL_DEVICE_INLINE void fail(char const *file, int line, char const *what, void const *window, unsigned long long offset, int rank) {
#if defined(GCCL_DEVICE_CPU)
  char text[400];
  snprintf(text, sizeof text, "%s:%d: %s: window %p, offset %llu, rank %d", file, line, what, window, offset, rank);
  gccl_cpu_trap(text);
#else
  printf("gccl: %s:%d: %s: window %p, offset %llu, rank %d\n", file, line, what, window, offset, rank);
  __trap();
#endif
}

/* A window of this library, an offset inside of it, a rank of its LSA team, and, where own is given, of that communicator. */
NCCL_DEVICE_INLINE void checkWindow(ncclWindow_t w, size_t offset, int peer, gcclDevComm_own const *own, char const *file, int line) {
  gcclWindow_device const *d = reinterpret_cast<gcclWindow_device const *>(w);
  if (!w || d->magic != GCCL_DEVICE_WINDOW_MAGIC) return fail(file, line, "not a window of this library", w, offset, peer);
  int rank = d->nccl.worldRank;
  if (own && own->owner != d->owner) return fail(file, line, "a window of another communicator", w, offset, rank);
  if (offset >= d->size) return fail(file, line, "the offset is past the end of the window", w, offset, rank);
  if (peer < 0 || peer >= d->lsaSize) return fail(file, line, "the peer is not in the LSA team", w, offset, rank - d->nccl.lsaRank + peer);
}

/* base, distance ranks further in its flat range. */
NCCL_DEVICE_INLINE char *inFlat(char *base, uint32_t stride4G, int distance) {
  return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(base) + ((uint64_t)((uint32_t)distance * stride4G) << 32));
}

} // namespace device
} // namespace gccl

/* ---- Pointers ---- */

NCCL_DEVICE_INLINE void *ncclGetLocalPointer(ncclWindow_t w, size_t offset GCCL_DEVICE_CALLER_DEF) {
  using namespace gccl::device;
  GCCL_DEVICE_CHECK_WINDOW(w, offset, w->lsaRank);
  return inFlat(loadConst(&w->lsaFlatBase), loadConst(&w->stride4G), loadConst(&w->lsaRank)) + offset;
}
NCCL_DEVICE_INLINE void *ncclGetLsaPointer(ncclWindow_t w, size_t offset, int peer GCCL_DEVICE_CALLER_DEF) {
  using namespace gccl::device;
  GCCL_DEVICE_CHECK_WINDOW(w, offset, peer);
  return inFlat(loadConst(&w->lsaFlatBase), loadConst(&w->stride4G), peer) + offset;
}
NCCL_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t w, size_t offset, int peer GCCL_DEVICE_CALLER_DEF) {
  using gccl::device::loadConst;
  return ncclGetLsaPointer(w, offset, loadConst(&w->lsaRank) + peer - loadConst(&w->worldRank) GCCL_DEVICE_CALLER_PASS);
}
NCCL_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t w, size_t offset, ncclTeam team, int peer GCCL_DEVICE_CALLER_DEF) {
  using gccl::device::loadConst;
  return ncclGetLsaPointer(w, offset, loadConst(&w->lsaRank) + (peer - team.rank) * team.stride GCCL_DEVICE_CALLER_PASS);
}
NCCL_DEVICE_INLINE void *ncclGetMultimemPointer(ncclWindow_t w, size_t offset, ncclMultimemHandle multimem GCCL_DEVICE_CALLER_DEF) {
  using gccl::device::loadConst;
  GCCL_DEVICE_CHECK_WINDOW(w, offset, w->lsaRank);
  return static_cast<char *>(multimem.mcBasePtr) + (size_t)loadConst(&w->mcOffset4K) * 4096 + offset;
}
NCCL_DEVICE_INLINE void *ncclGetLsaMultimemPointer(ncclWindow_t w, size_t offset, ncclDevComm const &comm GCCL_DEVICE_CALLER_DEF) {
  GCCL_DEVICE_CHECK_OWNER(w, offset, comm);
  return ncclGetMultimemPointer(w, offset, comm.lsaMultimem GCCL_DEVICE_CALLER_PASS);
}

template <typename Coop> NCCL_DEVICE_INLINE ncclWindow_t ncclFindWindow(Coop coop, ncclDevComm const &comm, void const *ptr) {
  auto lanes = ncclCoopCoalesced(coop);
  uint32_t mask = ncclCoopGetLaneMask(lanes);
  uintptr_t at = reinterpret_cast<uintptr_t>(ptr);
  for (ncclDevCommWindowTable *t = comm.windowTable; t; t = t->next) {
    unsigned long long mine = 0;
    for (int i = lanes.thread_rank(); i < 32; i += lanes.size()) {
      uintptr_t base = gccl::device::load(&t->entries[i].base, cuda::memory_order_acquire);
      if (base && at - base < t->entries[i].size) mine = reinterpret_cast<uintptr_t>(t->entries[i].window);
    }
    uint32_t found = __ballot_sync(mask, mine != 0);
    if (found) return reinterpret_cast<ncclWindow_t>((uintptr_t)gccl::device::shuffleWords(mask, mine, __ffs((int)found) - 1));
  }
  return nullptr;
}

NCCL_DEVICE_INLINE void *ncclGetResourceBufferLsaPointer(ncclDevComm const &comm, ncclDevResourceHandle handle, int peer) {
  return gccl::device::inFlat(comm.resourceWindow_inlined.lsaFlatBase, comm.resourceWindow_inlined.stride4G, peer) + (size_t)handle * 128;
}
NCCL_DEVICE_INLINE void *ncclGetResourceBufferLocalPointer(ncclDevComm const &comm, ncclDevResourceHandle handle) {
  return ncclGetResourceBufferLsaPointer(comm, handle, comm.lsaRank);
}
NCCL_DEVICE_INLINE void *ncclGetResourceBufferPeerPointer(ncclDevComm const &comm, ncclDevResourceHandle handle, ncclTeam team, int peer) {
  return ncclGetResourceBufferLsaPointer(comm, handle, comm.lsaRank + (peer - team.rank) * team.stride);
}
NCCL_DEVICE_INLINE void *ncclGetResourceBufferMultimemPointer(ncclDevComm const &comm, ncclDevResourceHandle handle,
                                                              ncclMultimemHandle multimem) {
  return static_cast<char *>(multimem.mcBasePtr) + (size_t)comm.resourceWindow_inlined.mcOffset4K * 4096 + (size_t)handle * 128;
}
NCCL_DEVICE_INLINE void *ncclGetResourceBufferLsaMultimemPointer(ncclDevComm const &comm, ncclDevResourceHandle handle) {
  return ncclGetResourceBufferMultimemPointer(comm, handle, comm.lsaMultimem);
}

#endif
#endif
