/* The kernels for x86-64 with AVX2 and F16C. */
#if defined(__x86_64__)
#include "options.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif
#include <immintrin.h>

#include "kernels.h"
#include "convert.h"

INL void nt_line(void *d, const void *s) {
  __m256i lo = _mm256_loadu_si256(s), hi = _mm256_loadu_si256((const __m256i *)s + 1);
  _mm256_stream_si256(d, lo);
  _mm256_stream_si256((__m256i *)d + 1, hi);
}
#include "stream_x86.h"

#define LANES 8
typedef __m256 hvec;
INL hvec fload(const void *p) { return _mm256_loadu_ps(p); }
INL void fstore(void *p, hvec v) { _mm256_storeu_ps(p, v); }
INL hvec hload(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
INL hvec hcanon(hvec v) { return _mm256_blendv_ps(v, _mm256_set1_ps(__builtin_nanf("")), _mm256_cmp_ps(v, v, _CMP_UNORD_Q)); }
INL void hstore(void *p, hvec v) { _mm_storeu_si128(p, _mm256_cvtps_ph(hcanon(v), _MM_FROUND_TO_NEAREST_INT)); }
/* The instruction gives b when one is NaN or both are zero: mend NaN b, and mix zeros as convert.h does. */
INL hvec hpick(hvec r, hvec a, hvec b, hvec mixed) {
  r = _mm256_blendv_ps(r, a, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  return _mm256_blendv_ps(r, mixed, _mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
INL hvec hmax(hvec a, hvec b) { return hpick(_mm256_max_ps(a, b), a, b, _mm256_and_ps(a, b)); }
INL hvec hmin(hvec a, hvec b) { return hpick(_mm256_min_ps(a, b), a, b, _mm256_or_ps(a, b)); }
#include "half_x86.h"

#define ISA gccl_reduce_isa_avx2
#define ISA_NAME "avx2"
#include "template.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int gccl_reduce_no_avx2; /* a translation unit needs a declaration */
#endif
