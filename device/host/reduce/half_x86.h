/* The fp16 kernels with the processor's own conversions, which compilers do not find in plain loops. The including
 * file defines LANES and the h… operations on vectors of LANES floats. The bits are those of convert.h: the
 * conversions round as told by their operand and handle subnormal numbers whatever the processor's modes are. */
#define HAVE_HALF_KERNELS

INL float widen_h(uint16_t h) { return _cvtsh_ss(h); }
INL uint16_t narrow_h(float f) { return (uint16_t)_cvtss_sh(canon32(f), _MM_FROUND_TO_NEAREST_INT); }

#define HALF_OP(OPNAME, OP, VOP)                                                               \
  static void pair_f16_##OPNAME(void *d, const void *a, const void *b, size_t n) {             \
    uint16_mem *o = d;                                                                         \
    const uint16_mem *x = a, *y = b;                                                           \
    size_t i = 0;                                                                              \
    for (; i + LANES <= n; i += LANES) hstore(o + i, VOP(hload(x + i), hload(y + i)));         \
    for (; i < n; i++) o[i] = narrow_h(OP(widen_h(x[i]), widen_h(y[i])));                      \
  }                                                                                            \
  static void pair2_f16_##OPNAME(void *d, void *e, const void *a, const void *b, size_t n) {   \
    uint16_mem *o = d, *p = e;                                                                 \
    const uint16_mem *x = a, *y = b;                                                           \
    size_t i = 0;                                                                              \
    for (; i + LANES <= n; i += LANES) {                                                       \
      hvec v = VOP(hload(x + i), hload(y + i));                                                \
      hstore(o + i, v);                                                                        \
      hstore(p + i, v);                                                                        \
    }                                                                                          \
    for (; i < n; i++) o[i] = p[i] = narrow_h(OP(widen_h(x[i]), widen_h(y[i])));               \
  }                                                                                            \
  static void fold_f16_##OPNAME(void *d, const void *acc, const void *s, size_t n) {           \
    float_mem *o = d;                                                                          \
    const float_mem *x = acc;                                                                  \
    const uint16_mem *y = s;                                                                   \
    size_t i = 0;                                                                              \
    for (; i + LANES <= n; i += LANES) fstore(o + i, hcanon(VOP(fload(x + i), hload(y + i)))); \
    for (; i < n; i++) o[i] = canon32(OP(x[i], widen_h(y[i])));                                \
  }

typedef uint16_t uint16_mem __attribute__((may_alias, aligned(1)));
typedef float float_mem __attribute__((may_alias, aligned(1)));

#define VADD(a, b) ((a) + (b))
#define VMUL(a, b) ((a) * (b))
HALF_OP(sum, VADD, VADD)
HALF_OP(prod, VMUL, VMUL)
HALF_OP(max, max_f32, hmax)
HALF_OP(min, min_f32, hmin)

static void sum3_f16_n(void *d, const void *acc, const void *r, const void *s, const void *t, size_t n) {
  float_mem *o = d;
  const float_mem *w = acc;
  const uint16_mem *x = r, *y = s, *z = t;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) fstore(o + i, hcanon(((fload(w + i) + hload(x + i)) + hload(y + i)) + hload(z + i)));
  for (; i < n; i++) o[i] = canon32(((w[i] + widen_h(x[i])) + widen_h(y[i])) + widen_h(z[i]));
}

static void widen_f16_n(void *d, const void *s, size_t n) {
  float_mem *o = d;
  const uint16_mem *x = s;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) fstore(o + i, hload(x + i));
  for (; i < n; i++) o[i] = widen_h(x[i]);
}

static void scale_f16_n(void *d, const void *s, size_t n, gccl_scalar by) {
  const float f = by.f32;
  float_mem *o = d;
  const uint16_mem *x = s;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) fstore(o + i, hload(x + i) * f);
  for (; i < n; i++) o[i] = widen_h(x[i]) * f;
}

static void narrow_f16_n(void *d, const void *s, size_t n) {
  uint16_mem *o = d;
  const float_mem *x = s;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) hstore(o + i, fload(x + i));
  for (; i < n; i++) o[i] = narrow_h(x[i]);
}
