#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512
#define PROD_DOUBLINGS 6 /* at most 2^6: inside the range of f8e4m3, whose largest value is 448 */

static const char *const op_names[PERF_OPS] = {"sum", "prod", "max", "min", "avg", "mulsum"};

enum perf_op perf_op_find(const char *name) {
  int i = 0;
  while (i < PERF_OPS && strcmp(op_names[i], name) != 0) i++;
  return (enum perf_op)i;
}

int perf_mulsum_factor(int rank) { return 1 + rank % 2; }

/* The block functions below are worth vectors: checking 64 MiB on two cores must not take
 * longer than the collective. The choice is made at load time, so one build serves every CPU. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define VECTOR
#endif

/* Hashes of n consecutive elements of rank. Multiplications and shifts of 32 bits with the constants of
 * lowbias32 (Wellons, "Prospecting for hash functions", 2018). */
VECTOR static void hash_block(const struct perf_oracle *o, int rank, uint64_t first, size_t n, uint32_t *restrict h) {
  uint32_t key = o->seed * 0x85ebca6bu ^ (uint32_t)(rank + 1) * 0xc2b2ae35u ^ (uint32_t)(first >> 32) * 0x27d4eb2fu;
  uint32_t base = (uint32_t)first;
  for (size_t i = 0; i < n; i++) {
    uint32_t x = (base + (uint32_t)i) * 0x9e3779b1u + key;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    h[i] = x ^ x >> 16;
  }
}

/* Uniform in -limit…limit; limit is at most 2^20. */
static inline int32_t small_integer(uint32_t h, int32_t limit) { return (int32_t)((uint64_t)h * (uint64_t)(2 * limit + 1) >> 32) - limit; }

/* Shares of a sum whose magnitude stays at most limit over all ranks: with more ranks than
 * limit only some of them, another set at each element, contribute. */
VECTOR static void share_block(const struct perf_oracle *o, int rank, uint64_t first, size_t n, int32_t limit, const uint32_t *restrict h,
                               int32_t *restrict v) {
  int32_t each = limit / o->nranks;
  if (each > 0) {
    for (size_t i = 0; i < n; i++) v[i] = small_integer(h[i], each);
    return;
  }
  for (size_t i = 0; i < n; i++) v[i] = (int64_t)(((uint64_t)rank + first + i) % (uint64_t)o->nranks) < limit ? small_integer(h[i], 1) : 0;
}

/* Plus or minus 1, and 2 on at most PROD_DOUBLINGS ranks. */
static void factor_block(const struct perf_oracle *o, int rank, uint64_t first, size_t n, const uint32_t *h, int32_t *v) {
  for (size_t i = 0; i < n; i++) {
    int may_double = ((uint64_t)rank + first + i) % (uint64_t)o->nranks < PROD_DOUBLINGS;
    int32_t magnitude = may_double && h[i] & 1 ? 2 : 1;
    v[i] = h[i] & 2 ? -magnitude : magnitude;
  }
}

VECTOR static void float_inputs(const struct perf_oracle *o, int rank, uint64_t first, size_t n, double *restrict out) {
  uint32_t h[BLOCK];
  int32_t v[BLOCK], exact = (int32_t)o->type->exact;
  hash_block(o, rank, first, n, h);
  switch (o->op) {
  case PERF_PROD: factor_block(o, rank, first, n, h, v); break;
  case PERF_MAX:
  case PERF_MIN:
    for (size_t i = 0; i < n; i++) v[i] = small_integer(h[i], exact);
    break;
  case PERF_MULSUM: share_block(o, rank, first, n, exact / 2, h, v); break;
  default: share_block(o, rank, first, n, exact, h, v);
  }
  for (size_t i = 0; i < n; i++) out[i] = v[i];
}

static uint64_t mask_of(const struct perf_type *t) { return t->bytes == 8 ? ~0ull : (1ull << 8 * t->bytes) - 1; }

