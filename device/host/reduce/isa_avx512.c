/* The kernels for x86-64 with AVX-512 F, BW, VL and DQ. */
#if defined(__x86_64__)
#include "options.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
#endif
#include <immintrin.h>

#include "kernels.h"
#include "convert.h"

INL void nt_line(void *d, const void *s) { _mm512_stream_si512(d, _mm512_loadu_si512(s)); }
#include "stream_x86.h"

#define LANES 16
typedef __m512 hvec;
INL hvec fload(const void *p) { return _mm512_loadu_ps(p); }
INL void fstore(void *p, hvec v) { _mm512_storeu_ps(p, v); }
INL hvec hload(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
INL hvec hcanon(hvec v) { return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_set1_ps(__builtin_nanf(""))); }
INL void hstore(void *p, hvec v) { _mm256_storeu_si256(p, _mm512_cvtps_ph(hcanon(v), _MM_FROUND_TO_NEAREST_INT)); }
/* The instruction gives b when one is NaN or both are zero: mend NaN b, and mix zeros as convert.h does. */
INL hvec hmax(hvec a, hvec b) {
  hvec r = _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), a);
  return _mm512_mask_and_ps(r, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), a, b);
}
INL hvec hmin(hvec a, hvec b) {
  hvec r = _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), a);
  return _mm512_mask_or_ps(r, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), a, b);
}
#include "half_x86.h"

#define ISA gccl_reduce_isa_avx512
#define ISA_NAME "avx512"
#include "template.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int gccl_reduce_no_avx512; /* a translation unit needs a declaration */
#endif
