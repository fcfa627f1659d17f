/* cpu_names.h: CUDA's names for kernels that are compiled by a plain C++ compiler. Each means what CUDA's programming guide says of it;
 * what is different:
 *
 * - __shared__ variables live in thread-local storage of the CTA's operating-system thread. They are not initialised anew by a launch.
 *   Dynamic shared memory is not declared `extern __shared__`, but taken from gccl_device/cpu.h.
 * - __activemask() is the calling thread alone: which threads run together is nobody's promise.
 * - Loops that wait for memory must look at it through cuda::atomic_ref or cuda::atomic, which let other threads run now and then.
 * - clock64() counts nanoseconds. */
#ifndef GCCL_DEVICE_IMPL_CPU_NAMES_H
#define GCCL_DEVICE_IMPL_CPU_NAMES_H

#include <atomic>
#include <stdio.h>
#include <string.h>
#include <type_traits>

#include "cpu_runtime.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static thread_local
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict

/* ---- Vector types, with CUDA's alignment ---- */

#define GCCL_VEC(NAME, T, ALIGN2, ALIGN4) \
  struct NAME##1 {                        \
    T x;                                  \
  };                                      \
  struct alignas(ALIGN2) NAME##2 {        \
    T x, y;                               \
  };                                      \
  struct NAME##3 {                        \
    T x, y, z;                            \
  };                                      \
  struct alignas(ALIGN4) NAME##4 {        \
    T x, y, z, w;                         \
  };
GCCL_VEC(char, signed char, 2, 4)
GCCL_VEC(uchar, unsigned char, 2, 4)
GCCL_VEC(short, short, 4, 8)
GCCL_VEC(ushort, unsigned short, 4, 8)
GCCL_VEC(int, int, 8, 16)
GCCL_VEC(uint, unsigned, 8, 16)
GCCL_VEC(long, long, 16, 16)
GCCL_VEC(ulong, unsigned long, 16, 16)
GCCL_VEC(longlong, long long, 16, 16)
GCCL_VEC(ulonglong, unsigned long long, 16, 16)
GCCL_VEC(float, float, 8, 16)
GCCL_VEC(double, double, 16, 16)
#undef GCCL_VEC

