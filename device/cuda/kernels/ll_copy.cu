/* LL kernels without an operator. Only collectives in which every rank receives from every other: see ll.cuh. */
#include "ll.cuh"

struct ll_moved {
  uint64_t send_at, recv_at; /* addresses of this item in part 0 */
  uint64_t stride, send_stride;
  uint32_t valid;
  uint64_t mine;
  __device__ uint64_t send(uint32_t q) const { return send_stride ? load_item(send_at + q * send_stride, valid) : mine; }
  __device__ void take(uint32_t q, uint64_t v) { store_item(recv_at + q * stride, v, valid); }
  __device__ void end() {}
};

template <int COLL> DEV void ll_copy(const gccl_spin_work &s) {
  const gccl_leader_work &w = s.op;
  const uint64_t bytes = w.count * type_size(w.dtype);
  low_latency(s, bytes, [&](uint64_t at, uint32_t valid) {
    ll_moved m = {w.rank[s.rank].send + at, w.rank[s.rank].recv + at, bytes, COLL == GCCL_ALL_TO_ALL ? bytes : 0, valid, 0};
    if (!m.send_stride) m.mine = load_item(m.send_at, valid);
    return m;
  });
}

GCCL_KERNEL(ncclDevKernel_AllGather_GCCL_LL, gccl_spin_work, 1, ll_copy<GCCL_ALL_GATHER>(w))
GCCL_KERNEL(ncclDevKernel_AllToAll_GCCL_LL, gccl_spin_work, 1, ll_copy<GCCL_ALL_TO_ALL>(w))
