/* Which set of kernels this processor runs. */
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels.h"

#if defined(__x86_64__)
/* Not every compiler knows this one by name: bit 29 of ecx of leaf 1, and AVX must be enabled. */
static int have_f16c(void) {
  unsigned a, b, c = 0, d;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}
#endif

static int have(const struct gccl_reduce_isa *isa) {
#if defined(__x86_64__)
  /* The compiler's run-time also checks that the operating system saves the registers. */
  __builtin_cpu_init();
  if (isa == &gccl_reduce_isa_avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx2") && have_f16c();
  if (isa == &gccl_reduce_isa_avx2) return __builtin_cpu_supports("avx2") && have_f16c();
#endif
  return isa != NULL; /* NEON is part of the base of 64-bit ARM */
}

/* Best first; "c" runs everywhere. */
static const struct gccl_reduce_isa *const sets[] = {
#if defined(__x86_64__)
    &gccl_reduce_isa_avx512,
    &gccl_reduce_isa_avx2,
#elif defined(__aarch64__)
    &gccl_reduce_isa_neon,
#endif
    &gccl_reduce_isa_c,
};
enum { NSETS = sizeof sets / sizeof sets[0] };

/* Both are idempotent caches: racing writers store the same value. */
static const gccl_reduce_isa *best, *forced;

const gccl_reduce_isa *gccl_reduce_best(void) {
  const gccl_reduce_isa *isa = __atomic_load_n(&forced, __ATOMIC_ACQUIRE);
  if (isa) return isa;
  isa = __atomic_load_n(&best, __ATOMIC_ACQUIRE);
  for (int i = 0; !isa; i++)
    if (have(sets[i])) __atomic_store_n(&best, isa = sets[i], __ATOMIC_RELEASE);
  return isa;
}

const gccl_reduce_isa *gccl_reduce_named(const char *name) {
  for (int i = 0; name && i < NSETS; i++)
    if (!strcmp(name, sets[i]->name)) return have(sets[i]) ? sets[i] : NULL;
  return NULL;
}

int gccl_reduce_force(const char *name) {
  const gccl_reduce_isa *isa = NULL;
  if (name && *name && !(isa = gccl_reduce_named(name))) return -1;
  __atomic_store_n(&forced, isa, __ATOMIC_RELEASE);
  return 0;
}

const char *gccl_reduce_name(const gccl_reduce_isa *isa) { return isa->name; }

const char *gccl_reduce_sets(void) {
  static char names[32];
  if (!names[0])
    for (int i = 0; i < NSETS; i++)
      if (have(sets[i])) {
        if (names[0]) strcat(names, ",");
        strcat(names, sets[i]->name);
      }
  return names;
}