/* The value of the low bits of v as an element, widened to 64 bits. */
static uint64_t widen(const struct perf_type *t, uint64_t v) {
  v &= mask_of(t);
  if (t->is_signed && v >> (8 * t->bytes - 1) & 1) v |= ~mask_of(t);
  return v;
}

static void integer_inputs(const struct perf_oracle *o, int rank, uint64_t first, size_t n, uint64_t *out) {
  uint32_t h[BLOCK];
  hash_block(o, rank, first, n, h);
  if (o->op != PERF_AVG) { /* all bits: the odd factor spreads 32 of them over 64 */
    for (size_t i = 0; i < n; i++) out[i] = widen(o->type, h[i] * 0x9e3779b97f4a7c15ull);
    return;
  }
  int32_t v[BLOCK];
  share_block(o, rank, first, n, o->type->bytes == 1 ? 127 : 1 << 20, h, v);
  for (size_t i = 0; i < n; i++) out[i] = (uint64_t)(int64_t)(o->type->is_signed ? v[i] : abs(v[i]));
}

static uint64_t integer_combine(const struct perf_oracle *o, uint64_t a, uint64_t b) {
  int less = o->type->is_signed ? (int64_t)a < (int64_t)b : a < b;
  switch (o->op) {
  case PERF_PROD: return widen(o->type, a * b);
  case PERF_MAX: return less ? b : a;
  case PERF_MIN: return less ? a : b;
  default: return widen(o->type, a + b);
  }
}

static void store_integers(const struct perf_type *t, void *buf, const uint64_t *v, size_t n) {
  for (size_t i = 0; i < n; i++) memcpy((char *)buf + i * t->bytes, &v[i], t->bytes);
}

static void input_block(const struct perf_oracle *o, void *buf, int rank, uint64_t first, size_t n) {
  if (o->type->is_float) {
    double v[BLOCK];
    float_inputs(o, rank, first, n, v);
    perf_type_store(o->type, buf, v, n);
    return;
  }
  uint64_t v[BLOCK];
  integer_inputs(o, rank, first, n, v);
  store_integers(o->type, buf, v, n);
}

VECTOR static void expected_floats(const struct perf_oracle *o, double *restrict acc, uint64_t first, size_t n) {
  double v[BLOCK];
  for (int r = 0; r < o->nranks; r++) {
    double *to = r == 0 ? acc : v;
    float_inputs(o, r, first, n, to);
    if (o->op == PERF_MULSUM)
      for (size_t i = 0; i < n; i++) to[i] *= perf_mulsum_factor(r);
    if (r == 0) continue;
    switch (o->op) {
    case PERF_PROD:
      for (size_t i = 0; i < n; i++) acc[i] *= v[i];
      break;
    case PERF_MAX:
      for (size_t i = 0; i < n; i++) acc[i] = v[i] > acc[i] ? v[i] : acc[i];
      break;
    case PERF_MIN:
      for (size_t i = 0; i < n; i++) acc[i] = v[i] < acc[i] ? v[i] : acc[i];
      break;
    default:
      for (size_t i = 0; i < n; i++) acc[i] += v[i];
    }
  }
  if (o->op == PERF_AVG)
    for (size_t i = 0; i < n; i++) acc[i] /= o->nranks;
}

static void expected_integers(const struct perf_oracle *o, uint64_t *acc, uint64_t first, size_t n) {
  uint64_t v[BLOCK];
  for (int r = 0; r < o->nranks; r++) {
    uint64_t factor = o->op == PERF_MULSUM ? (uint64_t)perf_mulsum_factor(r) : 1;
    uint64_t *to = r == 0 ? acc : v;
    integer_inputs(o, r, first, n, to);
    for (size_t i = 0; i < n; i++) to[i] = widen(o->type, factor * to[i]);
    for (size_t i = 0; r > 0 && i < n; i++) acc[i] = integer_combine(o, acc[i], v[i]);
  }
  if (o->op != PERF_AVG) return;
  for (size_t i = 0; i < n; i++) /* inputs are small: the sum did not wrap */
    acc[i] = (uint64_t)((int64_t)acc[i] / o->nranks);
}

