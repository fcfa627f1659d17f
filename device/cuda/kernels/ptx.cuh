/* Memory operations of the kernels: the only file with inline PTX, and the CPU form of each. PTX ISA 8.7 names in quotes.
 *
 * Addresses are 64-bit integers in the global space: device memory, a peer's memory, or pinned host memory. */
#ifndef GCCL_CUDA_KERNELS_PTX_CUH
#define GCCL_CUDA_KERNELS_PTX_CUH

#include "../../layout/work.h"

#ifdef GCCL_ON_CPU
#define GCCL_GPU(...)
#define GCCL_CPU(...) __VA_ARGS__
enum { GCCL_ON_GPU = 0 };
#else
enum { GCCL_ON_GPU = 1 };
#define GCCL_GPU(...) __VA_ARGS__
#define GCCL_CPU(...)
enum { THREADS = 512 }; /* of a block; a constant, so that a thread's accesses have constant distances */
#define GCCL_KERNEL(NAME, WORK, BLOCKS, BODY) \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) NAME(const __grid_constant__ WORK w) { BODY; }
#endif

#define DEV static __device__ __forceinline__

/* Raw vectors of 16, 4, 2 and 1 bytes and their plain loads and stores. Loads are volatile to the compiler, so they keep
 * their place among each other and among stores; that is all that in-place operation needs. */
struct alignas(16) vec16 {
  uint32_t w[4];
};

DEV vec16 load16(uint64_t a) {
  vec16 v;
  GCCL_GPU(asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3]) : "l"(a));)
  GCCL_CPU(memcpy(&v, (const void *)a, 16);)
  return v;
}
DEV void store16(uint64_t a, vec16 v) {
  GCCL_GPU(asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(a), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3]) : "memory");)
  GCCL_CPU(memcpy((void *)a, &v, 16);)
}

DEV uint64_t load8(uint64_t a) {
  uint64_t v;
  GCCL_GPU(asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(a));)
  GCCL_CPU(memcpy(&v, (const void *)a, 8);)
  return v;
}
DEV uint32_t load4(uint64_t a) {
  uint32_t v;
  GCCL_GPU(asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(a));)
  GCCL_CPU(memcpy(&v, (const void *)a, 4);)
  return v;
}
DEV uint16_t load2(uint64_t a) {
  uint16_t v;
  GCCL_GPU(asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(a));)
  GCCL_CPU(memcpy(&v, (const void *)a, 2);)
  return v;
}
DEV uint8_t load1(uint64_t a) {
  uint32_t v;
  GCCL_GPU(asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(a));)
  GCCL_CPU(v = *(const uint8_t *)a;)
  return (uint8_t)v;
}
DEV void store8(uint64_t a, uint64_t v) {
  GCCL_GPU(asm volatile("st.global.u64 [%0], %1;" ::"l"(a), "l"(v) : "memory");)
  GCCL_CPU(memcpy((void *)a, &v, 8);)
}
DEV void store4(uint64_t a, uint32_t v) {
  GCCL_GPU(asm volatile("st.global.u32 [%0], %1;" ::"l"(a), "r"(v) : "memory");)
  GCCL_CPU(memcpy((void *)a, &v, 4);)
}
DEV void store2(uint64_t a, uint16_t v) {
  GCCL_GPU(asm volatile("st.global.u16 [%0], %1;" ::"l"(a), "h"(v) : "memory");)
  GCCL_CPU(memcpy((void *)a, &v, 2);)
}
DEV void store1(uint64_t a, uint8_t v) {
  GCCL_GPU(asm volatile("st.global.u8 [%0], %1;" ::"l"(a), "r"((uint32_t)v) : "memory");)
  GCCL_CPU(*(uint8_t *)a = v;)
}

