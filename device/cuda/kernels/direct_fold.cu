/* Direct kernels that fold, for one element type. AllReduce in two shots at once: each rank folds its share of all sources and
 * stores it to all destinations. */
#include "direct.cuh"
#include "names.cuh"

template <class K, int COLL> DEV void direct_fold(const gccl_spin_work &s) {
  typedef typename K::bits B;
  const gccl_leader_work &w = s.op;
  const uint32_t n = w.nranks, me = s.rank;
  __shared__ scales<K> scale;
  direct(s, [&] {
    if constexpr (K::op() == GCCL_WORK_PREMULSUM) load_scales<K>(w, scale);
    if (COLL == GCCL_REDUCE_SCATTER) {
      const peer_span j = {{w, 0, n, me, 1, me * w.count * sizeof(B), 0, blockIdx.x, gridDim.x}, 0};
      run_span<folder<K, peer_span>, shape<B>::U>(folder<K, peer_span>{j, scale}, w.count);
    } else {
      const share mine = share_of(w.count, sizeof(B), n, me);
      const uint64_t at = mine.first * sizeof(B);
      const peer_span j = {{w, 0, n, COLL == GCCL_REDUCE ? w.root : 0u, COLL == GCCL_REDUCE ? 1u : n, at, at, blockIdx.x, gridDim.x},
                           COLL == GCCL_REDUCE ? 0 : me};
      run_span<folder<K, peer_span>, shape<B>::U>(folder<K, peer_span>{j, scale}, mine.count);
    }
  });
}

#define FOLD(COLL, C, OP, O) \
  GCCL_KERNEL(FOLD_NAME(COLL, OP, DIRECT), gccl_spin_work, 1, (direct_fold<reduction<GCCL_ELEMENT, O>, C>(w)))
FOR_OPS(FOLD)
