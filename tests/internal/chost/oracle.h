/* oracle.h: inputs that every rank can compute, and what a reduction of them may give.
 *
 * The rule checked: 16- and 8-bit floats are folded in fp32 and rounded once at the end, fp32 in fp32, fp64 in
 * fp64; the order of the fold is free. So the result lies between the roundings of s-b and s+b, where s is the
 * exact value and b bounds the error of any order of the fold; where all partial results are exact, b is 0 and one
 * bit pattern is right. Integers wrap, their average truncates. The float average multiplies each input by 1/n in
 * the accumulator's type before the fold. */
#ifndef CONF_ORACLE_H
#define CONF_ORACLE_H

#include <nccl.h>
#include <stdint.h>

/* Operators of the test: the five built-in ones, and premulsum with both scalar kinds. */
enum { OP_PREMUL_HOST = 5, OP_PREMUL_DEVICE = 6, OP_COUNT = 7 };
const char *op_name(int op);

/* EXACT: small values whose sums and products are exact in every order; ROUGH: all mantissa bits in use. */
enum flavour { EXACT, ROUGH };

struct oracle {
  ncclDataType_t type;
  int op, nranks;
  enum flavour flavour;
  uint64_t seed;
};

uint64_t oracle_input(const struct oracle *, int rank, size_t index);
/* The premulsum scalar of a rank; it differs from rank to rank. */
uint64_t oracle_scalar(const struct oracle *, int rank);
/* Lowest and highest right result at index over all ranks. Equal for integers and exact floats. */
void oracle_reduce(const struct oracle *, size_t index, uint64_t *lo, uint64_t *hi);
/* Whether got is right. */
int oracle_match(ncclDataType_t, uint64_t got, uint64_t lo, uint64_t hi);

#endif
