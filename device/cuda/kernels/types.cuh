/* Element types: storage, accumulator, conversions, operators. The bits are those of device/host/reduce (reduce.h says which), whose
 * conversions in plain C are used where the hardware has none. */
#ifndef GCCL_CUDA_KERNELS_TYPES_CUH
#define GCCL_CUDA_KERNELS_TYPES_CUH

#include "../../host/reduce/convert.h"
#include "ptx.cuh"

/* Conversions by one instruction. The hardware's NaN is 0x7fff or 0x7f; ours is canonical. e4m3 and e5m2 from sm_89. */
#if defined(__CUDA_ARCH__)
DEV float hw_widen_f16(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
DEV uint16_t hw_narrow_f16(float f) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return f != f ? 0x7e00 : h;
}
DEV uint16_t hw_narrow_bf16(float f) {
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return f != f ? 0x7fc0 : h;
}
/* "max" and "min" prefer numbers to NaN and order -0 before +0, as max_f32 does. */
#define HW_MINMAX(OP, TYPE, F, C)                                       \
  DEV F hw_##OP(F a, F b) {                                             \
    F r;                                                                \
    asm(#OP "." #TYPE " %0, %1, %2;" : "=" #C(r) : #C(a), #C(b));       \
    return r;                                                           \
  }
HW_MINMAX(max, f32, float, f)
HW_MINMAX(min, f32, float, f)
HW_MINMAX(max, f64, double, d)
HW_MINMAX(min, f64, double, d)
#else
DEV float hw_max(float a, float b) { return max_f32(a, b); }
DEV float hw_min(float a, float b) { return min_f32(a, b); }
DEV double hw_max(double a, double b) { return max_f64(a, b); }
DEV double hw_min(double a, double b) { return min_f64(a, b); }
DEV float hw_widen_f16(uint16_t h) { return widen_f16(h); }
DEV uint16_t hw_narrow_f16(float f) { return narrow_f16(f); }
DEV uint16_t hw_narrow_bf16(float f) { return narrow_bf16(f); }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
DEV float hw_widen_e4m3(uint8_t h) {
  uint32_t two;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"((uint16_t)h));
  return hw_widen_f16((uint16_t)two);
}
DEV float hw_widen_e5m2(uint8_t h) { return hw_widen_f16((uint16_t)(h << 8)); }
DEV uint8_t hw_narrow_e4m3(float f) {
  uint16_t two;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(f));
  return f != f ? 0x7f : (uint8_t)two;
}
DEV uint8_t hw_narrow_e5m2(float f) {
  uint16_t two;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(f));
  return f != f ? 0x7e : (uint8_t)two;
}
#else
DEV float hw_widen_e4m3(uint8_t h) { return widen_e4m3(h); }
DEV float hw_widen_e5m2(uint8_t h) { return widen_e5m2(h); }
DEV uint8_t hw_narrow_e4m3(float f) { return narrow_e4m3(f); }
DEV uint8_t hw_narrow_e5m2(float f) { return narrow_e5m2(f); }
#endif

/* Integers of type T in registers of type W, signed as T and 32 or 64 bits wide; A is its unsigned type and does the arithmetic,
 * because it wraps. Bits above T's are without meaning after a sum or product. */
template <class T, class B, class W, class A> struct integer {
  typedef B bits;
  typedef A acc;
  DEV acc widen(bits b) { return (A)(W)(T)b; }
  DEV bits narrow(acc a) { return (B)a; }
  DEV acc sum(acc a, acc b) { return a + b; }
  DEV acc prod(acc a, acc b) { return a * b; }
  DEV acc max(acc a, acc b) { return (W)a > (W)b ? a : b; }
  DEV acc min(acc a, acc b) { return (W)a < (W)b ? a : b; }
  DEV acc scalar(uint64_t bits64) { return (acc)bits64; }
  DEV acc zero() { return 0; }
  DEV acc one() { return 1; }
  DEV acc lowest() { return (W)-1 > 0 ? 0 : (A)1 << (8 * sizeof(A) - 1); }
  DEV acc highest() { return ~lowest(); }
  DEV acc divide(acc a, uint64_t by) {
    const W v = (W)(T)a;
    if (by > (uint64_t)(W)highest()) return (A)v == lowest() && by == (uint64_t)lowest() ? (A)-1 : 0; /* -2^63 / 2^63 */
    return (A)(v / (W)by);
  }
};

/* Floats that are folded in fp32. What max and min start from is NaN: they prefer any number to it. */
template <class B, float (*WIDEN)(B), B (*NARROW)(float)> struct small_float {
  typedef B bits;
  typedef float acc;
  DEV acc widen(bits b) { return WIDEN(b); }
  DEV bits narrow(acc a) { return NARROW(a); }
  DEV acc sum(acc a, acc b) { return a + b; }
  DEV acc prod(acc a, acc b) { return a * b; }
  DEV acc max(acc a, acc b) { return hw_max(a, b); }
  DEV acc min(acc a, acc b) { return hw_min(a, b); }
  DEV acc scalar(uint64_t bits64) { return float32((uint32_t)bits64); }
  DEV acc zero() { return -0.0f; } /* -0 + x is x for every x */
  DEV acc one() { return 1.0f; }
  DEV acc lowest() { return float32(0x7fc00000u); }
  DEV acc highest() { return float32(0x7fc00000u); }
  DEV acc divide(acc a, uint64_t) { return a; }
};
DEV float float32_of(uint32_t u) { return float32(u); }
DEV uint32_t canonical_f32(float f) { return bits32(canon32(f)); }
DEV float float32_of_bf16(uint16_t h) { return widen_bf16(h); }

