/* Leader kernels that fold: AllReduce, ReduceScatter, Reduce, for one element type (-DGCCL_TYPE=f32 and so on). */
#include "span.cuh"

template <class K> DEV void load_scales(const gccl_leader_work &w, scales<K> &scale) {
  for (uint32_t r = threadIdx.x; r < w.nranks; r += THREADS)
    scale.of[r] = w.scale_device >> r & 1 ? K::widen(load_element<typename K::bits>(w.rank[r].scale)) : K::scalar(w.rank[r].scale);
  __syncthreads();
}

template <class K, int COLL> DEV void leader_fold(const gccl_leader_work &w) {
  typedef typename K::bits B;
  enum { U = shape<B>::U };
  __shared__ scales<K> scale;
  if constexpr (K::OP == GCCL_WORK_PREMULSUM) load_scales<K>(w, scale);
  if (COLL == GCCL_REDUCE_SCATTER) { /* the grid has a multiple of nranks blocks */
    const uint32_t p = blockIdx.x % w.nranks;
    const span j = {w, 0, w.nranks, p, 1, p * w.count * sizeof(B), 0, blockIdx.x / w.nranks, gridDim.x / w.nranks};
    run_span<folder<K>, U>(folder<K>{j, scale}, w.count);
  } else {
    const span j = {w, 0, w.nranks, COLL == GCCL_REDUCE ? w.root : 0u, COLL == GCCL_REDUCE ? 1u : w.nranks, 0, 0, blockIdx.x, gridDim.x};
    run_span<folder<K>, U>(folder<K>{j, scale}, w.count);
  }
  finish(w.ticket, w.nranks, w.done_value, [&](uint32_t r) { return w.rank[r].done; });
}

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define NAME_(COLL, OP, TYPE) ncclDevKernel_##COLL##_##OP##_##TYPE##_GCCL_LEADER
#define NAME(COLL, OP, TYPE) NAME_(COLL, OP, TYPE)
#define FOLD(COLL, C, OP, O)                                                                                      \
  GCCL_KERNEL(NAME(COLL, OP, GCCL_TYPE), gccl_leader_work, 2, (leader_fold<reduction<CAT(type_, GCCL_TYPE), O>, C>(w)))
#define FOLDS(OP, O)                         \
  FOLD(AllReduce, GCCL_ALL_REDUCE, OP, O)    \
  FOLD(ReduceScatter, GCCL_REDUCE_SCATTER, OP, O) \
  FOLD(Reduce, GCCL_REDUCE, OP, O)
FOLDS(Sum, GCCL_WORK_SUM)
FOLDS(Prod, GCCL_WORK_PROD)
FOLDS(Max, GCCL_WORK_MAX)
FOLDS(Min, GCCL_WORK_MIN)
FOLDS(PreMulSum, GCCL_WORK_PREMULSUM)
#ifdef GCCL_TYPE_IS_INTEGER
FOLDS(SumPostDiv, GCCL_WORK_SUMPOSTDIV)
#endif
