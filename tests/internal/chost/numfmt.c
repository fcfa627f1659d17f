/* numfmt.c: see numfmt.h. One encoder and one decoder serve all small float formats, described by their widths. */
#include "numfmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct fmt {
  const char *name;
  uint8_t size, is_float, is_signed, ebits, mbits;
};

static const struct fmt formats[ncclNumTypes] = {
    [ncclInt8] = {"int8", 1, 0, 1, 0, 0},     [ncclUint8] = {"uint8", 1, 0, 0, 0, 0},     [ncclInt32] = {"int32", 4, 0, 1, 0, 0},
    [ncclUint32] = {"uint32", 4, 0, 0, 0, 0}, [ncclInt64] = {"int64", 8, 0, 1, 0, 0},     [ncclUint64] = {"uint64", 8, 0, 0, 0, 0},
    [ncclFloat16] = {"fp16", 2, 1, 1, 5, 10}, [ncclFloat32] = {"fp32", 4, 1, 1, 8, 23},   [ncclFloat64] = {"fp64", 8, 1, 1, 11, 52},
    [ncclBfloat16] = {"bf16", 2, 1, 1, 8, 7}, [ncclFloat8e4m3] = {"e4m3", 1, 1, 1, 4, 3}, [ncclFloat8e5m2] = {"e5m2", 1, 1, 1, 5, 2},
};

size_t num_size(ncclDataType_t t) { return formats[t].size; }
const char *num_name(ncclDataType_t t) { return formats[t].name; }
int num_is_float(ncclDataType_t t) { return formats[t].is_float; }
int num_is_signed(ncclDataType_t t) { return formats[t].is_signed; }
int num_acc_bits(ncclDataType_t t) { return t == ncclFloat64 ? 53 : 24; }

uint64_t num_load(ncclDataType_t t, const void *buf, size_t i) {
  const unsigned char *p = (const unsigned char *)buf + i * num_size(t);
  uint64_t v = 0;
  memcpy(&v, p, num_size(t)); /* little endian machines only, as the library */
  return v;
}

void num_store(ncclDataType_t t, void *buf, size_t i, uint64_t bits) { memcpy((unsigned char *)buf + i * num_size(t), &bits, num_size(t)); }

uint64_t num_wrap(ncclDataType_t t, uint64_t v) {
  unsigned w = (unsigned)num_size(t) * 8;
  return w == 64 ? v : v & (((uint64_t)1 << w) - 1);
}

int64_t num_sext(ncclDataType_t t, uint64_t v) {
  unsigned s = 64 - (unsigned)num_size(t) * 8;
  return (int64_t)(v << s) >> s;
}

static long double decode_small(ncclDataType_t t, uint64_t bits) {
  const struct fmt *f = &formats[t];
  unsigned emax = (1u << f->ebits) - 1, bias = emax >> 1;
  uint64_t m = bits & (((uint64_t)1 << f->mbits) - 1);
  unsigned e = (unsigned)(bits >> f->mbits) & emax;
  int neg = (int)(bits >> (f->ebits + f->mbits)) & 1;
  long double v;
  if (t == ncclFloat8e4m3 && e == emax && m == 7)
    v = NAN;
  else if (t != ncclFloat8e4m3 && e == emax)
    v = m ? NAN : INFINITY;
  else if (e == 0)
    v = ldexpl((long double)m, 1 - (int)bias - f->mbits);
  else
    v = ldexpl((long double)(m | ((uint64_t)1 << f->mbits)), (int)e - (int)bias - f->mbits);
  return neg ? -v : v;
}

long double num_decode(ncclDataType_t t, uint64_t bits) {
  if (t == ncclFloat64) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
  }
  if (t == ncclFloat32 || t == ncclBfloat16) {
    uint32_t b = (uint32_t)(t == ncclBfloat16 ? bits << 16 : bits);
    float s;
    memcpy(&s, &b, 4);
    return s;
  }
  return decode_small(t, bits);
}

