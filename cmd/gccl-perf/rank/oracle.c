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

static uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ x >> 32;
}

static uint64_t hash(const struct perf_oracle *o, int rank, uint64_t i) {
  return mix((uint64_t)o->seed << 40 ^ (uint64_t)(rank + 1) * 0x632be59bd9b4e019ull ^ i);
}

/* Uniform in -limit…limit. */
static int64_t small_integer(uint64_t h, int64_t limit) {
  return (int64_t)((h >> 32) * (uint64_t)(2 * limit + 1) >> 32) - limit;
}

/* A share of a sum whose magnitude stays at most limit over all ranks: with more ranks than
 * limit only some of them, another set at each element, contribute. */
static int64_t bounded_share(const struct perf_oracle *o, uint64_t h, int rank, uint64_t i, int64_t limit) {
  int64_t each = limit / o->nranks;
  if (each > 0) return small_integer(h, each);
  return (int64_t)(((uint64_t)rank + i) % (uint64_t)o->nranks) < limit ? small_integer(h, 1) : 0;
}

static double float_input(const struct perf_oracle *o, int rank, uint64_t i) {
  uint64_t h = hash(o, rank, i);
  int64_t exact = o->type->exact;
  switch (o->op) {
    case PERF_PROD: {
      int may_double = ((uint64_t)rank + i) % (uint64_t)o->nranks < PROD_DOUBLINGS;
      double v = may_double && h >> 60 & 1 ? 2 : 1;
      return h >> 61 & 1 ? -v : v;
    }
    case PERF_MAX:
    case PERF_MIN:
      return (double)small_integer(h, exact);
    case PERF_MULSUM:
      return (double)bounded_share(o, h, rank, i, exact / 2);
    default:
      return (double)bounded_share(o, h, rank, i, exact);
  }
}

static uint64_t mask_of(const struct perf_type *t) { return t->bytes == 8 ? ~0ull : (1ull << 8 * t->bytes) - 1; }

/* The value of the low bits of v as an element, widened to 64 bits. */
static uint64_t widen(const struct perf_type *t, uint64_t v) {
  v &= mask_of(t);
  if (t->is_signed && v >> (8 * t->bytes - 1) & 1) v |= ~mask_of(t);
  return v;
}

static uint64_t integer_input(const struct perf_oracle *o, int rank, uint64_t i) {
  uint64_t h = hash(o, rank, i);
  if (o->op != PERF_AVG) return widen(o->type, h);
  int64_t v = bounded_share(o, h, rank, i, o->type->bytes == 1 ? 127 : 1 << 20);
  return (uint64_t)(o->type->is_signed ? v : llabs(v));
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
    for (size_t i = 0; i < n; i++) v[i] = float_input(o, rank, first + i);
    perf_type_store(o->type, buf, v, n);
    return;
  }
  uint64_t v[BLOCK];
  for (size_t i = 0; i < n; i++) v[i] = integer_input(o, rank, first + i);
  store_integers(o->type, buf, v, n);
}

static void expected_floats(const struct perf_oracle *o, double *acc, uint64_t first, size_t n) {
  for (int r = 0; r < o->nranks; r++) {
    double factor = o->op == PERF_MULSUM ? perf_mulsum_factor(r) : 1;
    for (size_t i = 0; i < n; i++) {
      double v = factor * float_input(o, r, first + i);
      if (r == 0) acc[i] = v;
      else if (o->op == PERF_PROD) acc[i] *= v;
      else if (o->op == PERF_MAX) acc[i] = v > acc[i] ? v : acc[i];
      else if (o->op == PERF_MIN) acc[i] = v < acc[i] ? v : acc[i];
      else acc[i] += v;
    }
  }
  if (o->op == PERF_AVG)
    for (size_t i = 0; i < n; i++) acc[i] /= o->nranks;
}

static void expected_integers(const struct perf_oracle *o, uint64_t *acc, uint64_t first, size_t n) {
  for (int r = 0; r < o->nranks; r++) {
    uint64_t factor = o->op == PERF_MULSUM ? (uint64_t)perf_mulsum_factor(r) : 1;
    for (size_t i = 0; i < n; i++) {
      uint64_t v = widen(o->type, factor * integer_input(o, r, first + i));
      acc[i] = r == 0 ? v : integer_combine(o, acc[i], v);
    }
  }
  if (o->op != PERF_AVG) return;
  for (size_t i = 0; i < n; i++) /* inputs are small: the sum is positive or truly signed */
    acc[i] = (uint64_t)((int64_t)acc[i] / o->nranks);
}

/* Mean of the inputs' magnitudes at element i: the scale of the tolerance of avg. */
static double mean_magnitude(const struct perf_oracle *o, uint64_t i) {
  double sum = 0;
  for (int r = 0; r < o->nranks; r++) sum += fabs(float_input(o, r, i));
  return sum / o->nranks;
}

static int is_exact(const struct perf_oracle *o) {
  return o->op != PERF_AVG || (o->nranks & (o->nranks - 1)) == 0;
}

static size_t wrong_floats(const struct perf_oracle *o, const char *got, const char *want_bits, const double *want,
                           uint64_t first, size_t n) {
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
  for (size_t at = 0; at < n; at += BLOCK)
    input_block(o, (char *)buf + at * o->type->bytes, rank, first + at, min_size(BLOCK, n - at));
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
      if (memcmp(got, want_bits, m * o->type->bytes) != 0)
        wrong += wrong_floats(o, got, (char *)want_bits, want, first + at, m);
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
  size_t i = 0;
  while (i < n) {
    uint64_t word = (first + i) / 8, skip = (first + i) % 8;
    uint64_t bits = hash(o, rank, word);
    size_t take = min_size(8 - skip, n - i);
    memcpy(out + i, (char *)&bits + skip, take);
    i += take;
  }
}

size_t perf_wrong_bytes(const struct perf_oracle *o, const void *buf, int rank, size_t first, size_t n) {
  size_t wrong = 0, width = o->type->bytes;
  uint64_t want[BLOCK];
  for (size_t at = 0; at < n; at += sizeof want) {
    size_t m = min_size(sizeof want, n - at);
    perf_fill_bytes(o, want, rank, first + at, m);
    if (memcmp((const char *)buf + at, want, m) != 0)
      wrong += wrong_elements((const char *)buf + at, (char *)want, width, m / width);
  }
  return wrong;
}
