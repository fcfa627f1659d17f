/* The twelve data types as the oracle sees them: size, kind, the integers they
 * hold exactly, and conversion from and to double. Written from the format
 * definitions alone, so that it shares nothing with the library under test. */
#ifndef GCCL_PERF_TYPES_H
#define GCCL_PERF_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"

struct perf_type {
  const char *name; /* nccl-tests' name */
  ncclDataType_t id;
  size_t bytes;
  int is_float;
  int is_signed;
  int64_t exact;                    /* floats: all integers up to this are exact (capped) */
  int exponent_bits, fraction_bits; /* floats */
  int finite_only;                  /* e4m3: no infinities, all-ones is the only NaN */
};

/* Once, before any other call and before there are threads. */
void perf_types_init(void);

/* NULL where the name is unknown. */
const struct perf_type *perf_type_find(const char *name);

/* Distance from 1 to the next value. Floats only. */
double perf_type_epsilon(const struct perf_type *t);

/* The bits of value in type t, rounded to nearest even. */
uint64_t perf_type_encode(const struct perf_type *t, double value);

/* Floats: the value of element i of buf. */
double perf_type_decode(const struct perf_type *t, const void *buf, size_t i);

/* Stores n values as elements of a float type. */
void perf_type_store(const struct perf_type *t, void *buf, const double *values, size_t n);

#endif
