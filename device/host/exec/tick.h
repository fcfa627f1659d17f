/* The clock of trace records: the processor's counter where it runs at one rate on all processors, which takes a third of the time of
 * clock_gettime, and CLOCK_MONOTONIC elsewhere.
 *
 * The writer turns counts into CLOCK_MONOTONIC, which all processes of a host share and which the kernel slows and hurries by a few parts in a
 * million. So it compares both at each turn and bends the line between them: it never jumps, and what was in order stays in order.
 */
#ifndef GCCL_HOST_EXEC_TICK_H
#define GCCL_HOST_EXEC_TICK_H

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

extern int gccl_tick_counter; /* the counter can be used; set by gccl_tick_open */
uint64_t gccl_now_ns(void);   /* wait.c */

static inline uint64_t gccl_tick(void) {
#if defined(__x86_64__)
  if (__builtin_expect(gccl_tick_counter, 1)) return __rdtsc();
#endif
  return gccl_now_ns();
}

/* A straight piece: at counts from `tick` on. */
typedef struct {
  uint64_t tick;
  double ns, rate; /* rate: ns a count */
} gccl_tick_piece;

typedef struct {
  gccl_tick_piece now, before; /* before: for counts earlier than now.tick */
  uint64_t first_tick, first_ns;
} gccl_tick_line;

void gccl_tick_open(gccl_tick_line *); /* takes two milliseconds */
void gccl_tick_bend(gccl_tick_line *);
uint64_t gccl_tick_ns(const gccl_tick_line *, uint64_t tick);

#endif
