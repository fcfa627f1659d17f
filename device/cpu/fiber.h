/* fiber.h: stacks that take turns in one operating-system thread. Every switch is announced to ThreadSanitizer (without order: what may see
 * what is said by the barriers) and to AddressSanitizer, where the program runs under one. */
#ifndef GCCL_CPU_FIBER_H
#define GCCL_CPU_FIBER_H

#include <stddef.h>

typedef struct {
  void *sp;           /* while it does not run */
  const void *bottom; /* of its stack; of a thread's own stack known after the first switch away from it */
  size_t size;
  void *tsan, *asan;
} gccl_fiber;

/* Makes *f the thread's own stack. */
void gccl_fiber_adopt(gccl_fiber *f);

/* Makes *f a fiber that will run entry(arg) on size bytes at stack; entry does not return. */
void gccl_fiber_make(gccl_fiber *f, void *stack, size_t size, void (*entry)(void *), void *arg);

/* Goes from one to another; returns when somebody comes back. last: from will not run again. */
void gccl_fiber_switch(gccl_fiber *from, gccl_fiber *to, int last);

/* The first thing of entry. */
void gccl_fiber_begin(gccl_fiber *self);

/* Gives back what the sanitizers keep. Preconditions: it does not run. */
void gccl_fiber_drop(gccl_fiber *f);

/* Order for ThreadSanitizer: what came before a release of an object comes before what follows a later acquire of it. */
void gccl_fiber_release(void *object);
void gccl_fiber_acquire(void *object);

#endif
