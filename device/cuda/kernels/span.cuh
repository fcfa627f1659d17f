/* The inner loops of leader kernels: a span of elements that lies in several buffers at the same offset is read from ns of them and
 * written to nd of them, by the blocks that the caller says. */
#ifndef GCCL_CUDA_KERNELS_SPAN_CUH
#define GCCL_CUDA_KERNELS_SPAN_CUH

#include "types.cuh"

DEV uint32_t type_size(uint32_t dtype) {
  return dtype <= 1 || dtype >= 10 ? 1 : dtype == 6 || dtype == 9 ? 2 : dtype == 2 || dtype == 3 || dtype == 7 ? 4 : 8;
}

/* Sources are send buffers of ranks s0 …, destinations receive buffers of ranks d0 …, each from its shift on. */
struct span {
  const gccl_leader_work &w;
  uint32_t s0, ns, d0, nd;
  uint64_t src_shift, dst_shift; /* bytes */
  uint32_t block, blocks;        /* which of how many blocks works on this span */
};

/* A single copy, by one block. */
struct one_copy {
  uint64_t src, dst;
  enum { ns = 1, nd = 1, block = 0, blocks = 1 };
};
DEV uint64_t source(const one_copy &j, uint32_t) { return j.src; }
DEV uint64_t destination(const one_copy &j, uint32_t) { return j.dst; }

DEV uint64_t source(const span &j, uint32_t s) { return j.w.rank[j.s0 + s].send + j.src_shift; }
DEV uint64_t destination(const span &j, uint32_t d) { return j.w.rank[j.d0 + d].recv + j.dst_shift; }

/* Bits in which addresses differ from the first source: where they are 0, one head makes all of them aligned. */
template <class J> DEV uint32_t phase_difference(const J &j) {
  uint32_t first = (uint32_t)source(j, 0), d = 0;
  for (uint32_t s = 1; s < j.ns; s++) d |= (uint32_t)source(j, s) ^ first;
  for (uint32_t k = 0; k < j.nd; k++) d |= (uint32_t)destination(j, k) ^ first;
  return d;
}

/* Scales of all ranks in the accumulator's type. */
template <class K> struct scales {
  typename K::acc of[GCCL_LEADER_RANKS];
};

/* One thread's U accesses, THREADS vectors apart, from byte `at` of the span on. Sources are loaded S at a time before the first
 * of them is used, and folded in rank order. */
template <class K, class V, int U, int S, class J> DEV void fold_at(const J &j, const scales<K> &scale, uint64_t at) {
  typedef typename K::acc A;
  A acc[U][V::N];
#pragma unroll
  for (int u = 0; u < U; u++)
#pragma unroll
    for (int i = 0; i < V::N; i++) acc[u][i] = K::identity();
#pragma unroll 1
  for (uint32_t s = 0; s < j.ns; s += S) {
    typename V::raw raw[S][U];
#pragma unroll
    for (int k = 0; k < S; k++) {
      if (s + k >= j.ns) break;
#pragma unroll
      for (int u = 0; u < U; u++) raw[k][u] = V::load(source(j, s + k) + at + u * (THREADS * V::BYTES));
    }
#pragma unroll
    for (int k = 0; k < S; k++) {
      if (s + k >= j.ns) break;
      const A by = K::op() == GCCL_WORK_PREMULSUM ? scale.of[s + k] : A();
#pragma unroll
      for (int u = 0; u < U; u++) {
#pragma unroll
        for (int i = 0; i < V::N; i++) {
          A a = K::widen(V::get(raw[k][u], i));
          if (K::op() == GCCL_WORK_PREMULSUM) a = K::prod(a, by);
          acc[u][i] = K::fold(acc[u][i], a);
        }
      }
    }
  }
  typename V::raw out[U] = {};
#pragma unroll
  for (int u = 0; u < U; u++) {
#pragma unroll
    for (int i = 0; i < V::N; i++) {
      const A a = K::op() == GCCL_WORK_SUMPOSTDIV ? K::divide(acc[u][i], j.w.div) : acc[u][i];
      V::put(out[u], i, K::narrow(a));
    }
  }
#pragma unroll 1
  for (uint32_t d = 0; d < j.nd; d++) {
#pragma unroll
    for (int u = 0; u < U; u++) V::store(destination(j, d) + at + u * (THREADS * V::BYTES), out[u]);
  }
}

/* The same for one source and no arithmetic. A destination that is the source is left alone. */
template <class V, int U, class J> DEV void copy_at(const J &j, uint64_t at) {
  typename V::raw raw[U];
#pragma unroll
  for (int u = 0; u < U; u++) raw[u] = V::load(source(j, 0) + at + u * (THREADS * V::BYTES));
#pragma unroll 1
  for (uint32_t d = 0; d < j.nd; d++) {
    if (destination(j, d) == source(j, 0)) continue;
#pragma unroll
    for (int u = 0; u < U; u++) V::store(destination(j, d) + at + u * (THREADS * V::BYTES), raw[u]);
  }
}

/* Accesses of a thread and sources that are loaded together: enough loads in flight, and registers for two blocks on a
 * multiprocessor. The compiler's report has the last word (tests/cuda). */
