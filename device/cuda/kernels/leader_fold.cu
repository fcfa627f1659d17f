/* Leader kernels that fold: AllReduce, ReduceScatter, Reduce, for one element type. */
#include "span.cuh"
#include "names.cuh"

template <class K, int COLL> DEV void leader_pass(const gccl_leader_work &w, const scales<K> &scale) {
  typedef typename K::bits B;
  const uint32_t n = w.nranks;
  if (COLL == GCCL_REDUCE_SCATTER) { /* the grid has a multiple of nranks blocks */
    const uint32_t p = blockIdx.x % n;
    const span j = {w, 0, n, p, 1, p * w.count * sizeof(B), 0, blockIdx.x / n, gridDim.x / n};
    run_span<folder<K>, shape<B>::U>(folder<K>{j, scale}, w.count);
  } else {
    const span j = {w, 0, n, COLL == GCCL_REDUCE ? w.root : 0u, COLL == GCCL_REDUCE ? 1u : n, 0, 0, blockIdx.x, gridDim.x};
    run_span<folder<K>, shape<B>::U>(folder<K>{j, scale}, w.count);
  }
}

template <class K, int COLL> DEV void leader_fold(const gccl_leader_work &w) {
  __shared__ scales<K> scale;
  if (!not_needed(w)) {
    if constexpr (K::op() == GCCL_WORK_PREMULSUM) load_scales<K>(w, scale);
    leader_pass<K, COLL>(w, scale);
  }
  finish(w.ticket, w.nranks, [&](uint32_t r) { return w.rank[r].done; }, [&](uint32_t r) { return w.done_value[r]; });
}

#define FOLD(COLL, C, OP, O) GCCL_KERNEL(FOLD_NAME(COLL, OP, LEADER), gccl_leader_work, 2, (leader_fold<reduction<GCCL_ELEMENT, O>, C>(w)))
FOR_OPS(FOLD)
