/* gin_direct.h: GIN between ranks that load and store each other's memory: the calling threads do it themselves.
 *
 * A transfer is done when the call returns. Signals and counters are words of their own (gccl_gin_direct), because the words of the
 * other backends have one writer each, an agent or a network card; who reads a signal adds both. */
#ifndef GCCL_DEVICE_IMPL_GIN_DIRECT_H
#define GCCL_DEVICE_IMPL_GIN_DIRECT_H

#include "gin_types.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

NCCL_DEVICE_INLINE gccl_gin_direct const *directOf(ncclDevComm const &comm) {
  gcclDevComm_own const *own = comm.resourceWindow_inlined.gcclOwn;
  return own ? loadConst(&own->direct) : nullptr;
}

/* Word of a signal at a rank of the LSA team. */
NCCL_DEVICE_INLINE uint64_t *directSignal(ncclDevComm const &comm, gccl_gin_direct const *d, uint32_t context, ncclGinSignal_t signal,
                                          int lsaPeer) {
  return static_cast<uint64_t *>(ncclGetResourceBufferLsaPointer(comm, loadConst(&d->signals), lsaPeer)) +
         (size_t)context * loadConst(&d->nsignals) + signal;
}
/* Word of a counter of this rank. */
NCCL_DEVICE_INLINE uint64_t *directCounter(gccl_gin_direct const *d, uint32_t context, ncclGinCounter_t counter) {
  return loadConst(&d->counters) + (size_t)context * loadConst(&d->ncounters) + counter;
}

template <typename Word, typename Coop> NCCL_DEVICE_INLINE void copyWords(Coop coop, char *to, char const *from, size_t bytes) {
  for (size_t i = (size_t)coop.thread_rank() * sizeof(Word); i < bytes; i += (size_t)coop.size() * sizeof(Word))
    *reinterpret_cast<Word *>(to + i) = *reinterpret_cast<Word const *>(from + i);
}

/* Copies with all threads of a group; ranges do not overlap. */
template <typename Coop> NCCL_DEVICE_INLINE void copyBytes(Coop coop, char *to, char const *from, size_t bytes) {
  uintptr_t both = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  size_t whole = both % 16 == 0 ? bytes & ~(size_t)15 : both % 4 == 0 ? bytes & ~(size_t)3 : 0;
  if (both % 16 == 0)
    copyWords<ulonglong2>(coop, to, from, whole);
  else if (both % 4 == 0)
    copyWords<uint32_t>(coop, to, from, whole);
  copyWords<char>(coop, to + whole, from + whole, bytes - whole);
}

/* A value as one store where it is aligned. */
NCCL_DEVICE_INLINE void storeBits(char *to, uint64_t bits, size_t bytes) {
  if (bytes == 8 && reinterpret_cast<uintptr_t>(to) % 8 == 0)
    store(reinterpret_cast<uint64_t *>(to), bits, cuda::memory_order_relaxed);
  else if (bytes == 4 && reinterpret_cast<uintptr_t>(to) % 4 == 0)
    store(reinterpret_cast<uint32_t *>(to), (uint32_t)bits, cuda::memory_order_relaxed);
  else
    for (size_t i = 0; i < bytes; i++) to[i] = (char)(bits >> 8 * i);
}

/* Whether the backend has to tell of a direct put that a signal by place comes behind. */
NCCL_DEVICE_INLINE bool placeByBackend(Gin const &gin, GinPut const &p) {
  return p.signal.kind == GinSignal::byPlace && gin._ginHandle && loadConst(&directOf(gin.comm)->places);
}

/* All threads of coop are here, and have been before (coop.sync()). */
template <typename Coop> NCCL_DEVICE_INLINE void runDirect(Gin const &gin, Coop coop, GinPut const &p) {
  ncclDevComm const &comm = gin.comm;
  gccl_gin_direct const *d = directOf(comm);
  int lsaPeer = comm.lsaRank + p.peer - comm.rank;
  if (p.bytes) { /* an empty range may begin where its window ends */
    char *there = static_cast<char *>(ncclGetLsaPointer(p.remote, p.remoteOffset, lsaPeer));
    if (p.what == GinPut::value) {
      if (coop.thread_rank() == 0) storeBits(there, p.bits, p.bytes);
    } else {
      char *here = static_cast<char *>(ncclGetLocalPointer(p.local, p.localOffset));
      if (p.what == GinPut::put)
        copyBytes(coop, there, here, p.bytes);
      else
        copyBytes(coop, here, there, p.bytes);
      if (p.signal.kind != GinSignal::none || p.counts) coop.sync(); /* all parts, before the word that tells of them */
    }
  }
  if (coop.thread_rank() != 0) return;
  if (p.signal.kind != GinSignal::none && !placeByBackend(gin, p)) {
    uint64_t *word = p.signal.kind == GinSignal::byPlace
                         ? static_cast<uint64_t *>(ncclGetLsaPointer(p.signal.window, p.signal.offset, lsaPeer))
                         : directSignal(comm, d, gin.contextId, p.signal.number, lsaPeer);
    addTo(word, p.signal.add, cuda::memory_order_release); /* acquired by whoever waits; cumulative over the group's writes */
  }
  if (p.counts) addTo(directCounter(d, gin.contextId, p.counter), (uint64_t)1, cuda::memory_order_release);
}

} // namespace device
} // namespace gccl
#endif
#endif