template <class B> struct shape {
#ifdef GCCL_ON_CPU
  enum { U = 2, S = 2, S_ONE = 3 }; /* less to compile, and every loop has its remainders */
#else
  enum { U = sizeof(B) == 4 ? 4 : 2, S = sizeof(B) == 1 || sizeof(B) == 4 ? 2 : 4, S_ONE = sizeof(B) == 1 ? 4 : 8 };
#endif
};

/* What fold_at and copy_at look like to the loops below. */
template <class K, class J = span> struct folder {
  typedef typename K::bits bits;
  const J &j;
  const scales<K> &scale;
  template <class V, int U> __device__ __forceinline__ void many(uint64_t at) const { fold_at<K, V, U, shape<bits>::S>(j, scale, at); }
  template <class V> __device__ __forceinline__ void one(uint64_t at) const { fold_at<K, V, 1, shape<bits>::S_ONE>(j, scale, at); }
};
template <class J> struct copier_of {
  typedef uint8_t bits;
  const J &j;
  template <class V, int U> __device__ __forceinline__ void many(uint64_t at) const { copy_at<V, U>(j, at); }
  template <class V> __device__ __forceinline__ void one(uint64_t at) const { copy_at<V, 1>(j, at); }
};
typedef copier_of<span> copier;
typedef copier_of<one_copy> list_copier;

/* n accesses of V from byte `first` on, in rounds in which every block has a tile of U accesses a thread. Returns what is left. */
template <class V, int U, class F> DEV uint64_t rounds(const F &f, uint64_t first, uint64_t n) {
  const uint64_t tile = U * THREADS, round = f.j.blocks * tile;
  uint64_t done = 0;
#pragma unroll 1
  for (; done + round <= n; done += round) f.template many<V, U>(first + (done + f.j.block * tile + threadIdx.x) * V::BYTES);
  return done;
}

/* n accesses of V one at a time, so that a small span is spread over all threads. */
template <class V, class F> DEV void rest(const F &f, uint64_t first, uint64_t n) {
#pragma unroll 1
  for (uint64_t i = (uint64_t)f.j.block * THREADS + threadIdx.x; i < n; i += (uint64_t)f.j.blocks * THREADS) f.template one<V>(first + i * V::BYTES);
}

/* The elements of a span that V can move: bytes from the first to the one after the last of them. */
struct moved {
  uint64_t head, body; /* elements before, elements moved */
};
template <class V, int U, class F> DEV moved move(const F &f, uint64_t count, uint32_t phase) {
  typedef typename F::bits B;
  uint64_t head = (V::BYTES - phase % V::BYTES) % V::BYTES / sizeof(B);
  if (head > count) head = count;
  const uint64_t n = (count - head) / V::N, done = rounds<V, U>(f, head * sizeof(B), n);
  rest<V>(f, head * sizeof(B) + done * V::BYTES, n - done);
  return moved{head, n * V::N};
}

/* The whole span of count elements, by the widest access that fits all addresses. U: accesses of 16
 * bytes a thread. */
template <class F, int U> DEV void run_span(const F &f, uint64_t count) {
  typedef typename F::bits B;
  const uint32_t phase = (uint32_t)source(f.j, 0), apart = phase_difference(f.j);
  const bool whole = phase % sizeof(B) == 0; /* elements do not straddle accesses */
  moved m = {0, 0};
  if (whole && apart % 16 == 0) {
    m = move<packed16<B>, U>(f, count, phase);
  } else if (sizeof(B) < 4 && whole && apart % 4 == 0) {
    if constexpr (sizeof(B) < 4) m = move<packed4<B>, 4>(f, count, phase);
  } else {
    m.body = rounds<single<B>, sizeof(B) == 8 ? 2 : 4>(f, 0, count);
  }
  const uint64_t head = m.head, body = m.body;
  const uint64_t edges = count - body;
#pragma unroll 1
  for (uint64_t i = (uint64_t)f.j.block * THREADS + threadIdx.x; i < edges; i += (uint64_t)f.j.blocks * THREADS)
    f.template one<single<B>>((i < head ? i : i + body) * sizeof(B));
}

template <class K> DEV void load_scales(const gccl_leader_work &w, scales<K> &scale) {
  for (uint32_t r = threadIdx.x; r < w.nranks; r += blockDim.x)
    scale.of[r] = w.scale_device >> r & 1 ? K::widen(load_element<typename K::bits>(w.rank[r].scale)) : K::scalar(w.rank[r].scale);
  __syncthreads();
}

/* The same in all threads of a block: all blocks of this launch have come here, and this one is the last. */
DEV bool last_block(uint64_t ticket) {
  if (gridDim.x == 1) return true;
  __syncthreads(); /* this block's stores come before its count */
  return __syncthreads_or(threadIdx.x == 0 && count_up(ticket, gridDim.x - 1) == gridDim.x - 1);
}

/* After all of a kernel's work: the last block says so to the ranks that want to know. */
template <class DONE, class VALUE> DEV void finish(uint64_t ticket, uint32_t n, DONE done, VALUE value) {
  int any = 0;
  for (uint32_t r = threadIdx.x; r < n; r += THREADS) any |= done(r) != 0;
  if (!__syncthreads_or(any) || !last_block(ticket)) return;
  for (uint32_t r = threadIdx.x; r < n; r += THREADS)
    if (done(r)) store_release_system(done(r), value(r));
}

/* Another kernel has done the operation already. */
DEV bool not_needed(const gccl_leader_work &w) { return w.unless && load_relaxed_system(w.unless) == GCCL_SPIN_DONE; }

#endif
