/* The table of one set of kernels; private to this directory. Each isa_*.c fills one from template.h. */
#ifndef GCCL_REDUCE_KERNELS_H
#define GCCL_REDUCE_KERNELS_H

#include "reduce.h"

enum {
  GCCL_I8,
  GCCL_U8,
  GCCL_I32,
  GCCL_U32,
  GCCL_I64,
  GCCL_U64,
  GCCL_F16,
  GCCL_F32,
  GCCL_F64,
  GCCL_BF16,
  GCCL_E4M3,
  GCCL_E5M2,
  GCCL_NTYPES
};
enum { GCCL_SUM, GCCL_PROD, GCCL_MAX, GCCL_MIN, GCCL_NOPS };

/* In all kernels the output may be the same pointer as an input of the same element size. */
struct gccl_reduce_isa {
  const char *name;
  /* Elements in, elements out: one pass, rounded at the end; with one and two destinations. */
  void (*pair[GCCL_NTYPES][GCCL_NOPS])(void *d, const void *a, const void *b, size_t n);
  void (*pair2[GCCL_NTYPES][GCCL_NOPS])(void *d, void *e, const void *a, const void *b, size_t n);
  /* out = op(acc, src): out and acc of the accumulator's type, src elements. NaNs become canonical. */
  void (*fold[GCCL_NTYPES][GCCL_NOPS])(void *out, const void *acc, const void *src, size_t n);
  /* out = acc + a + b + c, in that order: fewer passes over the accumulators for the most frequent operator. */
  void (*sum3[GCCL_NTYPES])(void *out, const void *acc, const void *a, const void *b, const void *c, size_t n);
  /* Elements to accumulators, plain and scaled. */
  void (*widen[GCCL_NTYPES])(void *acc, const void *src, size_t n);
  void (*scale[GCCL_NTYPES])(void *acc, const void *src, size_t n, gccl_scalar by);
  /* Accumulators to elements: rounds, saturates, makes NaN canonical. */
  void (*narrow[GCCL_NTYPES])(void *dst, const void *acc, size_t n);
  /* Integers only: quotient, truncated toward zero. */
  void (*divide[GCCL_NTYPES])(void *dst, const void *acc, size_t n, uint64_t by);
  /* Copy with non-temporal stores; the caller calls fence afterwards. Plain where the processor has none. */
  void (*copy)(void *dst, const void *src, size_t bytes);
  void (*stream)(void *dst, const void *src, size_t bytes);
  void (*fence)(void);
};

extern const struct gccl_reduce_isa gccl_reduce_isa_c;
#if defined(__x86_64__)
extern const struct gccl_reduce_isa gccl_reduce_isa_avx2, gccl_reduce_isa_avx512;
#elif defined(__aarch64__)
extern const struct gccl_reduce_isa gccl_reduce_isa_neon;
#endif

#endif