inline float2 make_float2(float x, float y) { return float2{x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/* ---- Who am I ---- */

#define threadIdx (gccl_cpu_current->thread)
#define blockIdx (gccl_cpu_current->block)
#define blockDim (gccl_cpu_current->block_size)
#define gridDim (gccl_cpu_current->grid_size)
static constexpr int warpSize = 32;

/* ---- Barriers, votes, exchange ---- */

inline void __syncthreads() { gccl_cpu_barrier(0, 0, 0); }
inline int __syncthreads_count(int x) { return (int)(gccl_cpu_barrier(0, 0, x) & 0x7fffffffu); }
inline int __syncthreads_or(int x) { return (gccl_cpu_barrier(0, 0, x) & 0x7fffffffu) != 0; }
inline int __syncthreads_and(int x) { return (int)(gccl_cpu_barrier(0, 0, x) >> 31); }
inline void __barrier_sync(unsigned id) { gccl_cpu_barrier(id, 0, 0); }
inline void __barrier_sync_count(unsigned id, unsigned count) { gccl_cpu_barrier(id, count, 0); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { gccl_cpu_warp_sync(mask); }
inline unsigned __ballot_sync(unsigned mask, int x) { return gccl_cpu_ballot(mask, x); }
inline int __any_sync(unsigned mask, int x) { return gccl_cpu_ballot(mask, x) != 0; }
inline int __all_sync(unsigned mask, int x) { return gccl_cpu_ballot(mask, !x) == 0; }
inline unsigned __activemask() { return 1u << (gccl_cpu_current->rank & 31); }

namespace gccl {
namespace cpu {
template <typename T> inline T exchange(unsigned mask, T mine, int lane, bool inside) {
  static_assert(sizeof(T) <= 16 && std::is_trivially_copyable<T>::value, "shuffles move plain values of up to 16 bytes");
  T theirs = mine;
  unsigned self = gccl_cpu_current->rank & 31;
  gccl_cpu_exchange(mask, &mine, &theirs, sizeof(T), inside ? (unsigned)lane & 31u : self);
  return theirs;
}
} // namespace cpu
} // namespace gccl

template <typename T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  int self = (int)(gccl_cpu_current->rank & 31);
  return gccl::cpu::exchange(mask, v, (self & -width) | (lane & (width - 1)), true);
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  int self = (int)(gccl_cpu_current->rank & 31);
  return gccl::cpu::exchange(mask, v, self - (int)delta, (unsigned)(self & (width - 1)) >= delta);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  int self = (int)(gccl_cpu_current->rank & 31);
  return gccl::cpu::exchange(mask, v, self + (int)delta, (unsigned)(self & (width - 1)) + delta < (unsigned)width);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  int self = (int)(gccl_cpu_current->rank & 31);
  return gccl::cpu::exchange(mask, v, self ^ bits, ((self ^ bits) & -width) <= (self & -width));
}

/* ---- Bits, loads, time ---- */

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
/* Position of the offset-th set bit at or above base (offset > 0); 0xffffffff if there is none. */
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  for (unsigned bit = base; bit < 32; bit++)
    if ((mask >> bit & 1) && --offset == 0) return bit;
  return 0xffffffffu;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
template <typename T> inline T __ldg(const T *p) { return *p; }
inline long long clock64() { return (long long)gccl_cpu_clock(); }
inline void __nanosleep(unsigned) { gccl_cpu_yield(); }
[[noreturn]] inline void __trap() { gccl_cpu_trap("the kernel called __trap()"); }

/* ---- cuda::atomic_ref and what belongs to it (libcu++) ---- */

namespace cuda {
using memory_order = std::memory_order;
constexpr memory_order memory_order_relaxed = std::memory_order_relaxed;
constexpr memory_order memory_order_consume = std::memory_order_consume;
constexpr memory_order memory_order_acquire = std::memory_order_acquire;
constexpr memory_order memory_order_release = std::memory_order_release;
constexpr memory_order memory_order_acq_rel = std::memory_order_acq_rel;
constexpr memory_order memory_order_seq_cst = std::memory_order_seq_cst;

/* All scopes are the same on a CPU: its caches are coherent. */
enum thread_scope { thread_scope_system = 0, thread_scope_device = 1, thread_scope_block = 2, thread_scope_thread = 3 };

#if defined(__SANITIZE_THREAD__)
#define GCCL_CPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GCCL_CPU_TSAN 1
#endif
#endif

/* ThreadSanitizer does not know fences. A read-modify-write of one word that all fences share has the same effect, and it knows that. */
inline void atomic_thread_fence(memory_order order, thread_scope = thread_scope_system) {
#ifdef GCCL_CPU_TSAN
  static std::atomic<int> all{0};
  if (order != memory_order_relaxed) all.fetch_add(1, std::memory_order_acq_rel);
#else
  std::atomic_thread_fence(order);
#endif
}

template <typename T, thread_scope = thread_scope_system> class atomic_ref {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "atomics have 1, 2, 4 or 8 bytes");
  T *p_;
  /* A load in a loop may be a wait: let others run now and then. */
  static void pulse() {
    gccl_cpu_thread *self = gccl_cpu_current;
    if (self && ++self->pulse >= 64) gccl_cpu_yield();
  }
  static constexpr int order(memory_order o) { return (int)o; }

public:
  explicit atomic_ref(T &v) : p_(&v) {}
  T load(memory_order o = memory_order_seq_cst) const {
    pulse();
    T v;
    __atomic_load(p_, &v, order(o));
    return v;
  }
  void store(T v, memory_order o = memory_order_seq_cst) const { __atomic_store(p_, &v, order(o)); }
  T exchange(T v, memory_order o = memory_order_seq_cst) const {
    T was;
    __atomic_exchange(p_, &v, &was, order(o));
    return was;
  }
  bool compare_exchange_strong(T &is, T v, memory_order o = memory_order_seq_cst) const {
    pulse();
    memory_order fail = o == memory_order_acq_rel ? memory_order_acquire : o == memory_order_release ? memory_order_relaxed : o;
    return __atomic_compare_exchange(p_, &is, &v, false, order(o), order(fail));
  }
  bool compare_exchange_weak(T &is, T v, memory_order o = memory_order_seq_cst) const { return compare_exchange_strong(is, v, o); }
  T fetch_add(T v, memory_order o = memory_order_seq_cst) const { return __atomic_fetch_add(p_, v, order(o)); }
  T fetch_sub(T v, memory_order o = memory_order_seq_cst) const { return __atomic_fetch_sub(p_, v, order(o)); }
  T fetch_and(T v, memory_order o = memory_order_seq_cst) const { return __atomic_fetch_and(p_, v, order(o)); }
  T fetch_or(T v, memory_order o = memory_order_seq_cst) const { return __atomic_fetch_or(p_, v, order(o)); }
};

template <typename T, thread_scope S = thread_scope_system> class atomic {
  T v_;

public:
  atomic() = default;
  constexpr atomic(T v) : v_(v) {}
  atomic(const atomic &) = delete;
  T load(memory_order o = memory_order_seq_cst) const { return atomic_ref<T, S>(const_cast<T &>(v_)).load(o); }
  void store(T v, memory_order o = memory_order_seq_cst) { atomic_ref<T, S>(v_).store(v, o); }
  T exchange(T v, memory_order o = memory_order_seq_cst) { return atomic_ref<T, S>(v_).exchange(v, o); }
  T fetch_add(T v, memory_order o = memory_order_seq_cst) { return atomic_ref<T, S>(v_).fetch_add(v, o); }
  T fetch_sub(T v, memory_order o = memory_order_seq_cst) { return atomic_ref<T, S>(v_).fetch_sub(v, o); }
};
} // namespace cuda

inline void __threadfence_block() { cuda::atomic_thread_fence(cuda::memory_order_seq_cst); }
inline void __threadfence() { cuda::atomic_thread_fence(cuda::memory_order_seq_cst); }
inline void __threadfence_system() { cuda::atomic_thread_fence(cuda::memory_order_seq_cst); }

/* The old atomic functions: relaxed, as in CUDA. */
template <typename T> inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
template <typename T> inline T atomicSub(T *p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }
template <typename T> inline T atomicExch(T *p, T v) { return cuda::atomic_ref<T>(*p).exchange(v, cuda::memory_order_relaxed); }
template <typename T> inline T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
template <typename T> inline T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }
template <typename T> inline T atomicCAS(T *p, T is, T v) {
  cuda::atomic_ref<T>(*p).compare_exchange_strong(is, v, cuda::memory_order_relaxed);
  return is;
}
inline float atomicAdd(float *p, float v) {
  uint32_t is = __atomic_load_n((uint32_t *)p, __ATOMIC_RELAXED), to;
  float sum;
  do {
    memcpy(&sum, &is, 4);
    sum += v;
    memcpy(&to, &sum, 4);
  } while (!__atomic_compare_exchange_n((uint32_t *)p, &is, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  memcpy(&sum, &is, 4); /* what was there before */
  return sum;
}

#endif
