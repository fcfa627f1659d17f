/* reduce_copy_impl.h: the loop of reduce_copy.h.
 *
 * Elements go in packs of 16 bytes (4 for small types) where all places allow it: the head up to the boundary and the tail element by
 * element. Within a pack's round a thread has UNROLL elements in flight: all loads of one source are issued before they are combined. */
#ifndef GCCL_DEVICE_IMPL_REDUCE_COPY_IMPL_H
#define GCCL_DEVICE_IMPL_REDUCE_COPY_IMPL_H

#include "../ptr.h"
#include "multimem.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

/* ---- Places ---- */

template <typename T> struct OnePlace {
  T *p;
  NCCL_DEVICE_INLINE T *operator()(int) const { return p; }
};
template <typename T> struct Strided {
  T *base;
  size_t displ; /* elements */
  NCCL_DEVICE_INLINE T *operator()(int i) const { return base + (size_t)i * displ; }
};
template <typename T> struct TeamPlaces {
  ncclSymPtr<T> p;
  ncclTeam team;
  NCCL_DEVICE_INLINE T *operator()(int i) const { return p.peerPtr(team, i); }
};

/* void, unless T is a class: keeps functions that end with a count apart from those that end with a team. */
template <typename T> struct IsClass {
  template <typename U> static NCCL_DEVICE_INLINE char test(int U::*);
  template <typename U> static NCCL_DEVICE_INLINE long test(...);
  static constexpr bool value = sizeof(test<T>(nullptr)) == 1;
};
template <bool isClass> struct VoidUnless { using Type = void; };
template <> struct VoidUnless<true> {};
template <typename T> using IfInteger = typename VoidUnless<IsClass<T>::value>::Type;

/* ---- Operators: in which type they work ---- */

template <typename T> struct SumType { using Type = T; };
#if defined(__CUDA_FP16_TYPES_EXIST__)
template <> struct SumType<__half> { using Type = float; };
#endif
#if defined(__CUDA_BF16_TYPES_EXIST__)
template <> struct SumType<__nv_bfloat16> { using Type = float; };
#endif
#if defined(__CUDA_FP8_TYPES_EXIST__)
template <> struct SumType<__nv_fp8_e4m3> { using Type = float; };
template <> struct SumType<__nv_fp8_e5m2> { using Type = float; };
#endif

/* Acc is what values are combined in; an operator other than the sum works on T. */
template <typename T, typename Op> struct Combine {
  using Acc = T;
  Op const &op;
  NCCL_DEVICE_INLINE Acc operator()(Acc const &a, Acc const &b) const { return op(a, b); }
};
template <typename T> struct Combine<T, nccl::utility::OpSum<T>> {
  using Acc = typename SumType<T>::Type;
  nccl::utility::OpSum<T> const &op;
  NCCL_DEVICE_INLINE Acc operator()(Acc const &a, Acc const &b) const { return a + b; }
};

/* ---- The loop ---- */

/* U packs of n elements, `step` packs apart, the first one `first` elements from the places' begin. */
template <typename T, int n, int U, bool srcMultimem, bool dstMultimem, typename Src, typename Dst, typename Op>
NCCL_DEVICE_INLINE void moveRound(Src const &src, int nSrc, Dst const &dst, int nDst, Combine<T, Op> const &combine, size_t first,
                                  size_t step) {
  typename Combine<T, Op>::Acc acc[U][n];
  Pack<T, n> got[U];
  T const *from = src(0) + first;
  GCCL_UNROLL()
  for (int u = 0; u < U; u++) got[u] = Access<T, n, srcMultimem>::load(from + u * step * n);
  GCCL_UNROLL()
  for (int u = 0; u < U; u++) {
    GCCL_UNROLL()
    for (int k = 0; k < n; k++) acc[u][k] = static_cast<typename Combine<T, Op>::Acc>(got[u].v[k]);
  }
  for (int s = 1; s < nSrc; s++) {
    from = src(s) + first;
    GCCL_UNROLL()
    for (int u = 0; u < U; u++) got[u] = Access<T, n, srcMultimem>::load(from + u * step * n);
    GCCL_UNROLL()
    for (int u = 0; u < U; u++) {
      GCCL_UNROLL()
      for (int k = 0; k < n; k++) acc[u][k] = combine(acc[u][k], static_cast<typename Combine<T, Op>::Acc>(got[u].v[k]));
    }
  }
  GCCL_UNROLL()
  for (int u = 0; u < U; u++) {
    GCCL_UNROLL()
    for (int k = 0; k < n; k++) got[u].v[k] = static_cast<T>(acc[u][k]);
  }
  for (int d = 0; d < nDst; d++) {
    T *to = dst(d) + first;
    GCCL_UNROLL()
    for (int u = 0; u < U; u++) Access<T, n, dstMultimem>::store(to + u * step * n, got[u]);
  }
}

