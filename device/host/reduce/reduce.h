/* Reduction and copy kernels of the host device: n sources folded into m destinations.
 *
 * Plain C11 with GNU extensions; knows nothing of Go, communicators or plans. Every set of kernels gives the
 * same bits for the same input, so ranks on different processors agree.
 *
 * Arithmetic:
 * - fp16, bf16 and fp8 are widened to fp32, folded in fp32 from left to right, and rounded once (to nearest,
 *   ties to even) when stored. fp32 and fp64 are folded in their own type. Nothing is fused or reordered.
 * - fp8 (OCP 8-bit floating point, E4M3FN and E5M2) is stored in the saturating mode of that specification:
 *   values beyond the largest finite value, and infinities too, become the largest finite value of their sign.
 * - max and min prefer a number to a NaN; the result is NaN only if all inputs are. +0 counts as greater than -0,
 *   so min and max do not depend on the order of the sources.
 * - A NaN result is stored as the one positive quiet NaN of the type (fp64 0x7ff8000000000000, fp32 0x7fc00000,
 *   fp16 0x7e00, bf16 0x7fc0, e4m3 0x7f, e5m2 0x7e). Only a single unscaled source is
 *   copied bit for bit, if all destinations take the type that it is in.
 * - Integers wrap, also when scaled.
 */
#ifndef GCCL_REDUCE_H
#define GCCL_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scale in the accumulator's type: f32 for fp8, fp16, bf16 and fp32; f64 for fp64; i64 or u64 for integers
 * (multiplied in the element's type, wrapping). */
typedef union {
  double f64;
  float f32;
  int64_t i64;
  uint64_t u64;
} gccl_scalar;

/* One source of a fold. partial: the elements are of the accumulator's type (fp32 for 16- and 8-bit floats, else
 * the type itself). scaled: every element is multiplied by scale before it is folded. */
typedef struct {
  const void *ptr;
  uint8_t partial, scaled;
  gccl_scalar scale;
} gccl_reduce_src;

/* One destination. partial: store the accumulator's type. stream: use non-temporal stores, which are fenced
 * before gccl_reduce returns. */
typedef struct {
  void *ptr;
  uint8_t partial;
  uint8_t stream;
} gccl_reduce_dst;

/* A set of kernels: "c", "avx2", "avx512" or "neon". */
typedef struct gccl_reduce_isa gccl_reduce_isa;

/* The set to use: the forced one, else the best that the processor runs. Cached; safe from any thread. */
const gccl_reduce_isa *gccl_reduce_best(void);

/* The set of that name; NULL if it is unknown or the processor lacks it. */
const gccl_reduce_isa *gccl_reduce_named(const char *name);

/* Makes gccl_reduce_best return the named set from now on; NULL or "" lifts that. Returns 0, or -1 (and changes
 * nothing) if gccl_reduce_named would return NULL. */
int gccl_reduce_force(const char *name);

const char *gccl_reduce_name(const gccl_reduce_isa *isa);

/* The names that gccl_reduce_named knows on this processor, best first, separated by commas. One caller at a time. */
const char *gccl_reduce_sets(void);

/* dst[k][i] = round(fold over s = 0 … nsrc-1, left to right, of scale_s(src[s][i])) for n elements; every
 * destination gets the same value.
 *
 * dtype and op are values of ncclDataType_t (0 … 11) and ncclRedOp_t (0 … 3: sum, prod, max, min).
 * div != 0: for integer types the folded value is divided by div, truncating toward zero, before it is stored to
 * destinations that are not partial; float types ignore it.
 * A destination may be the same pointer as a source if both have the same element size; otherwise sources and
 * destinations do not overlap. Pointers need no alignment. With n == 0 pointers are not looked at.
 * Returns 0, or -1 for an unknown type or op or for no source. */
int gccl_reduce(const gccl_reduce_isa *isa, int dtype, int op, gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src, int nsrc,
                size_t n, uint64_t div);

/* memcpy; stream != 0 uses non-temporal stores for large copies, fenced before it returns. */
void gccl_copy(const gccl_reduce_isa *isa, void *dst, const void *src, size_t bytes, int stream);

/* Bytes of an element, and of its accumulator; 0 for an unknown type. */
size_t gccl_dtype_size(int dtype);
size_t gccl_acc_size(int dtype);

#ifdef __cplusplus
}
#endif
#endif
