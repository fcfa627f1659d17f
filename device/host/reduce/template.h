/* The kernels, compiled once for each instruction set by the isa_*.c file that includes this one after choosing the
 * target. Loops are plain; the compiler vectorises them. The including file defines ISA (identifier) and
 * ISA_NAME. It may bring its own fp16 kernels (HAVE_HALF_KERNELS) or fp16 conversions (HALF_ELEMENT, HALF_WIDEN,
 * HALF_NARROW), and its own stream_n and fence_n (HAVE_STREAM). */

typedef int8_t i8_t __attribute__((may_alias, aligned(1)));
typedef uint8_t u8_t __attribute__((may_alias, aligned(1)));
typedef uint16_t u16_t __attribute__((may_alias, aligned(1)));
typedef int32_t i32_t __attribute__((may_alias, aligned(1)));
typedef uint32_t u32_t __attribute__((may_alias, aligned(1)));
typedef int64_t i64_t __attribute__((may_alias, aligned(1)));
typedef uint64_t u64_t __attribute__((may_alias, aligned(1)));
typedef float f32_t __attribute__((may_alias, aligned(1)));
typedef double f64_t __attribute__((may_alias, aligned(1)));

/* Equal pointers are allowed, other overlap is not: no dependence between iterations. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)") for (size_t i = 0; i < n; i++)
#else
#define EACH _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++)
#endif

#define SAME(x) (x)

/* T: element type in memory, A: accumulator's type in memory, LD: element to accumulator, ST: back. */
#define OP_KERNELS(N, T, A, LD, ST, CANON, OPNAME, OP)                                         \
  static void pair_##N##_##OPNAME(void *d, const void *a, const void *b, size_t n) {           \
    T *o = d;                                                                                  \
    const T *x = a, *y = b;                                                                    \
    EACH o[i] = ST(OP(LD(x[i]), LD(y[i])));                                                    \
  }                                                                                            \
  static void pair2_##N##_##OPNAME(void *d, void *e, const void *a, const void *b, size_t n) { \
    T *o = d, *p = e;                                                                          \
    const T *x = a, *y = b;                                                                    \
    EACH o[i] = p[i] = ST(OP(LD(x[i]), LD(y[i])));                                             \
  }                                                                                            \
  static void fold_##N##_##OPNAME(void *d, const void *acc, const void *s, size_t n) {         \
    A *o = d;                                                                                  \
    const A *x = acc;                                                                          \
    const T *y = s;                                                                            \
    EACH o[i] = CANON(OP(x[i], LD(y[i])));                                                     \
  }

#define SUM3_KERNEL(N, T, A, LD, CANON, OP)                                                                   \
  static void sum3_##N##_n(void *d, const void *acc, const void *r, const void *s, const void *t, size_t n) { \
    A *o = d;                                                                                                 \
    const A *w = acc;                                                                                         \
    const T *x = r, *y = s, *z = t;                                                                           \
    EACH o[i] = CANON(OP(OP(OP(w[i], LD(x[i])), LD(y[i])), LD(z[i])));                                        \
  }

#define CONVERT_KERNELS(N, T, A, LD, ST)                         \
  static void widen_##N##_n(void *d, const void *s, size_t n) {  \
    A *o = d;                                                    \
    const T *x = s;                                              \
    EACH o[i] = LD(x[i]);                                        \
  }                                                              \
  static void narrow_##N##_n(void *d, const void *s, size_t n) { \
    T *o = d;                                                    \
    const A *x = s;                                              \
    EACH o[i] = ST(x[i]);                                        \
  }

#define SCALE_KERNEL(N, T, A, LD, MUL, C, FIELD)                                \
  static void scale_##N##_n(void *d, const void *s, size_t n, gccl_scalar by) { \
    const C f = (C)by.FIELD;                                                    \
    A *o = d;                                                                   \
    const T *x = s;                                                             \
    EACH o[i] = MUL(LD(x[i]), f);                                               \
  }

