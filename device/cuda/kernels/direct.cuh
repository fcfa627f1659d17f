/* One rank's part of a collective on buffers that its peers reach: a meeting (buffers are ready), one pass over its share that reads
 * and writes the others' memory, and a meeting (buffers are free, results are there). Works in place. */
#ifndef GCCL_CUDA_KERNELS_DIRECT_CUH
#define GCCL_CUDA_KERNELS_DIRECT_CUH

#include "spin.cuh"

/* As span, and destinations begin after this rank: not all ranks write to the same one at a time. */
struct peer_span : span {
  uint32_t turn;
};
DEV uint64_t destination(const peer_span &j, uint32_t d) {
  uint32_t r = d + j.turn;
  if (r >= j.nd) r -= j.nd;
  return j.w.rank[j.d0 + r].recv + j.dst_shift;
}

/* This rank's share of a buffer of count elements that all ranks work on: pieces of whole lines of 128 bytes. */
struct share {
  uint64_t first, count; /* elements */
};
DEV share share_of(uint64_t count, uint32_t element_size, uint32_t nranks, uint32_t rank) {
  const uint32_t line = 128 / element_size;
  const uint64_t each = ((count + nranks - 1) / nranks + line - 1) / line * line, first = each * rank;
  share s = {first, 0};
  if (first < count) s.count = count - first < each ? count - first : each;
  return s;
}

template <class PASS> DEV void direct(const gccl_spin_work &w, PASS pass) {
  const uint64_t word = my_area(w) + GCCL_SPIN_EPOCH + 8 * blockIdx.x;
  const uint64_t epoch = load8(word);
  if (w.bound && !begin_together(w)) {
    conclude(w, GCCL_SPIN_GAVE_UP);
    return;
  }
  bool there = meet(w, epoch + 1);
  if (there) {
    pass();
    there = meet(w, epoch + 2);
  }
  if (threadIdx.x == 0) store8(word, epoch + 2);
  conclude(w, there ? GCCL_SPIN_DONE : GCCL_SPIN_ABORTED);
}

#endif
