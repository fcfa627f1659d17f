/* See fiber.h. The swap is ours: swapcontext makes two system calls a switch. It saves what the calling conventions say that a function
 * keeps: System V AMD64 ABI 1.0, section 3.2.1; AAPCS64 (2024Q3), section 6.1. */
#include "fiber.h"

#include <stdint.h>

void gccl_fiber_swap(void **save, void *load); /* stores the stack pointer in *save, runs on at load */
void gccl_fiber_trampoline(void);

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden gccl_fiber_swap\n.globl gccl_fiber_swap\n.type gccl_fiber_swap,@function\n"
        "gccl_fiber_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size gccl_fiber_swap,.-gccl_fiber_swap\n"
        ".hidden gccl_fiber_trampoline\n.globl gccl_fiber_trampoline\n.type gccl_fiber_trampoline,@function\n"
        "gccl_fiber_trampoline:\n  .cfi_startproc\n  .cfi_undefined rip\n"
        "  movq %rbx,%rdi\n  callq *%r12\n  ud2\n  .cfi_endproc\n"
        ".size gccl_fiber_trampoline,.-gccl_fiber_trampoline\n");

static void *prepare(char *top, void (*entry)(void *), void *arg) {
  void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15) - 7; /* r15 r14 r13 r12 rbx rbp, return address */
  sp[3] = (void *)entry;
  sp[4] = arg;
  sp[5] = NULL;
  sp[6] = (void *)gccl_fiber_trampoline;
  return sp;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".hidden gccl_fiber_swap\n.globl gccl_fiber_swap\n.type gccl_fiber_swap,%function\n"
        "gccl_fiber_swap:\n"
        "  sub sp,sp,#160\n"
        "  stp x19,x20,[sp]\n  stp x21,x22,[sp,#16]\n  stp x23,x24,[sp,#32]\n  stp x25,x26,[sp,#48]\n  stp x27,x28,[sp,#64]\n"
        "  stp x29,x30,[sp,#80]\n  stp d8,d9,[sp,#96]\n  stp d10,d11,[sp,#112]\n  stp d12,d13,[sp,#128]\n  stp d14,d15,[sp,#144]\n"
        "  mov x9,sp\n  str x9,[x0]\n  mov sp,x1\n"
        "  ldp x19,x20,[sp]\n  ldp x21,x22,[sp,#16]\n  ldp x23,x24,[sp,#32]\n  ldp x25,x26,[sp,#48]\n  ldp x27,x28,[sp,#64]\n"
        "  ldp x29,x30,[sp,#80]\n  ldp d8,d9,[sp,#96]\n  ldp d10,d11,[sp,#112]\n  ldp d12,d13,[sp,#128]\n  ldp d14,d15,[sp,#144]\n"
        "  add sp,sp,#160\n  ret\n"
        ".size gccl_fiber_swap,.-gccl_fiber_swap\n"
        ".hidden gccl_fiber_trampoline\n.globl gccl_fiber_trampoline\n.type gccl_fiber_trampoline,%function\n"
        "gccl_fiber_trampoline:\n  .cfi_startproc\n  .cfi_undefined x30\n"
        "  mov x0,x20\n  blr x19\n  brk #1\n  .cfi_endproc\n"
        ".size gccl_fiber_trampoline,.-gccl_fiber_trampoline\n");

static void *prepare(char *top, void (*entry)(void *), void *arg) {
  void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15) - 20;
  sp[0] = (void *)entry;
  sp[1] = arg;
  sp[10] = NULL;
  sp[11] = (void *)gccl_fiber_trampoline;
  return sp;
}
#else
#error "libgccl_cpu switches fibers on x86-64 and arm64 only"
#endif

/* The sanitizers' interfaces (sanitizer/tsan_interface.h, sanitizer/common_interface_defs.h), there when the program is built with one. */
#define WEAK __attribute__((weak))
WEAK void *__tsan_get_current_fiber(void);
WEAK void *__tsan_create_fiber(unsigned flags);
WEAK void __tsan_destroy_fiber(void *fiber);
WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags); /* 1: no order between the two */
WEAK void __tsan_acquire(void *object);
WEAK void __tsan_release(void *object);
WEAK void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
WEAK void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size);

void gccl_fiber_adopt(gccl_fiber *f) {
  *f = (gccl_fiber){0};
  if (__tsan_get_current_fiber) f->tsan = __tsan_get_current_fiber();
}

void gccl_fiber_make(gccl_fiber *f, void *stack, size_t size, void (*entry)(void *), void *arg) {
  *f = (gccl_fiber){.bottom = stack, .size = size};
  if (__tsan_create_fiber) f->tsan = __tsan_create_fiber(0);
  f->sp = prepare((char *)stack + size, entry, arg);
}

/* Where this thread comes from: the fiber that a switch has left, for the sanitizer's sake. */
static __thread gccl_fiber *left;

static void arrive(gccl_fiber *self) {
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(self->asan, left ? &left->bottom : NULL, left ? &left->size : NULL);
}

void gccl_fiber_begin(gccl_fiber *self) { arrive(self); }

void gccl_fiber_switch(gccl_fiber *from, gccl_fiber *to, int last) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(last ? NULL : &from->asan, to->bottom, to->size);
  left = from;
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(to->tsan, 1);
  gccl_fiber_swap(&from->sp, to->sp);
  arrive(from);
}

void gccl_fiber_drop(gccl_fiber *f) {
  if (f->tsan && __tsan_destroy_fiber) __tsan_destroy_fiber(f->tsan);
  f->tsan = NULL;
}

void gccl_fiber_release(void *object) {
  if (__tsan_release) __tsan_release(object);
}
void gccl_fiber_acquire(void *object) {
  if (__tsan_acquire) __tsan_acquire(object);
}
