/* How the blocks of spinning kernels wait for each other: block b for block b of the other ranks. Every wait looks at the abort word.
 *
 * Epochs are counts in device memory that each block advances itself, so a replayed graph goes on where the last run ended, and
 * ranks agree because they launch the same grids in the same order. */
#ifndef GCCL_CUDA_KERNELS_SPIN_CUH
#define GCCL_CUDA_KERNELS_SPIN_CUH

#include "span.cuh"

enum { LOOK_EVERY = 256 }; /* polls between two looks at the abort word, which may be in host memory: a guess, not measured */

DEV uint64_t my_area(const gccl_spin_work &w) { return w.area[w.rank]; }

DEV bool aborted(const gccl_spin_work &w) { return w.abort && load_relaxed_system(w.abort); }

/* Polls until the word has reached v; false after an abort. */
DEV bool wait_for(const gccl_spin_work &w, uint64_t word, uint64_t v) {
  for (uint32_t polls = 1; load_acquire_system64(word) < v; polls++) {
    if (polls % LOOK_EVERY == 0 && aborted(w)) return false;
    idle();
  }
  return true;
}

/* Every rank's block has come here: what its threads and the kernels before it wrote is visible to the others' blocks, and theirs here.
 * The release of each word is acquired by the peer's wait_for. */
DEV bool meet(const gccl_spin_work &w, uint64_t epoch) {
  bool there = true;
  __syncthreads();
  for (uint32_t q = threadIdx.x; q < w.op.nranks; q += THREADS) {
    if (q == w.rank) continue;
    store_release_system64(w.area[q] + GCCL_SPIN_FLAGS + 8 * (blockIdx.x * GCCL_SPIN_RANKS + w.rank), epoch);
    there &= wait_for(w, my_area(w) + GCCL_SPIN_FLAGS + 8 * (blockIdx.x * GCCL_SPIN_RANKS + q), epoch);
  }
  return !__syncthreads_or(!there);
}

/* The bounded form: all blocks of all ranks have begun, so they run together and no wait is for something that has not started.
 * Otherwise all give up, after w.bound microseconds. One word decides for all: operation, "given up", how many blocks have begun. */
DEV bool begin_together(const gccl_spin_work &w) {
  const uint64_t word = w.area[0] + GCCL_SPIN_START, up = 0x80000000u, mine = (load8(my_area(w) + GCCL_SPIN_OPS) + 1) << 32;
  const uint32_t all = (GCCL_ON_GPU ? gridDim.x : 1) * w.op.nranks; /* on the CPU blocks run one after another: the first one decides */
  bool together = true;
  if (threadIdx.x == 0) {
    uint64_t seen = load_acquire_system64(word);
    for (;;) { /* count this block in */
      const bool ours = (seen & ~(uint64_t)0xffffffffu) == mine;
      if ((ours && seen & up) || (!GCCL_ON_GPU && blockIdx.x > 0)) break;
      const uint64_t old = compare_exchange(word, seen, ours ? seen + 1 : mine + 1);
      if (old == seen) break;
      seen = old;
    }
    const uint64_t start = now_ns();
    for (;;) {
      seen = load_acquire_system64(word);
      if ((seen & ~(uint64_t)0xffffffffu) != mine || (uint32_t)seen == all) break; /* the others may be in their next kernel already */
      if (!(seen & up) && now_ns() - start > w.bound * (uint64_t)1000) compare_exchange(word, seen, seen | up);
      if (seen & up) {
        together = false;
        break;
      }
      idle();
    }
  }
  return !__syncthreads_or(!together);
}

/* The end of a kernel. What became of it is the same in all its blocks, except that an abort may reach only some of them: each
 * block says so itself then. The done word tells that it has ended, in whatever way. */
DEV void conclude(const gccl_spin_work &w, uint32_t status) {
  const bool ended = status != GCCL_SPIN_ABORTED;
  const uint64_t done = w.op.rank[w.rank].done;
  if (!ended && w.status && threadIdx.x == 0) store_release_system(w.status, status);
  if (!done && (!ended || (!w.status && !w.bound))) return;
  if (!last_block(w.op.ticket) || threadIdx.x != 0) return;
  const uint64_t ops = my_area(w) + GCCL_SPIN_OPS;
  if (ended && w.bound) store8(ops, load8(ops) + 1); /* all blocks have read it */
  if (ended && w.status) store_release_system(w.status, status);
  if (done) store_release_system(done, w.op.done_value[w.rank]);
}

#endif
