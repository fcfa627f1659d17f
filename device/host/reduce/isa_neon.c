/* The kernels for 64-bit ARM. NEON is in the base set, so the compiler's vector code is the same as in the plain
 * set; what this set adds is the processor's own fp16 conversions, which the compiler uses for __fp16. */
#if defined(__aarch64__)
#include "options.h"
#include "kernels.h"
#include "convert.h"

typedef __fp16 half_mem __attribute__((may_alias, aligned(1)));
INL float widen_h(__fp16 h) { return h; }
INL __fp16 narrow_h(float f) { return (__fp16)canon32(f); }
#define HALF_ELEMENT half_mem
#define HALF_WIDEN widen_h
#define HALF_NARROW narrow_h

#define ISA gccl_reduce_isa_neon
#define ISA_NAME "neon"
#include "template.h"
#else
typedef int gccl_reduce_no_neon; /* a translation unit needs a declaration */
#endif
