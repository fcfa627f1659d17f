/* All-reduce through multicast addresses: each rank lets the switch add its share and store it to all. sm_90 and later; on the CPU the
 * switch is emulated by a fold in rank order. The switch's order of additions is its own: the same bits on all ranks, but not always
 * those of the other kernels. */
#include "direct.cuh"

/* PTX ISA 8.7, "multimem.ld_reduce" and "multimem.st". Sums of fp16 and bf16 are accumulated in fp32. */
#define MULTIMEM_TYPE(NAME, PTX_TYPE, ACC)                                                                                                \
  struct mm_##NAME : type_##NAME {                                                                                                        \
    DEV vec16 load_reduce(const gccl_multimem_work &w, uint64_t at) {                                                                     \
      vec16 v = {};                                                                                                                       \
      GCCL_GPU(asm volatile("multimem.ld_reduce.relaxed.sys.global.add" ACC ".v4." PTX_TYPE " {%0,%1,%2,%3}, [%4];"                       \
                            : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])                                                      \
                            : "l"(w.send + at)                                                                                            \
                            : "memory");)                                                                                                 \
      GCCL_CPU(v = emulated<mm_##NAME>(w, at);)                                                                                           \
      return v;                                                                                                                           \
    }                                                                                                                                     \
    DEV void store_all(const gccl_multimem_work &w, uint64_t at, vec16 v) {                                                               \
      GCCL_GPU(asm volatile("multimem.st.relaxed.sys.global.v4." PTX_TYPE " [%0], {%1,%2,%3,%4};" ::"l"(w.recv + at), "r"(v.w[0]),        \
                            "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])                                                                         \
                            : "memory");)                                                                                                 \
      GCCL_CPU(for (uint32_t q = 0; q < w.spin.op.nranks; q++) store16(w.spin.op.rank[q].recv + at, v);)                                  \
    }                                                                                                                                     \
  };

/* Between accesses by multicast addresses and by others to the same memory: "fence.proxy.alias". */
DEV void alias_fence() { GCCL_GPU(asm volatile("fence.proxy.alias;" ::: "memory");) }

#ifdef GCCL_ON_CPU
template <class T> DEV vec16 emulated(const gccl_multimem_work &w, uint64_t at) {
  typedef packed16<typename T::bits> V;
  vec16 sum = {};
  for (int i = 0; i < V::N; i++) {
    float a = T::zero();
    for (uint32_t q = 0; q < w.spin.op.nranks; q++) a = T::sum(a, T::widen(V::get(load16(w.spin.op.rank[q].send + at), i)));
    V::put(sum, i, T::narrow(a));
  }
  return sum;
}
#endif

#if defined(GCCL_ON_CPU) || __CUDA_ARCH__ >= 900
MULTIMEM_TYPE(f32, "f32", "")
MULTIMEM_TYPE(f16, "f16x2", ".acc::f32")
MULTIMEM_TYPE(bf16, "bf16x2", ".acc::f32")

template <class T> DEV void multimem_all_reduce(const gccl_multimem_work &w) {
  typedef packed16<typename T::bits> V;
  const gccl_leader_work &op = w.spin.op;
  direct(w.spin, [&] {
    alias_fence();
    const uint64_t whole = op.count / V::N * V::N;
    const share mine = share_of(whole, sizeof(typename T::bits), op.nranks, w.spin.rank);
    const uint64_t first = mine.first * sizeof(typename T::bits), n = mine.count / V::N;
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * THREADS) {
      const vec16 sum = T::load_reduce(w, first + i * 16);
      vec16 out = {};
#pragma unroll
      for (int k = 0; k < V::N; k++) V::put(out, k, T::narrow(T::widen(V::get(sum, k)))); /* NaNs become canonical */
      T::store_all(w, first + i * 16, out);
    }
    alias_fence();
    if (w.spin.rank != 0 || blockIdx.x != 0) return; /* elements after the last vector: the first rank, one by one */
    typedef reduction<T, GCCL_WORK_SUM> K;
    __shared__ scales<K> unused;
    const uint64_t at = whole * sizeof(typename T::bits);
    const span j = {op, 0, op.nranks, 0, op.nranks, at, at, 0, 1};
    run_span<folder<K>, 1>(folder<K>{j, unused}, op.count - whole);
  });
}

#define MULTIMEM(NAME) GCCL_KERNEL(ncclDevKernel_AllReduce_Sum_##NAME##_GCCL_MULTIMEM, gccl_multimem_work, 1, multimem_all_reduce<mm_##NAME>(w))
MULTIMEM(f32)
MULTIMEM(f16)
MULTIMEM(bf16)
#endif
