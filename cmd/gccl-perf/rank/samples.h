/* Summary of per-call times: median, mean, 99th percentile, smallest.
 * Percentiles are nearest-rank on the sorted samples; no interpolation, so a
 * reported value is always one that was measured. */
#ifndef GCCL_PERF_SAMPLES_H
#define GCCL_PERF_SAMPLES_H

#include <stdint.h>
#include <stdlib.h>

struct perf_summary {
  double p50_us, mean_us, p99_us, min_us;
};

static int perf_compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Sorts ns in place. */
static inline struct perf_summary perf_summarise(uint64_t *ns, size_t n) {
  struct perf_summary s = {0, 0, 0, 0};
  if (n == 0) return s;
  qsort(ns, n, sizeof *ns, perf_compare_u64);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (double)ns[i];
  size_t i99 = (n * 99 + 99) / 100;
  s.p50_us = (double)ns[(n - 1) / 2] / 1e3;
  s.mean_us = sum / (double)n / 1e3;
  s.p99_us = (double)ns[i99 - 1] / 1e3;
  s.min_us = (double)ns[0] / 1e3;
  return s;
}

#endif