/* Adds 1 to a word of this device and returns the old value, back to 0 from `last`: "atom.inc". */
DEV uint32_t count_up(uint64_t a, uint32_t last) {
  GCCL_GPU(uint32_t old; asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(a), "r"(last) : "memory"); return old;)
  GCCL_CPU(uint32_t *p = (uint32_t *)a; uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
           while (!__atomic_compare_exchange_n(p, &old, old >= last ? 0 : old + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); return old;)
}

/* All that this thread and those before it in happens-before order wrote is visible to whoever acquires v. */
DEV void store_release_system(uint64_t a, uint32_t v) {
  GCCL_GPU(asm volatile("fence.acq_rel.sys; st.release.sys.global.u32 [%0], %1;" ::"l"(a), "r"(v) : "memory");)
  GCCL_CPU(__atomic_store_n((uint32_t *)a, v, __ATOMIC_RELEASE);)
}

/* Epoch words. */
DEV void store_release_system64(uint64_t a, uint64_t v) {
  GCCL_GPU(asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(a), "l"(v) : "memory");)
  GCCL_CPU(__atomic_store_n((uint64_t *)a, v, __ATOMIC_RELEASE);)
}
DEV uint64_t load_acquire_system64(uint64_t a) {
  GCCL_GPU(uint64_t v; asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(a) : "memory"); return v;)
  GCCL_CPU(return __atomic_load_n((uint64_t *)a, __ATOMIC_ACQUIRE);)
}
DEV uint32_t load_acquire_system(uint64_t a) {
  GCCL_GPU(uint32_t v; asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v;)
  GCCL_CPU(return __atomic_load_n((uint32_t *)a, __ATOMIC_ACQUIRE);)
}
DEV uint32_t load_relaxed_system(uint64_t a) {
  GCCL_GPU(uint32_t v; asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v;)
  GCCL_CPU(return __atomic_load_n((uint32_t *)a, __ATOMIC_RELAXED);)
}
/* Returns the old value; it was exchanged if that is `expected`. Words of this GPU only. */
DEV uint64_t compare_exchange(uint64_t a, uint64_t expected, uint64_t v) {
  GCCL_GPU(uint64_t old; asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(a), "l"(expected), "l"(v) : "memory");
           return old;)
  GCCL_CPU(__atomic_compare_exchange_n((uint64_t *)a, &expected, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); return expected;)
}

/* An LL line: two times 4 bytes of data and their flag. Each half is written and read as one; nothing orders them but the flag. */
struct ll_line {
  uint32_t data0, flag0, data1, flag1;
};
DEV void store_ll(uint64_t a, uint64_t data, uint32_t flag) {
  GCCL_GPU(asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%2};" ::"l"(a), "r"((uint32_t)data), "r"(flag), "r"((uint32_t)(data >> 32)) : "memory");)
  GCCL_CPU(__atomic_store_n((uint64_t *)a, (uint64_t)flag << 32 | (uint32_t)data, __ATOMIC_RELAXED);
           __atomic_store_n((uint64_t *)a + 1, (uint64_t)flag << 32 | data >> 32, __ATOMIC_RELAXED);)
}
DEV ll_line load_ll(uint64_t a) {
  ll_line l;
  GCCL_GPU(asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(l.data0), "=r"(l.flag0), "=r"(l.data1), "=r"(l.flag1) : "l"(a) : "memory");)
  GCCL_CPU(uint64_t x = __atomic_load_n((uint64_t *)a, __ATOMIC_RELAXED), y = __atomic_load_n((uint64_t *)a + 1, __ATOMIC_RELAXED);
           l.data0 = (uint32_t)x, l.flag0 = (uint32_t)(x >> 32), l.data1 = (uint32_t)y, l.flag1 = (uint32_t)(y >> 32);)
  return l;
}

/* For waits. */
DEV uint64_t now_ns() {
  GCCL_GPU(uint64_t t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t;)
  GCCL_CPU(timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;)
}
DEV void idle() { GCCL_CPU(usleep(50);) } /* ranks are threads, often more than there are processors */

#endif
