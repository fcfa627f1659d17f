/* utility.h: nccl::utility, as far as kernels use it: rounding, and division by a number whose reciprocal is known. */
#ifndef GCCL_DEVICE_IMPL_UTILITY_H
#define GCCL_DEVICE_IMPL_UTILITY_H

#include "memory.h"

#ifdef __cplusplus
namespace nccl {
namespace utility {

template <typename X, typename Y, typename Z = decltype(X() + Y())> NCCL_HOST_DEVICE_INLINE constexpr Z divUp(X x, Y y) {
  return (x + y - 1) / y;
}
template <typename X, typename Y, typename Z = decltype(X() + Y())> NCCL_HOST_DEVICE_INLINE constexpr Z roundUp(X x, Y y) {
  return divUp(x, y) * y;
}
template <typename X, typename Y, typename Z = decltype(X() + Y())> NCCL_HOST_DEVICE_INLINE constexpr Z roundDown(X x, Y y) {
  return x - x % y;
}
/* y a power of two. */
template <typename X, typename Y, typename Z = decltype(X() + Y())> NCCL_HOST_DEVICE_INLINE constexpr Z alignUp(X x, Y y) {
  return (x + y - 1) & -Z(y);
}
template <typename Int> NCCL_HOST_DEVICE_INLINE constexpr bool isPow2(Int x) { return (x & (x - 1)) == 0; }

/* The reciprocal of y for idivFast32: floor((2^32 - 1) / y), one more where y is a power of two, so that 2^32 / y comes out exactly (and 0
 * for 1). */
NCCL_HOST_DEVICE_INLINE constexpr uint32_t idivRcp32(uint32_t y) { return 0xffffffffu / y + (isPow2(y) ? 1u : 0u); }

/* x / y and x % y; the estimate by the reciprocal is at most one too small. */
NCCL_HOST_DEVICE_INLINE void idivmodFast32(uint32_t *quotient, uint32_t *rest, uint32_t x, uint32_t y, uint32_t rcp) {
  uint32_t q = rcp == 0 ? x : (uint32_t)((uint64_t)x * rcp >> 32), r = x - q * y;
  if (r >= y) {
    q++;
    r -= y;
  }
  *quotient = q;
  *rest = r;
}
NCCL_HOST_DEVICE_INLINE uint32_t idivFast32(uint32_t x, uint32_t y, uint32_t rcp) {
  uint32_t q, r;
  idivmodFast32(&q, &r, x, y, rcp);
  return q;
}
NCCL_HOST_DEVICE_INLINE uint32_t imodFast32(uint32_t x, uint32_t y, uint32_t rcp) {
  uint32_t q, r;
  idivmodFast32(&q, &r, x, y, rcp);
  return r;
}

#if GCCL_DEVICE_KERNELS
/* The operator of the sums of reduce_copy.h. */
template <typename T> struct OpSum {
  using EltType = T;
  NCCL_DEVICE_INLINE T operator()(T const &a, T const &b) const { return a + b; }
};
#endif

} // namespace utility
} // namespace nccl
#endif

#endif
