/*
 * Own definitions of the functions that go-nvml calls, each a jump through a word.
 *
 * go-nvml leaves these names undefined and counts on lazy binding to the library that it opens later. Then a library that
 * contains it cannot be opened under LD_BIND_NOW=1 (nor where the linker binds at once, as on Ubuntu), and the call of a
 * function that an older driver lacks ends the process in the dynamic loader. With these definitions nothing is undefined, and an
 * absent function returns NVML_ERROR_FUNCTION_NOT_FOUND.
 */
#define _GNU_SOURCE
#include "names.h"

#include <dlfcn.h>
#include <stddef.h>

/* nvml.h, nvmlReturn_t. */
#define FUNCTION_NOT_FOUND 13

static int absent(void) { return FUNCTION_NOT_FOUND; }

/* Where each name jumps to. */
#define N(name) __attribute__((visibility("hidden"))) void *gccl_at_##name = (void *)absent;
#include "names.gen.h"
#undef N

/* The arguments stay where the caller has put them, whatever they are. */
#if defined(__x86_64__)
#define JUMP(name) "  endbr64\n  jmp *gccl_at_" #name "(%rip)\n"
#elif defined(__aarch64__)
/* x16 is free between a call and its target (AAPCS64, 6.1.1). */
#define JUMP(name) "  hint #34\n  adrp x16, gccl_at_" #name "\n  ldr x16, [x16, :lo12:gccl_at_" #name "]\n  br x16\n"
#else
#error "no jump for this architecture"
#endif

#define N(name)                                                                                                             \
  __asm__(".pushsection .text\n  .balign 16\n  .globl " #name "\n  .hidden " #name "\n  .type " #name ", %function\n" #name \
          ":\n" JUMP(name) "  .size " #name ", .-" #name "\n  .popsection\n");
#include "names.gen.h"
#undef N

static const char *no_text(int code) {
  (void)code;
  return "the driver's library has no error texts";
}

const char *gccl_nvml_bind(const char *library) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    return why ? why : "dlopen gave no reason";
  }
  void *at;
#define N(name)              \
  at = dlsym(handle, #name); \
  if (at) gccl_at_##name = at;
#include "names.gen.h"
#undef N
  /* The only one whose result is not a code. */
  if (gccl_at_nvmlErrorString == (void *)absent) gccl_at_nvmlErrorString = (void *)no_text;
  return NULL; /* the handle is kept: the words point into the library */
}