/* Integers. U is the unsigned type of the same size: its arithmetic wraps. */
#define INT_KERNELS(N, T, U, FIELD)                                \
  INL T add_##N(T a, T b) { return (T)(U)((U)a + (U)b); }          \
  INL T mul_##N(T a, T b) { return (T)(U)((U)a * (U)b); }          \
  INL T max_##N(T a, T b) { return a > b ? a : b; }                \
  INL T min_##N(T a, T b) { return a < b ? a : b; }                \
  OP_KERNELS(N, T##_mem, T##_mem, SAME, SAME, SAME, sum, add_##N)  \
  OP_KERNELS(N, T##_mem, T##_mem, SAME, SAME, SAME, prod, mul_##N) \
  OP_KERNELS(N, T##_mem, T##_mem, SAME, SAME, SAME, max, max_##N)  \
  OP_KERNELS(N, T##_mem, T##_mem, SAME, SAME, SAME, min, min_##N)  \
  SUM3_KERNEL(N, T##_mem, T##_mem, SAME, SAME, add_##N)            \
  CONVERT_KERNELS(N, T##_mem, T##_mem, SAME, SAME)                 \
  SCALE_KERNEL(N, T##_mem, T##_mem, SAME, mul_##N, T, FIELD)

#define int8_t_mem i8_t
#define uint8_t_mem u8_t
#define int32_t_mem i32_t
#define uint32_t_mem u32_t
#define int64_t_mem i64_t
#define uint64_t_mem u64_t
INT_KERNELS(i8, int8_t, uint8_t, i64)
INT_KERNELS(u8, uint8_t, uint8_t, u64)
INT_KERNELS(i32, int32_t, uint32_t, i64)
INT_KERNELS(u32, uint32_t, uint32_t, u64)
INT_KERNELS(i64, int64_t, uint64_t, i64)
INT_KERNELS(u64, uint64_t, uint64_t, u64)

/* A float division of type F is exact enough to truncate: a quotient that is no integer is at least 1/by away from
 * the next one, far more than the rounding error while the values fit the mantissa; a larger divisor gives less
 * than one either way. */
#define DIVIDE_FLOAT(N, T, F)                                                 \
  static void divide_##N##_n(void *d, const void *s, size_t n, uint64_t by) { \
    const F q = (F)by;                                                        \
    T *o = d;                                                                 \
    const T *x = s;                                                           \
    EACH o[i] = (T)((F)x[i] / q);                                             \
  }
DIVIDE_FLOAT(i8, i8_t, float)
DIVIDE_FLOAT(u8, u8_t, float)
DIVIDE_FLOAT(i32, i32_t, double)
DIVIDE_FLOAT(u32, u32_t, double)

static void divide_i64_n(void *d, const void *s, size_t n, uint64_t by) {
  i64_t *o = d;
  const i64_t *x = s;
  if (by > INT64_MAX) { /* only -2^63 / 2^63 is not zero */
    EACH o[i] = by == (uint64_t)1 << 63 && x[i] == INT64_MIN ? -1 : 0;
    return;
  }
  EACH o[i] = x[i] / (int64_t)by;
}

static void divide_u64_n(void *d, const void *s, size_t n, uint64_t by) {
  u64_t *o = d;
  const u64_t *x = s;
  EACH o[i] = x[i] / by;
}

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))

#define FLOAT_KERNELS(N, T, A, LD, ST, CANON, MAX, MIN, C, FIELD) \
  OP_KERNELS(N, T, A, LD, ST, CANON, sum, ADD)                    \
  OP_KERNELS(N, T, A, LD, ST, CANON, prod, MUL)                   \
  OP_KERNELS(N, T, A, LD, ST, CANON, max, MAX)                    \
  OP_KERNELS(N, T, A, LD, ST, CANON, min, MIN)                    \
  SUM3_KERNEL(N, T, A, LD, CANON, ADD)                            \
  CONVERT_KERNELS(N, T, A, LD, ST)                                \
  SCALE_KERNEL(N, T, A, LD, MUL, C, FIELD)

FLOAT_KERNELS(f32, f32_t, f32_t, SAME, canon32, canon32, max_f32, min_f32, float, f32)
FLOAT_KERNELS(f64, f64_t, f64_t, SAME, canon64, canon64, max_f64, min_f64, double, f64)
FLOAT_KERNELS(bf16, u16_t, f32_t, widen_bf16, narrow_bf16, canon32, max_f32, min_f32, float, f32)
FLOAT_KERNELS(e4m3, u8_t, f32_t, widen_e4m3, narrow_e4m3, canon32, max_f32, min_f32, float, f32)
FLOAT_KERNELS(e5m2, u8_t, f32_t, widen_e5m2, narrow_e5m2, canon32, max_f32, min_f32, float, f32)
#ifndef HAVE_HALF_KERNELS
#ifndef HALF_ELEMENT
#define HALF_ELEMENT u16_t
#define HALF_WIDEN widen_f16
#define HALF_NARROW narrow_f16
#endif
FLOAT_KERNELS(f16, HALF_ELEMENT, f32_t, HALF_WIDEN, HALF_NARROW, canon32, max_f32, min_f32, float, f32)
#endif

/* A copy between memory of two ranks. The C library's memcpy turns to one string instruction at a few KiB, which takes
 * several times as long where the destination's lines are in a peer's cache; here they are asked for ahead. */
static void copy_n(void *restrict dst, const void *restrict src, size_t bytes) {
  char *d = dst;
  const char *s = src;
  for (; bytes >= 128; bytes -= 128, d += 128, s += 128) {
    __builtin_prefetch(d + 512, 1);
    __builtin_prefetch(d + 576, 1);
    __builtin_memcpy(d, s, 64);
    __builtin_memcpy(d + 64, s + 64, 64);
  }
  memcpy(d, s, bytes);
}

#ifndef HAVE_STREAM
static void stream_n(void *d, const void *s, size_t bytes) { memcpy(d, s, bytes); }
static void fence_n(void) {}
#endif

#define OPS(K, N) \
  { K##_##N##_sum, K##_##N##_prod, K##_##N##_max, K##_##N##_min }
#define PER_TYPE_OPS(K)                                                                                                              \
  {                                                                                                                                  \
    OPS(K, i8), OPS(K, u8), OPS(K, i32), OPS(K, u32), OPS(K, i64), OPS(K, u64), OPS(K, f16), OPS(K, f32), OPS(K, f64), OPS(K, bf16), \
        OPS(K, e4m3), OPS(K, e5m2)                                                                                                   \
  }
#define PER_TYPE(K) \
  { K##_i8_n, K##_u8_n, K##_i32_n, K##_u32_n, K##_i64_n, K##_u64_n, K##_f16_n, K##_f32_n, K##_f64_n, K##_bf16_n, K##_e4m3_n, K##_e5m2_n }

const struct gccl_reduce_isa ISA = {
    .name = ISA_NAME,
    .pair = PER_TYPE_OPS(pair),
    .pair2 = PER_TYPE_OPS(pair2),
    .fold = PER_TYPE_OPS(fold),
    .sum3 = PER_TYPE(sum3),
    .widen = PER_TYPE(widen),
    .scale = PER_TYPE(scale),
    .narrow = PER_TYPE(narrow),
    .divide = {divide_i8_n, divide_u8_n, divide_i32_n, divide_u32_n, divide_i64_n, divide_u64_n},
    .copy = copy_n,
    .stream = stream_n,
    .fence = fence_n,
};
