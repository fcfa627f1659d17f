/* coop.h: cooperative groups. A function of this header that takes a group is called by all threads of the group, with the same arguments,
 * and the group decides how the work is divided. Every group has
 *
 *   int thread_rank()   place of the calling thread in the group, from 0
 *   int size()          number of threads; num_threads() is the same
 *   void sync()         waits for all threads of the group; what they wrote before is visible to all of them afterwards
 *
 * Groups are values: make them where they are needed. The shape is one-dimensional (threadIdx.x). */
#ifndef GCCL_DEVICE_COOP_H
#define GCCL_DEVICE_COOP_H

#include "impl/memory.h"

#if GCCL_DEVICE_KERNELS

namespace gccl {
namespace device {
/* Place of the calling thread in its warp. */
NCCL_DEVICE_INLINE int lane() {
#if defined(GCCL_DEVICE_CPU)
  return (int)(gccl_cpu_current->rank & 31);
#else
  int l;
  asm("mov.u32 %0,%%laneid;" : "=r"(l));
  return l;
#endif
}
} // namespace device
} // namespace gccl

/* An aligned group of n lanes of one warp, n a power of two up to 32. All lanes of the tile are there. */
template <int n> struct ncclCoopTile {
  static_assert(n > 0 && n <= 32 && (n & (n - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 lanes");
  NCCL_DEVICE_INLINE int thread_rank() const { return gccl::device::lane() & (n - 1); }
  NCCL_DEVICE_INLINE constexpr int size() const { return n; }
  NCCL_DEVICE_INLINE constexpr int num_threads() const { return n; }
  NCCL_DEVICE_INLINE uint32_t laneMask() const { return (0xffffffffu >> (32 - n)) << (gccl::device::lane() & (32 - n)); }
  NCCL_DEVICE_INLINE void sync() {
    if (n > 1) __syncwarp(laneMask());
  }
};

/* The calling thread alone. */
typedef ncclCoopTile<1> ncclCoopThread;
/* The 32 threads of the calling thread's warp. */
typedef ncclCoopTile<32> ncclCoopWarp;

/* Any lanes of one warp: those of lmask, which holds the calling thread's own. */
struct ncclCoopLanes {
  uint32_t lmask;
  NCCL_DEVICE_INLINE constexpr ncclCoopLanes(uint32_t lanes = 0xffffffffu) : lmask(lanes) {}
  NCCL_DEVICE_INLINE int thread_rank() const { return __popc(lmask & ((1u << gccl::device::lane()) - 1)); }
  NCCL_DEVICE_INLINE int size() const { return __popc(lmask); }
  NCCL_DEVICE_INLINE int num_threads() const { return __popc(lmask); }
  NCCL_DEVICE_INLINE void sync() { __syncwarp(lmask); }
};

/* Whole consecutive warps of a CTA, warp0 … warp0+nWarps-1, under an id of 0 … 14 that no other span uses at the same time. It uses the
 * CTA's hardware barrier 1+id. */
struct ncclCoopWarpSpan {
  uint32_t warp0 : 8, nWarps : 8, id : 8;
  NCCL_DEVICE_INLINE constexpr ncclCoopWarpSpan(int warp0_, int nWarps_, int id_)
      : warp0((uint32_t)warp0_), nWarps((uint32_t)nWarps_), id((uint32_t)id_) {}
  NCCL_DEVICE_INLINE int thread_rank() const { return (int)threadIdx.x - 32 * (int)warp0; }
  NCCL_DEVICE_INLINE int size() const { return 32 * (int)nWarps; }
  NCCL_DEVICE_INLINE int num_threads() const { return 32 * (int)nWarps; }
  NCCL_DEVICE_INLINE void sync() {
#if defined(GCCL_DEVICE_CPU)
    __barrier_sync_count(1 + id, 32 * nWarps);
#else
    asm volatile("barrier.sync %0,%1;" ::"r"(1 + (uint32_t)id), "r"(32 * (uint32_t)nWarps) : "memory");
#endif
  }
};

/* All threads of the CTA. */
struct ncclCoopCta {
  NCCL_DEVICE_INLINE int thread_rank() const { return (int)threadIdx.x; }
  NCCL_DEVICE_INLINE int size() const { return (int)blockDim.x; }
  NCCL_DEVICE_INLINE int num_threads() const { return (int)blockDim.x; }
  NCCL_DEVICE_INLINE void sync() { __syncthreads(); }
};

/* A group of any kind behind one type, for code that is not a template. Made from any group of at most 16 bytes. */
struct ncclCoopAny {
  NCCL_DEVICE_INLINE ncclCoopAny() : ops_(nullptr) {}
  template <typename Coop> NCCL_DEVICE_INLINE ncclCoopAny(Coop coop) : ops_(opsOf<Coop>()) {
    static_assert(sizeof(Coop) <= sizeof space_ && alignof(Coop) <= alignof(void *), "a group has at most 16 bytes");
    *reinterpret_cast<Coop *>(space_) = coop;
  }
  NCCL_DEVICE_INLINE int thread_rank() const { return ops_->rank(space_); }
  NCCL_DEVICE_INLINE int size() const { return ops_->size(space_); }
  NCCL_DEVICE_INLINE int num_threads() const { return ops_->size(space_); }
  NCCL_DEVICE_INLINE void sync() { ops_->sync(space_); }

private:
  struct Ops {
    int (*rank)(void const *);
    int (*size)(void const *);
    void (*sync)(void *);
  };
#if defined(GCCL_DEVICE_CUDA)
#define GCCL_DEVICE_MEMBER __device__
#else
#define GCCL_DEVICE_MEMBER
#endif
  template <typename Coop> static GCCL_DEVICE_MEMBER int rankOf(void const *c) { return static_cast<Coop const *>(c)->thread_rank(); }
  template <typename Coop> static GCCL_DEVICE_MEMBER int sizeOf(void const *c) { return static_cast<Coop const *>(c)->size(); }
  template <typename Coop> static GCCL_DEVICE_MEMBER void syncOf(void *c) { static_cast<Coop *>(c)->sync(); }
  template <typename Coop> static NCCL_DEVICE_INLINE Ops const *opsOf() {
    static constexpr Ops ops = {&rankOf<Coop>, &sizeOf<Coop>, &syncOf<Coop>};
    return &ops;
  }
#undef GCCL_DEVICE_MEMBER
  alignas(alignof(void *)) char space_[16];
  Ops const *ops_;
};

/* ---- Questions about a group ---- */

/* Lanes of the calling thread's warp that belong to the group; all for groups of whole warps. */
template <int n> NCCL_DEVICE_INLINE uint32_t ncclCoopGetLaneMask(ncclCoopTile<n> coop) { return coop.laneMask(); }
NCCL_DEVICE_INLINE uint32_t ncclCoopGetLaneMask(ncclCoopLanes coop) { return coop.lmask; }
NCCL_DEVICE_INLINE uint32_t ncclCoopGetLaneMask(ncclCoopWarpSpan) { return 0xffffffffu; }
NCCL_DEVICE_INLINE uint32_t ncclCoopGetLaneMask(ncclCoopCta) { return 0xffffffffu; }

/* Whether the type says that it is one thread. */
template <int n> NCCL_DEVICE_INLINE constexpr bool ncclCoopIsThread(ncclCoopTile<n>) { return n == 1; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopIsThread(ncclCoopLanes) { return false; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopIsThread(ncclCoopWarpSpan) { return false; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopIsThread(ncclCoopCta) { return false; }

/* Whether the type says that it stays inside one warp. */
template <int n> NCCL_DEVICE_INLINE constexpr bool ncclCoopWithinWarp(ncclCoopTile<n>) { return true; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopWithinWarp(ncclCoopLanes) { return true; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopWithinWarp(ncclCoopWarpSpan) { return false; }
NCCL_DEVICE_INLINE constexpr bool ncclCoopWithinWarp(ncclCoopCta) { return false; }

/* Lanes that may be used together here: without more knowledge those that the hardware runs together now (on the CPU the calling thread),
 * inside a call on a group the part of the group in this warp. */
NCCL_DEVICE_INLINE ncclCoopLanes ncclCoopCoalesced() { return ncclCoopLanes{__activemask()}; }
template <typename Coop> NCCL_DEVICE_INLINE ncclCoopTile<32> ncclCoopCoalesced(Coop) { return ncclCoopTile<32>(); }
NCCL_DEVICE_INLINE ncclCoopLanes ncclCoopCoalesced(ncclCoopLanes coop) { return coop; }
template <int n> NCCL_DEVICE_INLINE ncclCoopTile<n> ncclCoopCoalesced(ncclCoopTile<n> coop) { return coop; }

/* ---- Broadcast ---- */

namespace gccl {
namespace device {
/* value of lane source, in words, among the lanes of mask. */
template <typename T> NCCL_DEVICE_INLINE T shuffleWords(uint32_t mask, T value, int source) {
  constexpr int n = (int)((sizeof(T) + 3) / 4);
  union Both {
    uint32_t word[n];
    T v;
    NCCL_DEVICE_INLINE Both() {}
  } u;
  u.v = value;
  GCCL_UNROLL()
  for (int i = 0; i < n; i++) u.word[i] = __shfl_sync(mask, u.word[i], source);
  return u.v;
}
/* 16 bytes of shared memory for each span (0 … 14) and for the CTA (15). */
NCCL_DEVICE_INLINE ulonglong2 *broadcastPlace(int which) {
  __shared__ ulonglong2 place[16];
  return &place[which];
}
template <typename Coop, typename T> NCCL_DEVICE_INLINE T broadcastShared(Coop coop, T value, int root, bool entrySync, int which) {
  static_assert(sizeof(T) <= 16, "a broadcast value has at most 16 bytes");
  T *place = reinterpret_cast<T *>(broadcastPlace(which));
  if (entrySync) coop.sync();
  if (coop.thread_rank() == root) *place = value;
  coop.sync();
  return *place;
}
} // namespace device
} // namespace gccl

/* Gives value of the thread with rank root to all threads of the group. T is a plain type; beyond a warp it has at most 16 bytes.
 * entrySync false leaves the first sync out: for callers who know that nobody still reads the result of an earlier broadcast. */
template <int n, typename T> NCCL_DEVICE_INLINE T ncclCoopBcast(ncclCoopTile<n> coop, T value, int root, bool entrySync = true) {
  (void)entrySync;
  return gccl::device::shuffleWords(coop.laneMask(), value, (gccl::device::lane() & (32 - n)) + root);
}
template <typename T> NCCL_DEVICE_INLINE T ncclCoopBcast(ncclCoopLanes coop, T value, int root, bool entrySync = true) {
  (void)entrySync;
  return gccl::device::shuffleWords(coop.lmask, value, (int)__fns(coop.lmask, 0, 1 + root));
}
template <typename T> NCCL_DEVICE_INLINE T ncclCoopBcast(ncclCoopWarpSpan coop, T value, int root, bool entrySync = true) {
  return gccl::device::broadcastShared(coop, value, root, entrySync, (int)coop.id);
}
template <typename T> NCCL_DEVICE_INLINE T ncclCoopBcast(ncclCoopCta coop, T value, int root, bool entrySync = true) {
  return gccl::device::broadcastShared(coop, value, root, entrySync, 15);
}

#endif
#endif
