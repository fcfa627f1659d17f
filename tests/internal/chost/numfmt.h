/* numfmt.h: the twelve data types as bytes, for the oracle. Formats: IEEE 754 for 16, 32 and 64 bits; bfloat16 is
 * binary32 cut to 16 bits; fp8 as in "FP8 Formats for Deep Learning" (arXiv 2209.05433, table 1): e4m3 has no
 * infinity and one NaN pattern, e5m2 is IEEE-like. fp8 results saturate. */
#ifndef CONF_NUMFMT_H
#define CONF_NUMFMT_H

#include <nccl.h>
#include <stdint.h>

size_t num_size(ncclDataType_t);
const char *num_name(ncclDataType_t);
int num_is_float(ncclDataType_t);
int num_is_signed(ncclDataType_t);
/* Bits of the accumulator: 24 for types that are summed in fp32, 53 for fp64. */
int num_acc_bits(ncclDataType_t);

uint64_t num_load(ncclDataType_t, const void *buf, size_t index); /* raw bits, zero extended */
void num_store(ncclDataType_t, void *buf, size_t index, uint64_t bits);

long double num_decode(ncclDataType_t, uint64_t bits);  /* float types */
uint64_t num_encode(ncclDataType_t, long double value); /* float types: nearest, ties to even */
int64_t num_sext(ncclDataType_t, uint64_t bits);        /* signed integer types */
uint64_t num_wrap(ncclDataType_t, uint64_t v);          /* integer types: cut to the width */
uint64_t num_one(ncclDataType_t, double v);             /* the value v, exactly representable, as bits */

/* Exhaustive round trips of the small formats and known values. Returns the number of errors. */
int num_selftest(void);

#endif