/* Mean of the inputs' magnitudes at element i: the scale of the tolerance of avg. */
static double mean_magnitude(const struct perf_oracle *o, uint64_t i) {
  double sum = 0, v;
  for (int r = 0; r < o->nranks; r++) {
    float_inputs(o, r, i, 1, &v);
    sum += fabs(v);
  }
  return sum / o->nranks;
}

static int is_exact(const struct perf_oracle *o) { return o->op != PERF_AVG || (o->nranks & (o->nranks - 1)) == 0; }

static size_t wrong_floats(const struct perf_oracle *o, const char *got, const char *want_bits, const double *want, uint64_t first,
                           size_t n) {
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) {
    size_t at = i * o->type->bytes;
    if (memcmp(got + at, want_bits + at, o->type->bytes) == 0) continue;
    double g = perf_type_decode(o->type, got, i);
    if (g == perf_type_decode(o->type, want_bits, i)) continue; /* the two zeros */
    double slack = is_exact(o) ? 0 : (o->nranks + 1) * perf_type_epsilon(o->type) * mean_magnitude(o, first + i);
    wrong += !(fabs(g - want[i]) <= slack);
  }
  return wrong;
}

static size_t wrong_elements(const char *got, const char *want, size_t bytes, size_t n) {
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += memcmp(got + i * bytes, want + i * bytes, bytes) != 0;
  return wrong;
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

void perf_fill_numbers(const struct perf_oracle *o, void *buf, int rank, size_t first, size_t n) {
  for (size_t at = 0; at < n; at += BLOCK) input_block(o, (char *)buf + at * o->type->bytes, rank, first + at, min_size(BLOCK, n - at));
}

size_t perf_wrong_reduced(const struct perf_oracle *o, const void *buf, size_t first, size_t n) {
  size_t wrong = 0;
  uint64_t want_bits[BLOCK];
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t m = min_size(BLOCK, n - at);
    const char *got = (const char *)buf + at * o->type->bytes;
    if (o->type->is_float) {
      double want[BLOCK];
      expected_floats(o, want, first + at, m);
      perf_type_store(o->type, want_bits, want, m);
      if (memcmp(got, want_bits, m * o->type->bytes) != 0) wrong += wrong_floats(o, got, (char *)want_bits, want, first + at, m);
    } else {
      uint64_t want[BLOCK];
      expected_integers(o, want, first + at, m);
      store_integers(o->type, want_bits, want, m);
      wrong += wrong_elements(got, (char *)want_bits, o->type->bytes, m);
    }
  }
  return wrong;
}

size_t perf_wrong_input(const struct perf_oracle *o, const void *buf, int rank, size_t first, size_t n) {
  size_t wrong = 0;
  uint64_t want[BLOCK];
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t m = min_size(BLOCK, n - at);
    input_block(o, want, rank, first + at, m);
    wrong += wrong_elements((const char *)buf + at * o->type->bytes, (char *)want, o->type->bytes, m);
  }
  return wrong;
}

void perf_fill_bytes(const struct perf_oracle *o, void *buf, int rank, size_t first, size_t n) {
  char *out = buf;
  uint32_t h[BLOCK];
  for (size_t at = 0; at < n;) {
    size_t word = (first + at) / sizeof *h, skip = (first + at) % sizeof *h;
    size_t take = min_size(sizeof h - skip, n - at);
    hash_block(o, rank, word, (skip + take + sizeof *h - 1) / sizeof *h, h);
    memcpy(out + at, (char *)h + skip, take);
    at += take;
  }
}

size_t perf_wrong_bytes(const struct perf_oracle *o, const void *buf, int rank, size_t first, size_t n) {
  size_t wrong = 0, width = o->type->bytes;
  uint64_t want[BLOCK];
  for (size_t at = 0; at < n; at += sizeof want) {
    size_t m = min_size(sizeof want, n - at);
    perf_fill_bytes(o, want, rank, first + at, m);
    if (memcmp((const char *)buf + at, want, m) != 0) wrong += wrong_elements((const char *)buf + at, (char *)want, width, m / width);
  }
  return wrong;
}
