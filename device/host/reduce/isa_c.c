/* The kernels for the base instruction set of the architecture. */
#include "options.h"
#include "kernels.h"
#include "convert.h"

#if defined(__x86_64__)
#include <emmintrin.h>
INL void nt_line(void *d, const void *s) {
  for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)d + i, _mm_loadu_si128((const __m128i *)s + i));
}
#include "stream_x86.h"
#endif

#define ISA gccl_reduce_isa_c
#define ISA_NAME "c"
#include "template.h"