struct float64_type {
  typedef uint64_t bits;
  typedef double acc;
  DEV acc widen(bits b) { return float64(b); }
  DEV bits narrow(acc a) { return bits64(canon64(a)); }
  DEV acc sum(acc a, acc b) { return a + b; }
  DEV acc prod(acc a, acc b) { return a * b; }
  DEV acc max(acc a, acc b) { return hw_max(a, b); }
  DEV acc min(acc a, acc b) { return hw_min(a, b); }
  DEV acc scalar(uint64_t b) { return float64(b); }
  DEV acc zero() { return -0.0; }
  DEV acc one() { return 1.0; }
  DEV acc lowest() { return float64(0x7ff8000000000000u); }
  DEV acc highest() { return float64(0x7ff8000000000000u); }
  DEV acc divide(acc a, uint64_t) { return a; }
};

typedef integer<int8_t, uint8_t, int32_t, uint32_t> type_i8;
typedef integer<uint8_t, uint8_t, uint32_t, uint32_t> type_u8;
typedef integer<int32_t, uint32_t, int32_t, uint32_t> type_i32;
typedef integer<uint32_t, uint32_t, uint32_t, uint32_t> type_u32;
typedef integer<int64_t, uint64_t, int64_t, uint64_t> type_i64;
typedef integer<uint64_t, uint64_t, uint64_t, uint64_t> type_u64;
typedef small_float<uint16_t, hw_widen_f16, hw_narrow_f16> type_f16;
typedef small_float<uint32_t, float32_of, canonical_f32> type_f32;
typedef float64_type type_f64;
typedef small_float<uint16_t, float32_of_bf16, hw_narrow_bf16> type_bf16;
typedef small_float<uint8_t, hw_widen_e4m3, hw_narrow_e4m3> type_f8e4m3;
typedef small_float<uint8_t, hw_widen_e5m2, hw_narrow_e5m2> type_f8e5m2;

/* What a kernel is compiled for: type and operator. */
template <class T, int OP_> struct reduction : T {
  typedef typename T::acc acc;
  static __device__ constexpr int op() { return OP_; }
  DEV acc identity() { return OP_ == GCCL_WORK_PROD ? T::one() : OP_ == GCCL_WORK_MAX ? T::lowest() : OP_ == GCCL_WORK_MIN ? T::highest() : T::zero(); }
  DEV acc fold(acc a, acc b) {
    return OP_ == GCCL_WORK_PROD ? T::prod(a, b) : OP_ == GCCL_WORK_MAX ? T::max(a, b) : OP_ == GCCL_WORK_MIN ? T::min(a, b) : T::sum(a, b);
  }
};

/* An element at an address that need not be aligned. */
template <class B> DEV B load_element(uint64_t a) {
  if (a % sizeof(B)) {
    uint64_t v = 0;
    for (unsigned i = 0; i < sizeof(B); i++) v |= (uint64_t)load1(a + i) << (8 * i);
    return (B)v;
  }
  return sizeof(B) == 8 ? (B)load8(a) : sizeof(B) == 4 ? (B)load4(a) : sizeof(B) == 2 ? (B)load2(a) : (B)load1(a);
}
template <class B> DEV void store_element(uint64_t a, B v) {
  if (a % sizeof(B)) {
    for (unsigned i = 0; i < sizeof(B); i++) store1(a + i, (uint8_t)((uint64_t)v >> (8 * i)));
    return;
  }
  if (sizeof(B) == 8) store8(a, (uint64_t)v);
  else if (sizeof(B) == 4) store4(a, (uint32_t)v);
  else if (sizeof(B) == 2) store2(a, (uint16_t)v);
  else store1(a, (uint8_t)v);
}

/* How elements are packed into what one access moves. N elements of B. */
template <class B> struct packed16 {
  typedef vec16 raw;
  enum { BYTES = 16, N = 16 / sizeof(B) };
  DEV raw load(uint64_t a) { return load16(a); }
  DEV void store(uint64_t a, raw v) { store16(a, v); }
  DEV B get(const raw &v, int i) {
    if (sizeof(B) == 8) return (B)(v.w[2 * i] | (uint64_t)v.w[2 * i + 1] << 32);
    const int per = 4 / (sizeof(B) < 4 ? sizeof(B) : 4);
    return (B)(v.w[i / per] >> (8 * sizeof(B) * (i % per)) % 32);
  }
  DEV void put(raw &v, int i, B b) { /* in order: i = 0 … N-1 */
    if (sizeof(B) == 8) {
      v.w[2 * i] = (uint32_t)b, v.w[2 * i + 1] = (uint32_t)((uint64_t)b >> 32);
      return;
    }
    const int per = 4 / (sizeof(B) < 4 ? sizeof(B) : 4), k = i % per;
    v.w[i / per] = k ? v.w[i / per] | (uint32_t)b << (8 * sizeof(B) * k) % 32 : (uint32_t)b;
  }
};
template <class B> struct packed4 {
  typedef uint32_t raw;
  enum { BYTES = 4, N = 4 / sizeof(B) };
  DEV raw load(uint64_t a) { return load4(a); }
  DEV void store(uint64_t a, raw v) { store4(a, v); }
  DEV B get(raw v, int i) { return (B)(v >> 8 * sizeof(B) * i); }
  DEV void put(raw &v, int i, B b) { v = i ? v | (uint32_t)b << 8 * sizeof(B) * i : (uint32_t)b; }
};
template <class B> struct single {
  typedef B raw;
  enum { BYTES = sizeof(B), N = 1 };
  DEV raw load(uint64_t a) { return load_element<B>(a); }
  DEV void store(uint64_t a, raw v) { store_element<B>(a, v); }
  DEV B get(raw v, int) { return v; }
  DEV void put(raw &v, int, B b) { v = b; }
};

#endif
