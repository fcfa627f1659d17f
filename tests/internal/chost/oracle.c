/* oracle.c: see oracle.h. */
#include "oracle.h"

#include <math.h>
#include <string.h>

#include "conf.h"
#include "numfmt.h"

const char *op_name(int op) {
  static const char *const names[] = {"sum", "prod", "max", "min", "avg", "premul-host", "premul-device"};
  return names[op];
}

static uint64_t mix(const struct oracle *o, int rank, size_t index) {
  uint64_t s = o->seed * 0x2545f4914f6cdd1du + ((uint64_t)(rank + 1) << 40) + index;
  return conf_rand(&s);
}

uint64_t oracle_input(const struct oracle *o, int rank, size_t index) {
  uint64_t r = mix(o, rank, index);
  if (!num_is_float(o->type)) return num_wrap(o->type, r);
  if (o->flavour == EXACT) {
    static const double factors[8] = {1, -1, 1, 1, -1, 1, 2, 0.5};
    if (o->op == ncclProd) return num_encode(o->type, factors[r & 7]);
    return num_encode(o->type, (double)(int)(r % 9) - 4);
  }
  /* Random sign and mantissa, magnitude from 0.5 to 2: products of eight stay finite in every format. */
  unsigned size = (unsigned)num_size(o->type) * 8;
  static const unsigned char mant[ncclNumTypes] = {
      [ncclFloat16] = 10, [ncclFloat32] = 23, [ncclFloat64] = 52, [ncclBfloat16] = 7, [ncclFloat8e4m3] = 3, [ncclFloat8e5m2] = 2};
  unsigned m = mant[o->type];
  uint64_t bias = ((uint64_t)1 << (size - m - 2)) - 1;
  uint64_t e = bias - ((r >> 60) & 1);
  return ((r >> 63) << (size - 1)) | e << m | (r & (((uint64_t)1 << m) - 1));
}

uint64_t oracle_scalar(const struct oracle *o, int rank) {
  static const double exact[4] = {2, 1, 0.5, -1};
  static const double rough[4] = {1.5, 0.75, -1.25, 3};
  if (!num_is_float(o->type)) return num_wrap(o->type, (uint64_t)(rank * 7 + 3));
  return num_encode(o->type, (o->flavour == EXACT ? exact : rough)[rank & 3]);
}

static uint64_t reduce_int(const struct oracle *o, size_t index) {
  ncclDataType_t t = o->type;
  uint64_t acc = 0;
  for (int r = 0; r < o->nranks; r++) {
    uint64_t x = oracle_input(o, r, index);
    if (o->op >= OP_PREMUL_HOST) x *= oracle_scalar(o, r);
    x = num_wrap(t, x);
    if (r == 0) {
      acc = x;
      continue;
    }
    int less = num_is_signed(t) ? num_sext(t, x) < num_sext(t, acc) : x < acc;
    if (o->op == ncclProd)
      acc = num_wrap(t, acc * x);
    else if (o->op == ncclMax)
      acc = less ? acc : x;
    else if (o->op == ncclMin)
      acc = less ? x : acc;
    else
      acc = num_wrap(t, acc + x);
  }
  if (o->op != ncclAvg) return acc;
  if (num_is_signed(t)) return num_wrap(t, (uint64_t)(num_sext(t, acc) / o->nranks));
  return acc / (uint64_t)o->nranks;
}

static void reduce_float(const struct oracle *o, size_t index, uint64_t *lo, uint64_t *hi) {
  ncclDataType_t t = o->type;
  int n = o->nranks, pow2 = (n & (n - 1)) == 0;
  long double acc = 0, mag = 0, scale = 1;
  if (o->op == ncclAvg) scale = t == ncclFloat64 ? (long double)(1.0 / (double)n) : (long double)(1.0f / (float)n);
  for (int r = 0; r < n; r++) {
    long double x = num_decode(t, oracle_input(o, r, index)) * scale;
    if (o->op >= OP_PREMUL_HOST) x *= num_decode(t, oracle_scalar(o, r));
    mag += fabsl(x);
    if (r == 0)
      acc = x;
    else if (o->op == ncclProd)
      acc *= x;
    else if (o->op == ncclMax)
      acc = fmaxl(acc, x);
    else if (o->op == ncclMin)
      acc = fminl(acc, x);
    else
      acc += x;
  }
  if (o->op == ncclProd) mag = fabsl(acc);
  int exact = o->op == ncclMax || o->op == ncclMin || n == 1 || (o->flavour == EXACT && (o->op != ncclAvg || pow2));
  if (n == 1 && (o->op >= OP_PREMUL_HOST) && o->flavour != EXACT) exact = 0;
  long double b = exact ? 0 : ldexpl(mag * (long double)(n + 2), -num_acc_bits(t));
  *lo = num_encode(t, acc - b);
  *hi = exact ? *lo : num_encode(t, acc + b);
}

void oracle_reduce(const struct oracle *o, size_t index, uint64_t *lo, uint64_t *hi) {
  if (num_is_float(o->type))
    reduce_float(o, index, lo, hi);
  else
    *lo = *hi = reduce_int(o, index);
}

int oracle_match(ncclDataType_t t, uint64_t got, uint64_t lo, uint64_t hi) {
  if (got == lo || got == hi) return 1;
  if (!num_is_float(t)) return 0;
  long double g = num_decode(t, got);
  return g >= num_decode(t, lo) && g <= num_decode(t, hi); /* false for NaN; +0 equals -0 */
}
