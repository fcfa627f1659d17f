/* LL ("low latency"): data and flag in one store. A rank writes what a peer needs into its own slot at that peer, the peer polls it:
 * one way instead of two meetings. Only our own slots are written so, because the flags take half of the memory.
 *
 * A slot is used by every second operation of the block (parity of the LL epoch). It is free then: a peer has entered the operation in
 * between, whose data this block has waited for, so it has left the one before. Flags are the epoch's lower 31 bits and the top bit;
 * slots are cleared twice in 2^30 epochs, so that no flag of an earlier turn is taken for a new one. */
#ifndef GCCL_CUDA_KERNELS_LL_CUH
#define GCCL_CUDA_KERNELS_LL_CUH

#include "spin.cuh"

/* The valid bytes, at most 8, from an address that need not be aligned. */
DEV uint64_t load_item(uint64_t a, uint32_t valid) {
  if (valid == 8 && a % 8 == 0) return load8(a);
  if (a % 4 == 0 && valid % 4 == 0) return load4(a) | (valid == 8 ? (uint64_t)load4(a + 4) << 32 : 0);
  uint64_t v = 0;
  for (uint32_t i = 0; i < valid; i++) v |= (uint64_t)load1(a + i) << (8 * i);
  return v;
}
DEV void store_item(uint64_t a, uint64_t v, uint32_t valid) {
  if (valid == 8 && a % 8 == 0) {
    store8(a, v);
  } else if (a % 4 == 0 && valid % 4 == 0) {
    store4(a, (uint32_t)v);
    if (valid == 8) store4(a + 4, (uint32_t)(v >> 32));
  } else {
    for (uint32_t i = 0; i < valid; i++) store1(a + i, (uint8_t)(v >> (8 * i)));
  }
}

/* The slots of one parity of this block; from: the rank that writes them. */
DEV uint64_t ll_slot(const gccl_spin_work &w, uint32_t at, uint64_t epoch, uint32_t from) {
  const uint64_t block = ((epoch & 1) * GCCL_LL_BLOCKS + blockIdx.x) * w.op.nranks + from;
  return w.area[at] + GCCL_SPIN_LL + block * (GCCL_LL_ITEMS * 16);
}

/* bytes: of what goes from one rank to one other. OP(valid) is made for each item of 8 bytes: send(q) is what goes to q, and take(q, v)
 * gets what came from q, in rank order; end() stores the result. */
template <class ITEM> DEV void low_latency(const gccl_spin_work &w, uint64_t bytes, ITEM make) {
  enum { S = 4 }; /* lines that are polled together */
  const uint32_t n = w.op.nranks, me = w.rank;
  const uint64_t word = my_area(w) + GCCL_SPIN_LL_EPOCH + 8 * blockIdx.x;
  const uint64_t epoch = load8(word) + 1;
  const uint32_t flag = (uint32_t)epoch | 0x80000000u;
  bool there = true;
  if (w.bound && !begin_together(w)) {
    conclude(w, GCCL_SPIN_GAVE_UP);
    return;
  }
  for (uint32_t i = threadIdx.x; i < GCCL_LL_ITEMS && there; i += blockDim.x) {
    const uint64_t at = ((uint64_t)blockIdx.x * GCCL_LL_ITEMS + i) * 8;
    if (at >= bytes) break;
    auto item = make(at, bytes - at < 8 ? (uint32_t)(bytes - at) : 8u);
    for (uint32_t k = 1; k < n; k++) {
      const uint32_t q = me + k < n ? me + k : me + k - n;
      store_ll(ll_slot(w, q, epoch, me) + i * 16, item.send(q), flag);
    }
    for (uint32_t q0 = 0; q0 < n && there; q0 += S) {
      ll_line l[S];
      bool all = false;
      for (uint32_t polls = 1; !all; polls++) {
        all = true;
#pragma unroll
        for (int k = 0; k < S; k++) {
          const uint32_t q = q0 + k < n && q0 + k != me ? q0 + k : (me == 0 ? n - 1 : 0); /* a line that comes anyway */
          l[k] = load_ll(ll_slot(w, me, epoch, q) + i * 16);
          all &= n == 1 || (l[k].flag0 == flag && l[k].flag1 == flag);
        }
        if (!all && polls % LOOK_EVERY == 0 && aborted(w)) {
          there = false;
          break;
        }
        if (!all) idle();
      }
      if (!there) break;
#pragma unroll
      for (int k = 0; k < S; k++) {
        const uint32_t q = q0 + k;
        if (q < n) item.take(q, q == me ? item.send(me) : l[k].data0 | (uint64_t)l[k].data1 << 32);
      }
    }
    if (there) item.end();
  }
  there = !__syncthreads_or(!there);
  if ((epoch & 0x3ffffffe) == 0) {
    for (uint32_t q = 0; q < n; q++)
      for (uint32_t i = threadIdx.x; i < GCCL_LL_ITEMS; i += blockDim.x) store_ll(ll_slot(w, me, epoch, q) + i * 16, 0, 0);
  }
  if (threadIdx.x == 0) store8(word, epoch);
  conclude(w, there ? GCCL_SPIN_DONE : GCCL_SPIN_ABORTED);
}

#endif
