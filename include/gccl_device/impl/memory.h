/* memory.h: how device code touches memory that others write: loads and stores with order and scope, fences, the 16-byte line of the LL
 * protocol, waits. Everything that waits goes through gccl::device::Wait, so that every wait ends. */
#ifndef GCCL_DEVICE_IMPL_MEMORY_H
#define GCCL_DEVICE_IMPL_MEMORY_H

#include "platform.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

/* Whether this code has multicast instructions; where it has none, multimem arguments are taken for false. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool multicast = true;
#else
constexpr bool multicast = false;
#endif

/* ---- Order of one side of an operation that both acquires and releases ---- */

NCCL_DEVICE_INLINE cuda::memory_order acquireOf(cuda::memory_order o) {
  return o == cuda::memory_order_release ? cuda::memory_order_relaxed : o == cuda::memory_order_acq_rel ? cuda::memory_order_acquire : o;
}
NCCL_DEVICE_INLINE cuda::memory_order releaseOf(cuda::memory_order o) {
  return o == cuda::memory_order_acquire ? cuda::memory_order_relaxed : o == cuda::memory_order_acq_rel ? cuda::memory_order_release : o;
}

#if defined(GCCL_DEVICE_CPU)

template <typename T> NCCL_DEVICE_INLINE T load(T const *p, cuda::memory_order o) {
  T v;
  __atomic_load(const_cast<T *>(p), &v, (int)o);
  return v;
}
template <typename T> NCCL_DEVICE_INLINE void store(T *p, T v, cuda::memory_order o) { __atomic_store(p, &v, (int)o); }
template <typename T> NCCL_DEVICE_INLINE T fetchAdd(T *p, T v, cuda::memory_order o) { return __atomic_fetch_add(p, v, (int)o); }
NCCL_DEVICE_INLINE void addTo(uint64_t *p, uint64_t v, cuda::memory_order o) { (void)__atomic_fetch_add(p, v, (int)o); }
template <typename T> NCCL_DEVICE_INLINE T loadConst(T const *p) { return *p; }
template <typename T> NCCL_DEVICE_INLINE T loadToStore(T const *p) { return load(p, cuda::memory_order_acquire); }

#else

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "gccl_device.h: kernels need sm_70 or later (acquire and release in hardware)"
#endif

