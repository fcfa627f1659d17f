/* Rank r runs on the r-th core that this process may use, modulo their number. */
#ifndef GCCL_PERF_PIN_H
#define GCCL_PERF_PIN_H

#include <sched.h>
#include <stdlib.h>

/* Pins the calling thread. allowed is the set read before anything was pinned.
 * Returns the core, or -1 where the kernel refuses. */
static inline int perf_pin(const cpu_set_t *allowed, int rank) {
  int n = CPU_COUNT(allowed);
  if (n <= 0) return -1;
  int want = rank % n;
  for (int c = 0; c < CPU_SETSIZE; c++) {
    if (!CPU_ISSET(c, allowed)) continue;
    if (want-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(c, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? c : -1;
  }
  return -1;
}

#endif
