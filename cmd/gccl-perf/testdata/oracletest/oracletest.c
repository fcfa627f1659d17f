/* Checks the rank program's types and oracle against the definitions: every bit pattern of the narrow
 * types survives decode and encode, known constants are right, and reductions done step by step in the
 * element type itself, in both rank orders, agree with what the oracle expects; one changed element is found. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define N 700 /* more than one block, and no multiple of it */
#define FIRST 123

static int failures;

static void expect(int ok, const char *what, const char *type, int a, int b) {
  if (ok) return;
  printf("%s: %s (%d, %d)\n", what, type, a, b);
  failures++;
}

static const char *const names[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                    "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};

static void patterns(const struct perf_type *t) {
  if (!t->is_float || t->bytes > 2) return;
  for (uint32_t bits = 0; bits < 1u << 8 * t->bytes; bits++) {
    double v = perf_type_decode(t, &bits, 0);
    if (!isnan(v)) expect(perf_type_encode(t, v) == bits, "round trip", t->name, (int)bits, 0);
  }
}

static void constant(const char *type, double value, uint64_t bits) {
  expect(perf_type_encode(perf_type_find(type), value) == bits, "constant", type, (int)value, (int)bits);
}

/* A value rounded to the type. */
static double step(const struct perf_type *t, double v) {
  uint64_t bits = perf_type_encode(t, v);
  return perf_type_decode(t, &bits, 0);
}

static double combine(enum perf_op op, double a, double b) {
  switch (op) {
    case PERF_PROD: return a * b;
    case PERF_MAX: return a > b ? a : b;
    case PERF_MIN: return a < b ? a : b;
    default: return a + b;
  }
}

static void reduce_floats(const struct perf_oracle *o, int reverse) {
  const struct perf_type *t = o->type;
  static char in[64][N * 8];
  uint64_t out[N];
  char *bytes = (char *)out;
  for (int r = 0; r < o->nranks; r++) perf_fill_numbers(o, in[r], r, FIRST, N);
  double share = step(t, 1.0 / o->nranks);
  for (size_t i = 0; i < N; i++) {
    double acc = 0;
    for (int k = 0; k < o->nranks; k++) {
      int r = reverse ? o->nranks - 1 - k : k;
      double v = perf_type_decode(t, in[r], i);
      if (o->op == PERF_MULSUM) v = step(t, v * perf_mulsum_factor(r));
      if (o->op == PERF_AVG) v = step(t, v * share);
      acc = k == 0 ? v : step(t, combine(o->op, acc, v));
    }
    uint64_t bits = perf_type_encode(t, acc);
    memcpy(bytes + i * t->bytes, &bits, t->bytes);
  }
  expect(perf_wrong_reduced(o, out, FIRST, N) == 0, "reduction", t->name, o->op, o->nranks);
  double other = perf_type_decode(t, out, N / 2) + 4;
  uint64_t bits = perf_type_encode(t, other);
  memcpy(bytes + N / 2 * t->bytes, &bits, t->bytes);
  expect(perf_wrong_reduced(o, out, FIRST, N) == 1, "changed element", t->name, o->op, o->nranks);
}

static uint64_t load(const struct perf_type *t, const char *at) {
  uint64_t v = 0;
  memcpy(&v, at, t->bytes);
  if (t->is_signed && t->bytes < 8 && v >> (8 * t->bytes - 1) & 1) v |= ~0ull << 8 * t->bytes;
  return v;
}

static void reduce_integers(const struct perf_oracle *o) {
  const struct perf_type *t = o->type;
  static char in[64][N * 8];
  char out[N * 8];
  for (int r = 0; r < o->nranks; r++) perf_fill_numbers(o, in[r], r, FIRST, N);
  for (size_t i = 0; i < N; i++) {
    uint64_t acc = 0;
    for (int r = 0; r < o->nranks; r++) {
      uint64_t v = load(t, in[r] + i * t->bytes);
      if (o->op == PERF_MULSUM) v *= (uint64_t)perf_mulsum_factor(r);
      char wrapped[8];
      memcpy(wrapped, &v, 8);
      v = load(t, wrapped);
      int less = t->is_signed ? (int64_t)acc < (int64_t)v : acc < v;
      if (r == 0) acc = v;
      else if (o->op == PERF_PROD) acc *= v;
      else if (o->op == PERF_MAX) acc = less ? v : acc;
      else if (o->op == PERF_MIN) acc = less ? acc : v;
      else acc += v;
      memcpy(wrapped, &acc, 8);
      acc = load(t, wrapped);
    }
    if (o->op == PERF_AVG) acc = t->is_signed ? (uint64_t)((int64_t)acc / o->nranks) : acc / (uint64_t)o->nranks;
    memcpy(out + i * t->bytes, &acc, t->bytes);
  }
  expect(perf_wrong_reduced(o, out, FIRST, N) == 0, "reduction", t->name, o->op, o->nranks);
  out[5 * t->bytes] ^= 1;
  expect(perf_wrong_reduced(o, out, FIRST, N) == 1, "changed element", t->name, o->op, o->nranks);
}

/* Copies: any window of a rank's bytes is the same bytes, and differs from other ranks'. */
static void copies(const struct perf_type *t) {
  struct perf_oracle o = {t, PERF_SUM, 4, 9};
  char whole[5000], part[1000];
  perf_fill_bytes(&o, whole, 2, 0, sizeof whole);
  for (size_t at = 0; at < 17; at++) {
    perf_fill_bytes(&o, part, 2, at, sizeof part);
    expect(memcmp(part, whole + at, sizeof part) == 0, "bytes at an offset", t->name, (int)at, 0);
  }
  size_t n = 4800;
  expect(perf_wrong_bytes(&o, whole, 2, 0, n) == 0, "bytes", t->name, 0, 0);
  expect(perf_wrong_bytes(&o, whole, 3, 0, n) > n / t->bytes * 9 / 10, "another rank's bytes", t->name, 0, 0);
  o.seed++;
  expect(perf_wrong_bytes(&o, whole, 2, 0, n) > n / t->bytes * 9 / 10, "another seed's bytes", t->name, 0, 0);
}

int main(void) {
  static const int worlds[] = {1, 2, 3, 5, 8, 16, 40};
  perf_types_init();
  constant("half", 1, 0x3c00);
  constant("half", 65504, 0x7bff);
  constant("half", 65520, 0x7c00); /* rounds to infinity */
  constant("bfloat16", -2, 0xc000);
  constant("f8e4m3", 448, 0x7e);
  constant("f8e4m3", 1000, 0x7e); /* saturates */
  constant("f8e5m2", 57344, 0x7b);
  constant("float", 1, 0x3f800000);
  constant("double", 1, 0x3ff0000000000000);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const struct perf_type *t = perf_type_find(names[k]);
    patterns(t);
    copies(t);
    for (int op = 0; op < PERF_OPS; op++)
      for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
        struct perf_oracle o = {t, (enum perf_op)op, worlds[w], (uint32_t)(op + 7)};
        if (!t->is_float) {
          reduce_integers(&o);
          continue;
        }
        reduce_floats(&o, 0);
        reduce_floats(&o, 1);
      }
  }
  printf("%d failures\n", failures);
  return failures != 0;
}