/* System scope, 4 or 8 bytes (PTX ISA, ld, st, atom). */
template <int bytes> struct Word;
template <> struct Word<4> {
  static NCCL_DEVICE_INLINE uint32_t relaxed(void const *p) {
    uint32_t v;
    asm volatile("ld.relaxed.sys.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
  }
  static NCCL_DEVICE_INLINE uint32_t acquire(void const *p) {
    uint32_t v;
    asm volatile("ld.acquire.sys.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
  }
  static NCCL_DEVICE_INLINE void relaxed(void *p, uint32_t v) { asm volatile("st.relaxed.sys.u32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }
  static NCCL_DEVICE_INLINE void release(void *p, uint32_t v) { asm volatile("st.release.sys.u32 [%0],%1;" ::"l"(p), "r"(v) : "memory"); }
  static NCCL_DEVICE_INLINE uint32_t add(void *p, uint32_t v, bool ordered) {
    uint32_t was;
    if (ordered)
      asm volatile("atom.acq_rel.sys.add.u32 %0,[%1],%2;" : "=r"(was) : "l"(p), "r"(v) : "memory");
    else
      asm volatile("atom.relaxed.sys.add.u32 %0,[%1],%2;" : "=r"(was) : "l"(p), "r"(v) : "memory");
    return was;
  }
};
template <> struct Word<8> {
  static NCCL_DEVICE_INLINE uint64_t relaxed(void const *p) {
    uint64_t v;
    asm volatile("ld.relaxed.sys.u64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
  }
  static NCCL_DEVICE_INLINE uint64_t acquire(void const *p) {
    uint64_t v;
    asm volatile("ld.acquire.sys.u64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
  }
  static NCCL_DEVICE_INLINE void relaxed(void *p, uint64_t v) { asm volatile("st.relaxed.sys.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory"); }
  static NCCL_DEVICE_INLINE void release(void *p, uint64_t v) { asm volatile("st.release.sys.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory"); }
  static NCCL_DEVICE_INLINE uint64_t add(void *p, uint64_t v, bool ordered) {
    uint64_t was;
    if (ordered)
      asm volatile("atom.acq_rel.sys.add.u64 %0,[%1],%2;" : "=l"(was) : "l"(p), "l"(v) : "memory");
    else
      asm volatile("atom.relaxed.sys.add.u64 %0,[%1],%2;" : "=l"(was) : "l"(p), "l"(v) : "memory");
    return was;
  }
};

template <typename T> NCCL_DEVICE_INLINE T load(T const *p, cuda::memory_order o) {
  return (T)(o == cuda::memory_order_relaxed ? Word<sizeof(T)>::relaxed(p) : Word<sizeof(T)>::acquire(p));
}
template <typename T> NCCL_DEVICE_INLINE void store(T *p, T v, cuda::memory_order o) {
  if (o == cuda::memory_order_relaxed)
    Word<sizeof(T)>::relaxed(p, v);
  else
    Word<sizeof(T)>::release(p, v);
}
/* Read-only for the whole kernel: may be cached without care. Volatile, because the compiler moves __ldg, and this without the word, before
 * the check that p is not NULL (NVRTC 12.8: illegal addresses on an H200). 4 or 8 bytes (PTX ISA, ld.global.nc). */
template <typename T> NCCL_DEVICE_INLINE T loadConst(T const *p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word");
  union {
    uint32_t small;
    uint64_t large;
    T v;
  } u;
  if (sizeof(T) == 4)
    asm volatile("ld.global.nc.u32 %0,[%1];" : "=r"(u.small) : "l"(p));
  else
    asm volatile("ld.global.nc.u64 %0,[%1];" : "=l"(u.large) : "l"(p));
  return u.v;
}
/* What only stores depend on, with a branch between: a GPU does not store before it knows that it must, so it need not acquire, which would empty the
 * cache. */
template <typename T> NCCL_DEVICE_INLINE T loadToStore(T const *p) { return load(p, cuda::memory_order_relaxed); }
/* Nobody waits for what it was. */
NCCL_DEVICE_INLINE void addTo(uint64_t *p, uint64_t v, cuda::memory_order o) {
  if (o == cuda::memory_order_relaxed)
    asm volatile("red.relaxed.sys.add.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory");
  else
    asm volatile("red.release.sys.add.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory");
}
template <typename T> NCCL_DEVICE_INLINE T fetchAdd(T *p, T v, cuda::memory_order o) {
  return (T)Word<sizeof(T)>::add(p, v, o != cuda::memory_order_relaxed);
}

#endif

/* For words that only this device's threads look at: the orders that cost a fence of the system cost one of the device. */
template <typename T> NCCL_DEVICE_INLINE void publish(T *p, T v) {
#if defined(GCCL_DEVICE_CPU)
  store(p, v, cuda::memory_order_release);
#else
  __threadfence();
  store(p, v, cuda::memory_order_relaxed);
#endif
}
/* A lock that nobody waits for: whoever gets it does the work of all. */
NCCL_DEVICE_INLINE bool tryLock(uint32_t *lock) {
#if defined(GCCL_DEVICE_CPU)
  return fetchAdd(lock, 1u, cuda::memory_order_acq_rel) == 0;
#else
  bool got = fetchAdd(lock, 1u, cuda::memory_order_relaxed) == 0;
  __threadfence(); /* before what the holder before has done */
  return got;
#endif
}
NCCL_DEVICE_INLINE void unlock(uint32_t *lock) { publish(lock, 0u); }
/* A word for the system, behind a fence of the system that the caller has made. */
template <typename T> NCCL_DEVICE_INLINE void storeFenced(T *p, T v) {
#if defined(GCCL_DEVICE_CPU)
  store(p, v, cuda::memory_order_release); /* ThreadSanitizer knows no fences */
#else
  store(p, v, cuda::memory_order_relaxed);
#endif
}

/* Two neighbouring words of 16 aligned bytes; each moves as one. No order with other memory. */
NCCL_DEVICE_INLINE void storePair(uint64_t *to, uint64_t a, uint64_t b) {
#if defined(GCCL_DEVICE_CPU)
  store(to, a, cuda::memory_order_relaxed);
  store(to + 1, b, cuda::memory_order_relaxed);
#else
  asm volatile("st.relaxed.sys.v2.u64 [%0],{%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
#endif
}

/* ---- The line of the LL protocol: 8 bytes of data, each half beside a flag ---- */

/* {data, flag, data, flag}. On a GPU the 16 bytes move as one; on a CPU each half moves as one, which is enough, because each half has
 * its flag. No order with other memory. */
struct alignas(16) LLLine {
  uint32_t lo, loFlag, hi, hiFlag;
};

NCCL_DEVICE_INLINE void storeLine(LLLine *to, uint32_t lo, uint32_t hi, uint32_t flag) {
#if defined(GCCL_DEVICE_CPU)
  uint64_t *half = reinterpret_cast<uint64_t *>(to);
  store(half, (uint64_t)flag << 32 | lo, cuda::memory_order_relaxed);
  store(half + 1, (uint64_t)flag << 32 | hi, cuda::memory_order_relaxed);
#else
  asm volatile("st.relaxed.sys.v4.u32 [%0],{%1,%3,%2,%3};" ::"l"(to), "r"(lo), "r"(hi), "r"(flag) : "memory");
#endif
}

NCCL_DEVICE_INLINE LLLine loadLine(LLLine const *from) {
  LLLine v;
#if defined(GCCL_DEVICE_CPU)
  uint64_t const *half = reinterpret_cast<uint64_t const *>(from);
  uint64_t a = load(half, cuda::memory_order_relaxed), b = load(half + 1, cuda::memory_order_relaxed);
  v.lo = (uint32_t)a;
  v.loFlag = (uint32_t)(a >> 32);
  v.hi = (uint32_t)b;
  v.hiFlag = (uint32_t)(b >> 32);
#else
  asm volatile("ld.relaxed.sys.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v.lo), "=r"(v.loFlag), "=r"(v.hi), "=r"(v.hiFlag) : "l"(from) : "memory");
#endif
  return v;
}

/* ---- Waits ---- */

/* A wait for a word. Every turn of the loop asks over(): true means give up, because the communicator's abort word is set, or a deadline
 * is over. cycles counts clock64() from the making of the Wait; 0 means no deadline of its own. expired says that it was the deadline.
 * what, object and peer (-1: none) name the wait in the launch's error text on the CPU.
 *
 *   Wait w(comm.abortFlag, "LSA barrier", index, peer);
 *   while (load(word, order) != want && !w.over(want, seen)) {} */
struct Wait {
  uint32_t const *abort;
  char const *what;
  uint64_t object;
  int peer;
  uint32_t turns;
  bool expired;
  uint64_t cycles, start;

  NCCL_DEVICE_INLINE Wait(uint32_t const *abort_, char const *what_, uint64_t object_, int peer_, uint64_t cycles_ = 0)
      : abort(abort_), what(what_), object(object_), peer(peer_), turns(0), expired(false), cycles(cycles_), start(0) {
    /* nvcc hands the initializers of a __device__ constructor to the host compiler, which knows no clock64(); bodies it leaves out. */
    if (cycles_) start = (uint64_t)clock64();
  }

  NCCL_DEVICE_INLINE bool over(uint64_t want, uint64_t seen) {
    if (cycles && (uint64_t)clock64() - start >= cycles) {
      expired = true;
      return true;
    }
#if defined(GCCL_DEVICE_CPU)
    return gccl_cpu_wait(abort, what, object, peer, want, seen) != 0;
#else
    (void)want;
    (void)seen;
    if (++turns < 4096) return false; /* the abort word is in host memory: look at it rarely */
    turns = 0;
    return abort && load(abort, cuda::memory_order_relaxed) != 0;
#endif
  }
};

} // namespace device
} // namespace gccl
#endif

#endif
