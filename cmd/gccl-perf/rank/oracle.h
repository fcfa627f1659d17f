/* What every rank sends and what every rank must receive, from a hash of
 * (seed, rank, element): each rank can work out the whole world's data alone.
 *
 * Reductions. Integer inputs use the full range and wrap (avg: kept so small that the
 * sum does not wrap). Float inputs are small integers, so few that every partial sum,
 * maximum or product is exact in the type whatever the order; then bits are compared.
 * The one exception is avg over a number of ranks that is no power of two, where
 * 1/nranks has to be rounded: (nranks + 1) epsilons of the mean magnitude are allowed,
 * which covers both scaling before and dividing after the sum.
 *
 * Copies. Bytes are arbitrary (NaN patterns included) and compared as bytes. */
#ifndef GCCL_PERF_ORACLE_H
#define GCCL_PERF_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

enum perf_op { PERF_SUM, PERF_PROD, PERF_MAX, PERF_MIN, PERF_AVG, PERF_MULSUM, PERF_OPS };

/* PERF_OPS where the name is unknown. */
enum perf_op perf_op_find(const char *name);

/* Factor with which rank's input is multiplied under mulsum. */
int perf_mulsum_factor(int rank);

struct perf_oracle {
  const struct perf_type *type;
  enum perf_op op;
  int nranks;
  uint32_t seed;
};

/* Reductions: rank's input, elements first…first+n. */
void perf_fill_numbers(const struct perf_oracle *o, void *buf, int rank, size_t first, size_t n);
/* Number of elements of buf that are not the reduction of all ranks' inputs. */
size_t perf_wrong_reduced(const struct perf_oracle *o, const void *buf, size_t first, size_t n);
/* Number of elements that are not rank's input any more. */
size_t perf_wrong_input(const struct perf_oracle *o, const void *buf, int rank, size_t first, size_t n);

/* Copies: rank's bytes first…first+n. */
void perf_fill_bytes(const struct perf_oracle *o, void *buf, int rank, size_t first, size_t n);
/* Number of elements of width bytes that differ from rank's bytes. */
size_t perf_wrong_bytes(const struct perf_oracle *o, const void *buf, int rank, size_t first, size_t n);

#endif
