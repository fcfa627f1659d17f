/* LL kernels that fold, for one element type: every rank sends its elements to all and folds for itself. Reduce has none: a rank that
 * receives nothing could not know that its slots are free. */
#include "ll.cuh"
#include "names.cuh"

template <class K> struct ll_folded {
  typedef typename K::bits B;
  enum { N = 8 / sizeof(B) };
  const gccl_leader_work &w;
  const scales<K> &scale;
  uint64_t send_at, recv_at; /* addresses of this item; send_at in part 0 */
  uint64_t stride;           /* between the parts for different ranks; 0: all get the same */
  uint32_t valid;
  uint64_t mine; /* what all get, when they do */
  typename K::acc acc[N];
  __device__ uint64_t send(uint32_t q) const { return stride ? load_item(send_at + q * stride, valid) : mine; }
  __device__ void take(uint32_t q, uint64_t v) {
    for (int i = 0; i < N; i++) {
      typename K::acc a = K::widen((B)(v >> (8 * sizeof(B) * i) % 64));
      if (K::op() == GCCL_WORK_PREMULSUM) a = K::prod(a, scale.of[q]);
      acc[i] = K::fold(acc[i], a);
    }
  }
  __device__ void end() {
    uint64_t v = 0;
    for (int i = 0; i < N; i++)
      v |= (uint64_t)K::narrow(K::op() == GCCL_WORK_SUMPOSTDIV ? K::divide(acc[i], w.div) : acc[i]) << (8 * sizeof(B) * i) % 64;
    store_item(recv_at, v, valid);
  }
};

template <class K, int COLL> DEV void ll_fold(const gccl_spin_work &s) {
  const gccl_leader_work &w = s.op;
  const uint64_t bytes = w.count * sizeof(typename K::bits);
  __shared__ scales<K> scale;
  if constexpr (K::op() == GCCL_WORK_PREMULSUM) load_scales<K>(w, scale);
  low_latency(s, bytes, [&](uint64_t at, uint32_t valid) {
    ll_folded<K> f = {w, scale, w.rank[s.rank].send + at, w.rank[s.rank].recv + at, COLL == GCCL_REDUCE_SCATTER ? bytes : 0, valid, 0, {}};
    if (!f.stride) f.mine = load_item(f.send_at, valid);
    for (int i = 0; i < ll_folded<K>::N; i++) f.acc[i] = K::identity();
    return f;
  });
}

#define FOLD(COLL, C, OP, O) CAT(FOLD_, COLL)(OP, O)
#define FOLD_AllReduce(OP, O) \
  GCCL_KERNEL(FOLD_NAME(AllReduce, OP, LL), gccl_spin_work, 1, (ll_fold<reduction<GCCL_ELEMENT, O>, GCCL_ALL_REDUCE>(w)))
#define FOLD_ReduceScatter(OP, O) \
  GCCL_KERNEL(FOLD_NAME(ReduceScatter, OP, LL), gccl_spin_work, 1, (ll_fold<reduction<GCCL_ELEMENT, O>, GCCL_REDUCE_SCATTER>(w)))
#define FOLD_Reduce(OP, O)
FOR_OPS(FOLD)
