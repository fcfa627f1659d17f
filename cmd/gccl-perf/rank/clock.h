/* The one clock of every timing loop: monotonic time in nanoseconds.
 * The rank program, the MPI peer and the bare probe all include this file, so
 * that a difference between their figures is never a difference of clocks. */
#ifndef GCCL_PERF_CLOCK_H
#define GCCL_PERF_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t perf_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
