/* Leader kernels that only move bytes: collectives without an operator, and lists of copies. */
#include "span.cuh"

template <int COLL> DEV void leader_copy(const gccl_leader_work &w) {
  const uint32_t n = w.nranks, parts = COLL == GCCL_BROADCAST ? 1 : COLL == GCCL_ALL_TO_ALL ? n * n : n;
  const uint64_t bytes = w.count * type_size(w.dtype);
  const uint32_t p = blockIdx.x % parts; /* the grid has a multiple of that many blocks */
  /* From part `from` of the send buffer of rank s to part `to` of the receive buffers of nd ranks from d on. */
  uint32_t s = p, d = 0, from = 0, to = p, nd = 1;
  if (COLL == GCCL_BROADCAST) s = w.root, nd = n, to = 0;
  if (COLL == GCCL_ALL_GATHER) nd = n;
  if (COLL == GCCL_GATHER) d = w.root;
  if (COLL == GCCL_SCATTER) s = w.root, d = p, from = p, to = 0;
  if (COLL == GCCL_ALL_TO_ALL) s = p / n, d = p % n, from = d, to = s;
  const span j = {w, s, 1, d, nd, from * bytes, to * bytes, blockIdx.x / parts, gridDim.x / parts};
  if (!not_needed(w)) run_span<copier, 4>(copier{j}, bytes);
  finish(w.ticket, w.nranks, [&](uint32_t r) { return w.rank[r].done; }, [&](uint32_t r) { return w.done_value[r]; });
}

/* Blocks take chunks of the whole list in turn. */
DEV void copy_list(const gccl_copy_work &w) {
  uint64_t first = 0; /* number of item i's first chunk */
  uint32_t i = 0;
#pragma unroll 1
  for (uint64_t c = blockIdx.x;; c += gridDim.x) {
    uint64_t chunks;
    for (; i < w.n; first += chunks, i++) {
      chunks = (w.item[i].bytes + w.chunk - 1) / w.chunk;
      if (c < first + chunks) break;
    }
    if (i == w.n) break;
    const uint64_t at = (c - first) * w.chunk, left = w.item[i].bytes - at;
    const one_copy j = {w.item[i].src + at, w.item[i].dst + at};
    if (w.item[i].src != w.item[i].dst) run_span<list_copier, 4>(list_copier{j}, left < w.chunk ? left : w.chunk);
  }
  finish(w.ticket, w.ndone, [&](uint32_t r) { return w.done[r]; }, [&](uint32_t) { return w.done_value; });
}

#define COPY(NAME, C) GCCL_KERNEL(ncclDevKernel_##NAME##_GCCL_LEADER, gccl_leader_work, 2, leader_copy<C>(w))
COPY(AllGather, GCCL_ALL_GATHER)
COPY(Broadcast, GCCL_BROADCAST)
COPY(AllToAll, GCCL_ALL_TO_ALL)
COPY(Gather, GCCL_GATHER)
COPY(Scatter, GCCL_SCATTER)
GCCL_KERNEL(ncclDevKernel_SendRecv_GCCL_LEADER, gccl_copy_work, 2, copy_list(w))