/* One thread's share of `packs` packs: rank, rank + size, …, U of them at a time while there are so many. */
template <typename T, int n, int U, bool srcMultimem, bool dstMultimem, typename Src, typename Dst, typename Op>
NCCL_DEVICE_INLINE void movePacks(Src const &src, int nSrc, Dst const &dst, int nDst, Combine<T, Op> const &combine, size_t first,
                                  size_t packs, size_t rank, size_t size) {
  size_t at = rank;
  if (U > 1)
    for (; at + (U - 1) * size < packs; at += U * size)
      moveRound<T, n, U, srcMultimem, dstMultimem>(src, nSrc, dst, nDst, combine, first + at * n, size);
  for (; at < packs; at += size) moveRound<T, n, 1, srcMultimem, dstMultimem>(src, nSrc, dst, nDst, combine, first + at * n, size);
}

/* Head by elements, body by packs of W bytes, tail by elements. W >= sizeof(T). */
template <typename T, int W, bool srcMultimem, bool dstMultimem, int UNROLL, typename Src, typename Dst, typename Op>
NCCL_DEVICE_INLINE void moveWidth(Src const &src, int nSrc, Dst const &dst, int nDst, Combine<T, Op> const &combine, size_t count,
                                  size_t head, size_t rank, size_t size) {
  constexpr int n = W / (int)sizeof(T), u = UNROLL / n;
  constexpr int U = u < 1 ? 1 : u > 8 ? 8 : u;
  if (head > count) head = count;
  size_t packs = (count - head) / n, tail = head + packs * n;
  movePacks<T, 1, 1, srcMultimem, dstMultimem>(src, nSrc, dst, nDst, combine, 0, head, rank, size);
  movePacks<T, n, U, srcMultimem, dstMultimem>(src, nSrc, dst, nDst, combine, head, packs, rank, size);
  movePacks<T, 1, 1, srcMultimem, dstMultimem>(src, nSrc, dst, nDst, combine, tail, count - tail, rank, size);
}

template <typename T, bool srcMultimem, bool dstMultimem, int UNROLL, typename Coop, typename Src, typename Dst, typename Op>
NCCL_DEVICE_INLINE void reduceCopy(Coop coop, Src const &src, int nSrc, Dst const &dst, int nDst, Op const &op, size_t count) {
  static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0, "elements have 1, 2, 4, 8 or 16 bytes");
  if (nSrc < 1 || nDst < 1 || count == 0) return;
  size_t rank = (size_t)coop.thread_rank(), size = (size_t)coop.size();
  Combine<T, Op> combine{op};
  /* Bits in which any place's address differs from that of the first source, modulo 16. */
  uintptr_t a = reinterpret_cast<uintptr_t>(src(0)), apart = 0;
  for (int s = 1; s < nSrc; s++) apart |= reinterpret_cast<uintptr_t>(src(s)) ^ a;
  for (int d = 0; d < nDst; d++) apart |= reinterpret_cast<uintptr_t>(dst(d)) ^ a;
  constexpr int word = sizeof(T) < 4 ? 4 : (int)sizeof(T);
  if ((apart & 15) == 0)
    moveWidth<T, 16, srcMultimem, dstMultimem, UNROLL>(src, nSrc, dst, nDst, combine, count, (-a & 15) / sizeof(T), rank, size);
  else if ((apart & (word - 1)) == 0)
    moveWidth<T, word, srcMultimem, dstMultimem, UNROLL>(src, nSrc, dst, nDst, combine, count, (-a & (word - 1)) / sizeof(T), rank, size);
  else
    moveWidth<T, (int)sizeof(T), srcMultimem, dstMultimem, UNROLL>(src, nSrc, dst, nDst, combine, count, 0, rank, size);
}

} // namespace device
} // namespace gccl
#endif
#endif
