/* Conversions between the small floats and fp32, and the element operations, written without branches so that the
 * compiler turns loops over them into vector code.
 *
 * Formats: IEEE 754 binary16; bfloat16 (upper half of binary32); OCP 8-bit Floating Point Specification 1.0,
 * E4M3 (no infinity, NaN 0x7f) and E5M2 (upper half of binary16). */
#ifndef GCCL_REDUCE_CONVERT_H
#define GCCL_REDUCE_CONVERT_H

#include <stdint.h>
#include <string.h>

#define INL static inline __attribute__((always_inline, unused))

INL uint32_t bits32(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
INL float float32(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
INL uint64_t bits64(double f) {
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}
INL double float64(uint64_t u) {
  double f;
  memcpy(&f, &u, 8);
  return f;
}

INL float canon32(float f) { return f != f ? float32(0x7fc00000u) : f; }
INL double canon64(double f) { return f != f ? float64(0x7ff8000000000000u) : f; }

/* Magnitudes are kept in signed integers: not every instruction set compares unsigned ones. */

/* A normal number moves to its place and gets the other bias; a subnormal is its mantissa times the smallest one;
 * exponent all ones stays all ones. */
INL float widen_f16(uint16_t h) {
  int32_t a = h & 0x7fff;
  int32_t sub = (int32_t)bits32((float)a * 0x1p-24f);
  int32_t r = a < 0x400 ? sub : (a << 13) + (112 << 23);
  r = a >= 0x7c00 ? (a << 13) | 0x7f800000 : r;
  return float32((uint32_t)r | (uint32_t)(h & 0x8000u) << 16);
}

INL float widen_bf16(uint16_t h) { return float32((uint32_t)h << 16); }

INL float widen_e4m3(uint8_t h) {
  int32_t a = h & 0x7f;
  int32_t sub = (int32_t)bits32((float)a * 0x1p-9f);
  int32_t r = a < 8 ? sub : (a << 20) + (120 << 23);
  r = a == 0x7f ? 0x7fc00000 : r;
  return float32((uint32_t)r | (uint32_t)(h & 0x80u) << 24);
}

INL float widen_e5m2(uint8_t h) { return widen_f16((uint16_t)((uint32_t)h << 8)); }

/* Magnitude rounded to a format with `shift` mantissa bits fewer. Below the smallest normal number the adder does
 * the rounding: adding a number whose last place is the format's smallest subnormal leaves the quotient in the low
 * bits. The caller caps the result; of a NaN it is worthless, and computed unsigned because it may wrap. */
INL int32_t round_magnitude(int32_t a, int shift, uint32_t rebias, int32_t min_normal, float adder) {
  uint32_t u = (uint32_t)a;
  uint32_t sub = bits32(float32(u) + adder) - bits32(adder);
  uint32_t norm = (u + ((1u << (shift - 1)) - 1u) + ((u >> shift) & 1u) - (rebias << 23)) >> shift;
  return (int32_t)(a < min_normal ? sub : norm);
}

INL uint16_t narrow_f16(float f) {
  uint32_t u = bits32(f);
  int32_t a = (int32_t)(u & 0x7fffffffu);
  int32_t r = round_magnitude(a, 13, 112, 0x38800000, 0.5f);
  r = a >= 0x477ff000 ? 0x7c00 : r; /* 65520 and more round to infinity */
  r |= (int32_t)(u >> 16 & 0x8000u);
  return (uint16_t)(f != f ? 0x7e00 : r);
}

INL uint16_t narrow_bf16(float f) {
  uint32_t u = bits32(f);
  int32_t r = (int32_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  return (uint16_t)(f != f ? 0x7fc0 : r);
}

INL uint8_t narrow_e4m3(float f) {
  uint32_t u = bits32(f);
  int32_t a = (int32_t)(u & 0x7fffffffu);
  int32_t r = round_magnitude(a, 20, 120, 0x3c800000, 16384.0f);
  r = r > 0x7e ? 0x7e : r; /* 448 */
  r |= (int32_t)(u >> 24 & 0x80u);
  return (uint8_t)(f != f ? 0x7f : r);
}

INL uint8_t narrow_e5m2(float f) {
  uint32_t u = bits32(f);
  int32_t a = (int32_t)(u & 0x7fffffffu);
  int32_t r = round_magnitude(a, 21, 112, 0x38800000, 128.0f);
  r = r > 0x7b ? 0x7b : r; /* 57344 */
  r |= (int32_t)(u >> 24 & 0x80u);
  return (uint8_t)(f != f ? 0x7e : r);
}

/* Where a == b only zeros can differ in bits: and gives +0 of a mixed pair, or gives -0. */
#define MINMAX(NAME, F, U, BITS, FROM, CMP, MIX)   \
  INL F NAME(F a, F b) {                           \
    F r = a CMP b ? a : b;                         \
    r = b != b ? a : r;                            \
    return a == b ? FROM(BITS(a) MIX BITS(b)) : r; \
  }
MINMAX(max_f32, float, uint32_t, bits32, float32, >, &)
MINMAX(min_f32, float, uint32_t, bits32, float32, <, |)
MINMAX(max_f64, double, uint64_t, bits64, float64, >, &)
MINMAX(min_f64, double, uint64_t, bits64, float64, <, |)
#undef MINMAX

#endif