static uint64_t encode_small(ncclDataType_t t, long double x) {
  const struct fmt *f = &formats[t];
  unsigned emax = (1u << f->ebits) - 1;
  int bias = (int)(emax >> 1), e;
  uint64_t sign = (uint64_t)(signbit(x) != 0) << (f->ebits + f->mbits);
  uint64_t inf = (uint64_t)emax << f->mbits;
  int fp8 = f->size == 1;
  uint64_t top = t == ncclFloat8e4m3 ? inf | 6 : inf - 1; /* largest finite value */
  if (isnan(x)) return sign | inf | (((uint64_t)1 << f->mbits) - 1);
  x = fabsl(x);
  if (isinf(x)) return sign | (fp8 ? top : inf);
  if (x == 0) return sign;
  frexpl(x, &e); /* x = 0.1… × 2^e, so the leading bit weighs 2^(e-1) */
  int q = e - 1 - f->mbits;
  if (q < 1 - bias - f->mbits) q = 1 - bias - f->mbits;
  uint64_t m = (uint64_t)rintl(ldexpl(x, -q)); /* ties to even: the default rounding mode */
  if (m >> (f->mbits + 1)) {
    m >>= 1;
    q++;
  }
  if (!(m >> f->mbits)) return sign | m; /* subnormal or zero */
  int field = q + f->mbits + bias;
  uint64_t bits = (uint64_t)field << f->mbits | (m & (((uint64_t)1 << f->mbits) - 1));
  if (field > (int)emax || bits > top) return sign | (fp8 ? top : inf);
  return sign | bits;
}

uint64_t num_encode(ncclDataType_t t, long double x) {
  if (t == ncclFloat64) {
    double d = (double)x;
    uint64_t b;
    memcpy(&b, &d, 8);
    return b;
  }
  if (t == ncclFloat32) {
    float s = (float)x;
    uint32_t b;
    memcpy(&b, &s, 4);
    return b;
  }
  return encode_small(t, x);
}

uint64_t num_one(ncclDataType_t t, double v) {
  if (num_is_float(t)) return num_encode(t, v);
  return num_wrap(t, v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v);
}

int num_selftest(void) {
  static const struct {
    ncclDataType_t t;
    long double v;
    uint64_t bits;
  } known[] = {
      {ncclFloat16, 1.0L, 0x3c00},
      {ncclFloat16, 65504.0L, 0x7bff},
      {ncclFloat16, 65519.9L, 0x7bff},
      {ncclFloat16, 65520.0L, 0x7c00},
      {ncclFloat16, 0x1p-24L, 0x0001},
      {ncclFloat16, 0x1p-25L, 0x0000},
      {ncclFloat16, -2.0L, 0xc000},
      {ncclFloat16, 2049.0L, 0x6800},
      {ncclFloat16, 2051.0L, 0x6802},
      {ncclBfloat16, 1.0L, 0x3f80},
      {ncclBfloat16, 257.0L, 0x4380},
      {ncclBfloat16, 259.0L, 0x4382},
      {ncclFloat8e4m3, 448.0L, 0x7e},
      {ncclFloat8e4m3, 1e9L, 0x7e},
      {ncclFloat8e4m3, 464.0L, 0x7e},
      {ncclFloat8e4m3, 1.0L, 0x38},
      {ncclFloat8e4m3, 0x1p-9L, 0x01},
      {ncclFloat8e4m3, -1.0625L, 0xb8},
      {ncclFloat8e5m2, 57344.0L, 0x7b},
      {ncclFloat8e5m2, 1e9L, 0x7b},
      {ncclFloat8e5m2, 1.0L, 0x3c},
      {ncclFloat32, 1.0L, 0x3f800000},
      {ncclFloat64, 1.0L, 0x3ff0000000000000u},
  };
  int bad = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (num_encode(known[i].t, known[i].v) != known[i].bits) {
      printf("# %s of %Lg: want %#llx, got %#llx\n", num_name(known[i].t), known[i].v, (unsigned long long)known[i].bits,
             (unsigned long long)num_encode(known[i].t, known[i].v));
      bad++;
    }
  static const ncclDataType_t small[] = {ncclFloat16, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
  for (int k = 0; k < 4; k++)
    for (uint64_t b = 0; b < (uint64_t)1 << (8 * num_size(small[k])); b++) {
      long double v = num_decode(small[k], b);
      uint64_t back = num_encode(small[k], v);
      int same = isnan(v) ? isnan(num_decode(small[k], back)) : back == b || (isinf(v) && num_size(small[k]) == 1);
      if (!same && bad++ < 20)
        printf("# %s bits %#llx come back as %#llx\n", num_name(small[k]), (unsigned long long)b, (unsigned long long)back);
    }
  return bad;
}
