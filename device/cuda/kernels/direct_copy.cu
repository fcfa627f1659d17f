/* Direct kernels without an operator. */
#include "direct.cuh"

template <int COLL> DEV void direct_copy(const gccl_spin_work &s) {
  const gccl_leader_work &w = s.op;
  const uint32_t n = w.nranks, me = s.rank;
  const uint64_t bytes = w.count * type_size(w.dtype);
  direct(s, [&] {
    if (COLL == GCCL_ALL_GATHER) { /* to everybody's part of mine */
      const peer_span j = {{w, me, 1, 0, n, 0, me * bytes, blockIdx.x, gridDim.x}, me};
      run_span<copier_of<peer_span>, 4>(copier_of<peer_span>{j}, bytes);
    } else if (COLL == GCCL_BROADCAST) { /* everybody carries its share from the root to all: the root's links carry it once */
      const share mine = share_of(bytes, 1, n, me);
      const peer_span j = {{w, w.root, 1, 0, n, mine.first, mine.first, blockIdx.x, gridDim.x}, me};
      run_span<copier_of<peer_span>, 4>(copier_of<peer_span>{j}, mine.count);
    } else if (COLL == GCCL_ALL_TO_ALL) {
      for (uint32_t k = 0; k < n; k++) {
        const uint32_t d = me + k < n ? me + k : me + k - n;
        const peer_span j = {{w, me, 1, d, 1, d * bytes, me * bytes, blockIdx.x, gridDim.x}, 0};
        run_span<copier_of<peer_span>, 4>(copier_of<peer_span>{j}, bytes);
      }
    } else if (COLL == GCCL_GATHER) {
      const peer_span j = {{w, me, 1, w.root, 1, 0, me * bytes, blockIdx.x, gridDim.x}, 0};
      run_span<copier_of<peer_span>, 4>(copier_of<peer_span>{j}, bytes);
    } else {
      const peer_span j = {{w, w.root, 1, me, 1, me * bytes, 0, blockIdx.x, gridDim.x}, 0};
      run_span<copier_of<peer_span>, 4>(copier_of<peer_span>{j}, bytes);
    }
  });
}

#define COPY(NAME, C) GCCL_KERNEL(ncclDevKernel_##NAME##_GCCL_DIRECT, gccl_spin_work, 1, direct_copy<C>(w))
COPY(AllGather, GCCL_ALL_GATHER)
COPY(Broadcast, GCCL_BROADCAST)
COPY(AllToAll, GCCL_ALL_TO_ALL)
COPY(Gather, GCCL_GATHER)
COPY(Scatter, GCCL_SCATTER)
