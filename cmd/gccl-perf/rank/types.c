#include "types.h"

#include <math.h>
#include <string.h>

/* Exponent and fraction widths: IEEE 754-2019 for 16, 32 and 64 bits, the
 * upper half of a float32 for bfloat16, the OCP 8-bit floating point
 * specification 1.0 for the fp8 pair. Wide types are capped at 2^20 so that
 * sums over many ranks stay far from every limit. */
#define NTYPES 12
static const struct perf_type types[NTYPES] = {
    {"int8", ncclInt8, 1, 0, 1, 0, 0, 0, 0},
    {"uint8", ncclUint8, 1, 0, 0, 0, 0, 0, 0},
    {"int32", ncclInt32, 4, 0, 1, 0, 0, 0, 0},
    {"uint32", ncclUint32, 4, 0, 0, 0, 0, 0, 0},
    {"int64", ncclInt64, 8, 0, 1, 0, 0, 0, 0},
    {"uint64", ncclUint64, 8, 0, 0, 0, 0, 0, 0},
    {"half", ncclFloat16, 2, 1, 1, 2048, 5, 10, 0},
    {"float", ncclFloat32, 4, 1, 1, 1 << 20, 8, 23, 0},
    {"double", ncclFloat64, 8, 1, 1, 1 << 20, 11, 52, 0},
    {"bfloat16", ncclBfloat16, 2, 1, 1, 256, 8, 7, 0},
    {"f8e4m3", ncclFloat8e4m3, 1, 1, 1, 16, 4, 3, 1},
    {"f8e5m2", ncclFloat8e5m2, 1, 1, 1, 8, 5, 2, 0},
};

/* Bits of the integers -SMALL…SMALL in the narrow float types: nearly all values that the
 * oracle makes, and a look-up is some fifty times faster than the general conversion. */
#define SMALL 2048
static uint16_t small_bits[NTYPES][2 * SMALL + 1];

const struct perf_type *perf_type_find(const char *name) {
  for (size_t i = 0; i < NTYPES; i++)
    if (strcmp(types[i].name, name) == 0) return &types[i];
  return NULL;
}

double perf_type_epsilon(const struct perf_type *t) { return ldexp(1, -t->fraction_bits); }

static uint64_t encode_float(const struct perf_type *t, double v) {
  int bias = (1 << (t->exponent_bits - 1)) - 1;
  uint64_t sign = signbit(v) ? 1ull << (t->exponent_bits + t->fraction_bits) : 0;
  uint64_t top = (1ull << t->exponent_bits) - 1, infinity = top << t->fraction_bits;
  double a = fabs(v);
  if (isnan(v)) return sign | (t->finite_only ? infinity | ((1ull << t->fraction_bits) - 1) : infinity | 1);
  if (a == 0) return sign;
  uint64_t largest = t->finite_only ? infinity + (1ull << t->fraction_bits) - 2 : infinity - 1;
  uint64_t overflow = sign | (t->finite_only ? largest : infinity); /* e4m3 saturates */
  if (isinf(v)) return overflow;
  int e;
  frexp(a, &e); /* a = m * 2^e, m in [0.5, 1) */
  int exponent = e - 1 + bias;
  if (exponent < 1) exponent = 1; /* subnormals share the smallest exponent */
  /* units of the last fraction bit; rint rounds to nearest even */
  double units = rint(ldexp(a, t->fraction_bits - (exponent - bias)));
  /* a carry out of the fraction raises the exponent by itself */
  uint64_t bits = ((uint64_t)(exponent - 1) << t->fraction_bits) + (uint64_t)units;
  return bits > largest ? overflow : sign | bits;
}

uint64_t perf_type_encode(const struct perf_type *t, double v) {
  if (!t->is_float) return t->is_signed ? (uint64_t)(int64_t)v : (uint64_t)v;
  uint64_t bits = 0;
  if (t->bytes == 8) {
    memcpy(&bits, &v, 8);
  } else if (t->bytes == 4) {
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    bits = u;
  } else {
    bits = encode_float(t, v);
  }
  return bits;
}

static double decode_bits(const struct perf_type *t, uint64_t bits) {
  int bias = (1 << (t->exponent_bits - 1)) - 1;
  uint64_t fraction = bits & ((1ull << t->fraction_bits) - 1);
  int exponent = (int)(bits >> t->fraction_bits & ((1u << t->exponent_bits) - 1));
  double sign = bits >> (t->exponent_bits + t->fraction_bits) & 1 ? -1 : 1;
  int top = (1 << t->exponent_bits) - 1;
  if (exponent == top && !t->finite_only) return fraction ? NAN : sign * INFINITY;
  if (exponent == top && fraction == (1ull << t->fraction_bits) - 1) return NAN;
  if (exponent == 0) return sign * ldexp((double)fraction, 1 - bias - t->fraction_bits);
  return sign * ldexp((double)(fraction | 1ull << t->fraction_bits), exponent - bias - t->fraction_bits);
}

double perf_type_decode(const struct perf_type *t, const void *buf, size_t i) {
  const char *at = (const char *)buf + i * t->bytes;
  if (t->bytes == 8) {
    double d;
    memcpy(&d, at, 8);
    return d;
  }
  if (t->bytes == 4) {
    float f;
    memcpy(&f, at, 4);
    return f;
  }
  uint64_t bits = 0;
  memcpy(&bits, at, t->bytes); /* little endian: x86-64 and arm64 */
  return decode_bits(t, bits);
}

void perf_type_store(const struct perf_type *t, void *buf, const double *values, size_t n) {
  if (t->bytes == 8) {
    memcpy(buf, values, n * 8);
    return;
  }
  if (t->bytes == 4) {
    float *f = buf;
    for (size_t i = 0; i < n; i++) f[i] = (float)values[i];
    return;
  }
  const uint16_t *table = small_bits[t - types] + SMALL;
  for (size_t i = 0; i < n; i++) {
    int whole = fabs(values[i]) <= SMALL ? (int)values[i] : 0;
    uint64_t bits = (double)whole == values[i] ? table[whole] : encode_float(t, values[i]);
    memcpy((char *)buf + i * t->bytes, &bits, t->bytes);
  }
}

void perf_types_init(void) {
  for (size_t k = 0; k < NTYPES; k++) {
    if (!types[k].is_float || types[k].bytes > 2) continue;
    for (int v = -SMALL; v <= SMALL; v++) small_bits[k][v + SMALL] = (uint16_t)encode_float(&types[k], v);
  }
}
